"""The tools that a manifest registers: under which id, with which right, and what a call may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from .manifest_fields import (
    FieldError,
    ManifestProblem,
    Members,
    Path,
    an_object,
    matching,
    one_of,
    or_null,
    repeated,
    truth,
)
from .manifest_schema import schema_problems
from .quoting import quoted
from .right_forms import ID_CHARACTERS, ID_PATTERN

Allowance: TypeAlias = Literal["refuse", "allow"]

an_id: Final = matching(
    ID_PATTERN,
    f"must be at most {ID_CHARACTERS} letters, digits and _ . @ + -, and begin with a letter or digit",
    ID_CHARACTERS,
)
# What becomes of a change that has to be taken back, by what a call of the class can promise.
_STATUS_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "irreversible": "not_supported",
        "rollbackable": "not_applied",
        "no_rollback_required": "not_required",
        "unknown": "unknown",
    }
)


@dataclass(frozen=True, slots=True)
class Tool:
    """One registered tool. What it does is what the manifest says of it, never what its server says."""

    tool_id: str
    mcp_name: str  # its name on the server
    right: Literal["read", "write", "execute"]
    rollback_class: str
    rollback_status: str | None  # as written
    state_mutation: bool
    information_flow: bool
    input_schema: Mapping[str, Any]  # empty: none is pinned
    unpinned_mutation: Allowance  # whether it may change something without a pinned schema
    warm_mutation: Allowance  # whether a kept session may be used for it though it changes something
    read_back: str | None  # the tool that shows what a call has changed
    metadata: Mapping[str, Any]

    @property
    def effective_rollback_status(self) -> str:
        """The status that is written, or the one that follows from the class."""
        return self.rollback_status or _STATUS_OF[self.rollback_class]

    @property
    def pinned(self) -> bool:
        """Whether a schema guards its calls."""
        return bool(self.input_schema)

    @property
    def data(self) -> dict[str, Any]:
        """The normal form."""
        return {name: getattr(self, name) for name in self.__slots__}


def read_tools(value: Any, path: Path, problems: list[ManifestProblem]) -> tuple[Tool, ...]:
    """The list `tools` of a manifest; what is wrong is noted."""
    if not isinstance(value, list) or not value:
        problems.append(ManifestProblem(path, "`tools` must be a list with at least one tool"))
        return ()
    tools = tuple(_tool(item, (*path, index), problems) for index, item in enumerate(value))
    for name in ("tool_id", "mcp_name"):
        for index in repeated([getattr(tool, name) for tool in tools]):
            text = f"{quoted(name)} is that of another tool already"
            problems.append(ManifestProblem((*path, index, name), text))
    problems.extend(ManifestProblem((*path, index, "read_back"), text) for index, text in _read_backs(tools))
    return tools


def _tool(value: Any, path: Path, problems: list[ManifestProblem]) -> Tool:
    members = Members(value, path, problems, what="a tool")
    tool = Tool(
        tool_id=members.take("tool_id", an_id),
        mcp_name=members.take("mcp_name", _name),
        right=members.take("right", one_of("read", "write", "execute")),
        rollback_class=members.take("rollback_class", one_of(*_STATUS_OF)),
        rollback_status=members.take("rollback_status", or_null(one_of(*_STATUS_OF.values())), None),
        state_mutation=members.take("state_mutation", truth),
        information_flow=members.take("information_flow", truth),
        input_schema=members.take("input_schema", an_object, {}),
        unpinned_mutation=members.take("unpinned_mutation", one_of("refuse", "allow"), "refuse"),
        warm_mutation=members.take("warm_mutation", one_of("refuse", "allow"), "refuse"),
        read_back=members.take("read_back", or_null(an_id), None),
        metadata=members.take("metadata", an_object, {}),
    )
    members.rest()
    if tool.rollback_class == "no_rollback_required" and tool.state_mutation:
        members.note("`rollback_class` must be another one where `state_mutation` is true", "rollback_class")
    if tool.input_schema:
        problems.extend(schema_problems(dict(tool.input_schema), (*path, "input_schema")))
    return tool


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 256:
        raise FieldError("must be a text of 1 to 256 characters")
    return value


def _read_backs(tools: Sequence[Tool]) -> list[tuple[int, str]]:
    """The numbers of tools whose `read_back` shows nothing, with the reason."""
    by_id = {tool.tool_id: tool for tool in tools}
    found = []
    for index, tool in enumerate(tools):
        if tool.read_back is None:
            continue
        if tool.read_back not in by_id:
            found.append((index, f"there is no tool {quoted(tool.read_back)} here to read back with"))
        elif by_id[tool.read_back].state_mutation:
            found.append((index, "`read_back` must name a tool that changes nothing itself"))
    return found
