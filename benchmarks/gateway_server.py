"""A gateway with one upstream that is registered twice: with sessions that stay, and without."""

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from mcp import StdioServerParameters

from .client import AnswerError
from .places import LIBOS_MCP, OWN, ROOT, environment
from .upstream_server import NAME, SCHEMA

WARM_SERVER: Final = "warm"
COLD_SERVER: Final = "cold"
TOOL: Final = "note"
_SUBJECT: Final = "bench"
_PYTHON: Final = str(OWN / "bin" / "python")
# The upstream gets no variables, so it is told where its module is.
_PROGRAM: Final = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import runpy
runpy.run_module("benchmarks.upstream_server", run_name="__main__")
"""


class Gateway:
    """`server` is the gateway, with all that it needs in `folder`; `upstream` is the program behind it."""

    def __init__(self, folder: Path) -> None:
        """Raises AnswerError."""
        self._folder = folder
        self._variables = {**environment(folder), "PYTHONPATH": os.pathsep.join((str(LIBOS_MCP), str(ROOT)))}
        self._program = folder / "upstream.py"
        self._program.write_text(_PROGRAM)
        self._policy = folder / "policy.json"
        self._key = ""
        self._key = self._run("policy", "key").strip()
        self._allow([])
        self._allow([self._registered(WARM_SERVER), self._registered(COLD_SERVER)])
        self.upstream = self._started([str(self._program)])
        self.server = self._started(["-m", "libos_mcp", "--as", _SUBJECT, *self._options])

    @property
    def _options(self) -> tuple[str, ...]:
        return ("--policy", str(self._policy), "--state", str(self._folder / "state"))

    def _started(self, words: list[str]) -> StdioServerParameters:
        return StdioServerParameters(command=_PYTHON, args=words, env=self._variables, cwd=self._folder)

    def _allow(self, launches: list[str]) -> None:
        """Write the policy: calls that read, and these rights to start a program."""
        digest = hashlib.sha256(self._key.encode()).hexdigest()
        allow = ["read mcp:*", "write process:spawn", *launches]
        self._policy.write_text(json.dumps({"subjects": {_SUBJECT: {"allow": allow}}, "operator_keys": [digest]}))
        self._policy.chmod(0o600)

    def _registered(self, server: str) -> str:
        """Register the upstream under an id, and return the right to start it."""
        place = self._folder / f"{server}.json"
        place.write_text(json.dumps(_manifest(server, self._program)))
        self._run("servers", "add", str(place), *self._options)
        shown = json.loads(self._run("servers", "show", server, *self._options))
        return f"execute {shown['stdio_authority_resource']}"

    def _run(self, *words: str) -> str:
        """What a command of the gateway prints."""
        variables = {**self._variables, "LIBOS_MCP_OPERATOR_KEY": self._key}
        command = (_PYTHON, "-m", "libos_mcp", *words)
        done = subprocess.run(command, env=variables, cwd=self._folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AnswerError(done.stderr[-2000:])
        return done.stdout


def _manifest(server: str, program: Path) -> dict[str, Any]:
    tool = {
        "tool_id": TOOL,
        "mcp_name": NAME,
        "right": "read",
        "rollback_class": "no_rollback_required",
        "state_mutation": False,
        "information_flow": False,
        "input_schema": SCHEMA,
    }
    return {
        "server_id": server,
        "transport": "stdio",
        "stdio": {"command": _PYTHON, "args": [str(program)]},
        "warm": server == WARM_SERVER,
        "tools": [tool],
    }
