"""The tools that an upstream lists, beside those that are registered: whether it still offers what was agreed on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .manifest_schema import same_schema
from .result_projection import check_bounds, passed_on
from .strict_json import DEPTH

if TYPE_CHECKING:
    from .manifest import Manifest, Tool

_MOST_REMEMBERED: Final = 64
# What is sent may have DEPTH levels; a schema stands five levels deep in a reply.
_SCHEMA_LEVELS: Final = DEPTH - 4


class LiveToolsError(Exception):
    """The list does not hold what a call relies on: it is malformed, or a tool is not there, or no longer the same."""


def by_name(tools: Iterable[Any]) -> dict[str, Mapping[str, Any]]:
    """The listed tools by their names. Raises LiveToolsError when one of them is malformed, or two have one name."""
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name or name in found or not _well_formed(tool):
            raise LiveToolsError
        found[name] = tool
    return found


def check_offered(tools: Mapping[str, Mapping[str, Any]], tool: Tool) -> None:
    """See that a registered tool is offered, with the schema that is registered for it, if there is one.

    Raises LiveToolsError.
    """
    live = tools.get(tool.mcp_name)
    if live is None or not _matches(live, tool):
        raise LiveToolsError


def live_view(live: Mapping[str, Any], tool: Tool, most_bytes: int) -> dict[str, Any]:
    """What callers see of a tool as it is offered now. Raises ResultTooLargeError and ResultError."""
    description, schema = live.get("description"), live.get("inputSchema") or {}
    check_bounds(schema, most_bytes, _SCHEMA_LEVELS)
    shown: dict[str, Any] = passed_on(
        {
            "name": live["name"],
            "description": description,
            "input_schema": schema,
            "schema_matches_manifest": _matches(live, tool),
        }
    )
    return shown


@dataclass(slots=True)
class _Remembered:
    identity: Hashable
    tool_ids: set[str] = field(default_factory=set)


class CheckedLists:
    """Checks lists, each once: one that is the same as the last of this registration was well-formed then, too."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, _Remembered] = OrderedDict()  # by the digest of the registration

    def check(self, manifest: Manifest, tool: Tool, tools: Iterable[Any], identity: Hashable) -> None:
        """Check a list for one tool. Lists of one `identity` are the same. Raises LiveToolsError."""
        last = self._last.get(manifest.digest)
        if last is not None and last.identity == identity and tool.tool_id in last.tool_ids:
            return
        check_offered(by_name(tools), tool)
        if last is None or last.identity != identity:
            last = self._last[manifest.digest] = _Remembered(identity)
        last.tool_ids.add(tool.tool_id)
        self._last.move_to_end(manifest.digest)
        if len(self._last) > _MOST_REMEMBERED:
            self._last.popitem(last=False)


def _well_formed(tool: Mapping[str, Any]) -> bool:
    description, schema = tool.get("description"), tool.get("inputSchema")
    return isinstance(description, str | None) and isinstance(schema, dict | None)


def _matches(live: Mapping[str, Any], tool: Tool) -> bool:
    """Whether a tool has the registered schema. One that is registered without a schema has whatever it has."""
    return not tool.pinned or same_schema(live.get("inputSchema") or {}, tool.input_schema)
