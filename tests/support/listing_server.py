"""An MCP server over stdio that lists the tools in a file and does nothing else; for tests of what servers offer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def answer(message: dict[str, Any], tools: Path) -> dict[str, Any]:
    """The result of one request."""
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "list", "version": "1"},
        }
    return {"tools": json.loads(tools.read_text(encoding="utf-8"))}


def main() -> None:
    """Answer until stdin ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message, Path(sys.argv[1]))}
            print(json.dumps(reply), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
