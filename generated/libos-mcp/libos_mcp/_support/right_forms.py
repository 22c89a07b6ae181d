"""The forms of ids, and of grants whose kinds are known: one that has another form would never count."""

from __future__ import annotations

import re
from typing import Final

ID_CHARACTERS: Final = 96
ID_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9_.@+-]*"

_ID: Final = re.compile(ID_PATTERN)
_STDIO: Final = re.compile(r"[0-9a-f]{64}|\*")
# What is written for each kind where its form is told.
_FORMS: Final = {
    "mcp": "mcp:<server>:<tool>, mcp:<server>:* or mcp:*",
    "mcp_server": "mcp_server:<server> or mcp_server:*",
    "mcp_stdio": "mcp_stdio:* or mcp_stdio: and 64 lower-case hex digits",
    "process": "process:spawn or process:*",
}
# What calls need beside the rights that their verbs name.
_KNOWN: Final = frozenset(
    [
        "execute verb",
        "read mcp",
        "write mcp",
        "execute mcp",
        "read mcp_server",
        "execute mcp_server",
        "write process",
        "execute mcp_stdio",
    ]
)


def is_id(text: str) -> bool:
    """Whether a server or a tool can be registered under a text."""
    return len(text) <= ID_CHARACTERS and _ID.fullmatch(text) is not None


def form_problem(grant: str) -> str | None:
    """Why a grant such as `read job:42` could never count, as what it must be; None where it can."""
    if not grant.isprintable():
        return "must not have characters that cannot be seen"
    kind, *parts = grant.partition(" ")[2].split(":")
    return None if _has_form(kind, parts) else f"must be {_FORMS[kind]}"


def is_needed(grant: str, required: frozenset[str]) -> bool:
    """Whether anything can need a right of this access and kind; `required` are the rights that verbs name."""
    asked = grant.partition(":")[0]
    return asked in _KNOWN or any(right.partition(":")[0] == asked for right in required)


def _has_form(kind: str, parts: list[str]) -> bool:
    match kind:
        case "mcp":
            *servers, last = parts
            return len(servers) <= 1 and all(map(is_id, servers)) and (last == "*" or (servers != [] and is_id(last)))
        case "mcp_server":
            return len(parts) == 1 and (parts[0] == "*" or is_id(parts[0]))
        case "mcp_stdio":
            return len(parts) == 1 and _STDIO.fullmatch(parts[0]) is not None
        case "process":
            return parts in (["spawn"], ["*"])
        case _:
            return True
