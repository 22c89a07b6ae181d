"""Which lionagi is driven: it may live in another environment than this server, so the command itself is looked at."""

import os
import shutil
from importlib.metadata import distributions
from pathlib import Path


def li_command() -> str:
    """What the spec's backend starts."""
    return os.environ.get("LIONAGI_MCP_LI_BIN") or "li"


def version_beside(command: str) -> str | None:
    """The version of lionagi installed in the environment that `command` belongs to, without starting it.

    None when the command is not found, is more than one word, or its environment has no lionagi, or several.
    """
    found = shutil.which(command)
    if found is None:
        return None
    prefix = Path(found).resolve().parent.parent
    packages = [str(folder) for kind in ("site", "dist") for folder in prefix.glob(f"lib/python3*/{kind}-packages")]
    versions = {str(item.version) for item in distributions(name="lionagi", path=packages)} if packages else set()
    return versions.pop() if len(versions) == 1 else None
