"""The manifest of an MCP server: what is registered of it, read strictly, in one normal form with one digest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from .fingerprint import canonical_json, digest
from .manifest_fields import FieldError, ManifestProblem, Members, Path, an_object, anything, one_of, truth, whole
from .manifest_schema import same_schema
from .manifest_tools import Tool, an_id, read_tools
from .manifest_transport import Header, Http, Stdio, Variables, read_http, read_stdio, readable_variables
from .quoting import quoted
from .strict_json import DEPTH, Unacceptable, limited

__all__ = [
    "MANIFEST_BYTES",
    "WRAPPERS",
    "Header",
    "Http",
    "Manifest",
    "ManifestError",
    "ManifestProblem",
    "Stdio",
    "Tool",
    "read_manifest",
    "same_schema",
]

MANIFEST_BYTES: Final = 262_144  # of the text of a manifest; whoever reads one from a file keeps it
_NORMAL_FORM_BYTES: Final = 1 << 20
# A list of servers has two levels of its own around each of them.
_DEPTH: Final = DEPTH - 2
WRAPPERS: Final = ("mcp_server", "server")  # of which one may be the only key around a manifest

_TRANSPORTS: Final = {"stdio": "stdio", "streamable_http": "http"}  # with their blocks
_SECONDS: Final = 60
_REQUEST_BYTES: Final = 1 << 20
_RESPONSE_BYTES: Final = 8 << 20


class ManifestError(Exception):
    """A value is no manifest; `problems` has everything that is wrong, and the text one line for each."""

    def __init__(self, problems: Sequence[ManifestProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Manifest:
    """What is registered of one server. It is shared, so nobody changes what is in it."""

    schema_version: int
    server_id: str
    transport: Stdio | Http
    tools: tuple[Tool, ...]
    timeout_s: float
    max_request_bytes: int
    max_response_bytes: int
    concurrency: int  # most calls at one time
    page_limit: int  # most pages of the live list of tools
    warm: bool  # sessions may be kept between calls
    metadata: Mapping[str, Any]

    @cached_property
    def data(self) -> dict[str, Any]:
        """The normal form, JSON with every default in it: what `read_manifest` takes, and the digest is of."""
        return {
            "schema_version": self.schema_version,
            "server_id": self.server_id,
            "transport": self.transport_kind,
            _TRANSPORTS[self.transport_kind]: self.transport.data,
            "tools": [tool.data for tool in self.tools],
            "timeout_s": self.timeout_s,
            "max_request_bytes": self.max_request_bytes,
            "max_response_bytes": self.max_response_bytes,
            "concurrency": self.concurrency,
            "page_limit": self.page_limit,
            "warm": self.warm,
            "metadata": self.metadata,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the normal form, as 64 hex digits."""
        return digest(self.data)

    @cached_property
    def searched(self) -> str:
        """What a search for text looks at, in its folded case: all but addresses, headers and variables."""
        hidden = _TRANSPORTS[self.transport_kind]
        shown = {name: value for name, value in self.data.items() if name != hidden}
        if isinstance(self.transport, Stdio):
            shown |= {"command": self.transport.command, "args": self.transport.args, "cwd": self.transport.cwd}
        return json.dumps(shown, ensure_ascii=False).casefold()

    @property
    def transport_kind(self) -> Literal["stdio", "streamable_http"]:
        """How the server is reached."""
        return "stdio" if isinstance(self.transport, Stdio) else "streamable_http"

    def tool(self, tool_id: str) -> Tool | None:
        """The registered tool with this id, which is not its name on the server; None where there is none."""
        return self._tools.get(tool_id)

    @cached_property
    def _tools(self) -> dict[str, Tool]:
        return {tool.tool_id: tool for tool in self.tools}


def read_manifest(value: Any, allowed: Sequence[str], reserved: Sequence[str] = ()) -> Manifest:
    """The manifest that a JSON value is, bare or as the only member `mcp_server` or `server` of an object.

    Its variables here must be among `allowed`, names and patterns that end in `*`, and never in `reserved`.
    Raises ManifestError.
    """
    problems: list[ManifestProblem] = []
    value, path = _unwrapped(_bounded(value))
    manifest = _read(value, path, problems, readable_variables(tuple(allowed), tuple(reserved)))
    if not problems and len(canonical_json(manifest.data)) > _NORMAL_FORM_BYTES:
        problems.append(ManifestProblem(path, "the manifest is too large"))
    if problems:
        raise ManifestError(problems)
    return manifest


def _bounded(value: Any) -> Any:
    try:
        return limited(value, _DEPTH)
    except Unacceptable as error:
        raise ManifestError([ManifestProblem((), f"the manifest {error.reason}")]) from None


def _unwrapped(value: Any) -> tuple[Any, Path]:
    if isinstance(value, dict) and len(value) == 1:
        for name in WRAPPERS:
            if name in value:
                return value[name], (name,)
    return value, ()


def _read(value: Any, path: Path, problems: list[ManifestProblem], variables: Variables) -> Manifest:
    members = Members(value, path, problems, what="the manifest")
    manifest = Manifest(
        schema_version=members.take("schema_version", whole(1, 1), 1),
        server_id=members.take("server_id", an_id),
        transport=_transport(members, variables),
        tools=_tools(members),
        timeout_s=members.take("timeout_s", _seconds, 10),
        max_request_bytes=members.take("max_request_bytes", whole(1, _REQUEST_BYTES), 65_536),
        max_response_bytes=members.take("max_response_bytes", whole(1, _RESPONSE_BYTES), 1_048_576),
        concurrency=members.take("concurrency", whole(1, 64), 4),
        page_limit=members.take("page_limit", whole(1, 64), 16),
        warm=members.take("warm", truth, False),
        metadata=members.take("metadata", an_object, {}),
    )
    members.rest()
    return manifest


def _transport(members: Members, variables: Variables) -> Any:
    present = [kind for kind, block in _TRANSPORTS.items() if members.has(block)]
    chosen = members.take("transport", one_of(*_TRANSPORTS))
    for kind in present:
        if chosen not in (None, kind):
            block = _TRANSPORTS[kind]
            members.take(block, anything)
            members.note(f"{quoted(block)} is not for the transport {quoted(chosen)}", block)
    # The blocks that are there are looked at also where nothing says which one counts.
    read = [_block(kind, members, variables) for kind in ([chosen] if chosen else present)]
    return read[0] if read else None


def _block(kind: str, members: Members, variables: Variables) -> Any:
    name = _TRANSPORTS[kind]
    value = members.take(name, anything)
    if value is None:
        return None
    reader = read_stdio if kind == "stdio" else read_http
    return reader(value, (*members.path, name), members.problems, variables)


def _tools(members: Members) -> tuple[Tool, ...]:
    value = members.take("tools", anything)
    return () if value is None else read_tools(value, (*members.path, "tools"), members.problems)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _SECONDS:
        raise FieldError(f"must be a number of seconds, more than 0 and at most {_SECONDS}")
    return value
