"""What a call would send to an upstream: whether it may, and how many bytes it can move."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .fingerprint import canonical_json
from .quoting import quoted
from .refusal import Refusal
from .upstream_messages import most_in_operation
from .validation import Validator, invalid

if TYPE_CHECKING:
    from .manifest import Manifest, Tool

_SUBJECT: Final = "the tool's arguments"
_MOST_VALIDATORS: Final = 256
_LIST_BYTES: Final = len(canonical_json({"method": "tools/list", "params": {}}))


def changes_something(tool: Tool) -> bool:
    """Whether a tool is registered as one that may change something."""
    return tool.state_mutation or tool.right != "read"


def request_bytes(tool: Tool, arguments: Mapping[str, Any]) -> int:
    """The size of what a call says, as the limit of a manifest counts it."""
    return len(canonical_json({"name": tool.mcp_name, "arguments": arguments}))


def list_cost(manifest: Manifest) -> int:
    """The most bytes that a look at the live tools can move; what comes beyond it breaks the look off."""
    return _LIST_BYTES + most_in_operation(manifest.max_response_bytes)


def call_cost(manifest: Manifest, tool: Tool, arguments: Mapping[str, Any]) -> int:
    """The most bytes that a call can move, with the look at the live tools before it, which has no bound of its own."""
    return list_cost(manifest) + request_bytes(tool, arguments)


class ToolRequests:
    """Checks what would be sent. `names` allows feedback with names that callers sent and no schema has."""

    def __init__(self, *, names: bool) -> None:
        self._names = names
        self._validators: OrderedDict[tuple[str, str], Validator] = OrderedDict()

    def refusal(self, manifest: Manifest, tool: Tool, arguments: Mapping[str, Any]) -> Refusal | None:
        """Why these arguments are not sent to this tool; None when they are."""
        if not tool.pinned and changes_something(tool) and tool.unpinned_mutation != "allow":
            return _unguarded(manifest, tool)
        if tool.pinned and (problems := self._validator(manifest, tool).problems(arguments)):
            return invalid(problems)
        if request_bytes(tool, arguments) > manifest.max_request_bytes:
            sentence = f"{_SUBJECT} are too large; a request may have {manifest.max_request_bytes} bytes"
            return invalid([sentence])
        return None

    def _validator(self, manifest: Manifest, tool: Tool) -> Validator:
        key = (manifest.digest, tool.tool_id)
        if (known := self._validators.get(key)) is None:
            known = Validator(dict(tool.input_schema), names=self._names, subject=_SUBJECT, any_draft=True)
            self._validators[key] = known
            if len(self._validators) > _MOST_VALIDATORS:
                self._validators.popitem(last=False)
        self._validators.move_to_end(key)
        return known


def _unguarded(manifest: Manifest, tool: Tool) -> Refusal:
    name = f"{quoted(tool.tool_id)} of {quoted(manifest.server_id)}"
    advice = "an operator can register one, or allow calls without it"
    return Refusal("conflict", f"{name} may change something and has no registered schema for its arguments; {advice}.")
