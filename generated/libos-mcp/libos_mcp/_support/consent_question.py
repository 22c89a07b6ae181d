"""The words in which a client's user is asked for an approval."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .consent import Question
from .fingerprint import canonical_json
from .foreign_text import cut
from .quoting import quoted

# More than this is nothing that anybody reads in a dialogue.
_MOST_CHARACTERS: Final = 4000
_MOST_OF_A_LINE: Final = 300


def question_of(approval: Mapping[str, Any], arguments: Mapping[str, Any], command: str) -> Question:
    """The question that an approval is.

    `approval` is what callers are told of it: `id`, `subject`, `verb`, `rights`, `target` and `arguments_sha256` at
    least. `arguments` are those it is about, all of them, and `command` is the server's own, for operators.
    """
    lines = [
        f"May {quoted(approval['subject'])} run {quoted(approval['verb'])}? A yes counts once, and for exactly this:",
        "",
        *_target(approval["target"]),
        *(_line("right", right) for right in approval["rights"]),
        _arguments(approval, arguments, command),
    ]
    return Question(approval["id"], "\n".join(lines), approval)


def _target(target: Mapping[str, Any]) -> Iterator[str]:
    return (_line(name, value) for name, value in target.items() if name.endswith("_id"))


def _line(name: str, value: Any) -> str:
    """One line, whatever the value is: all in it that is no ASCII is escaped."""
    return f"{name}: {cut(json.dumps(value), _MOST_OF_A_LINE)}"


def _arguments(approval: Mapping[str, Any], arguments: Mapping[str, Any], command: str) -> str:
    text = json.dumps(arguments, indent=2, sort_keys=True)
    if len(text) <= _MOST_CHARACTERS:
        return f"arguments: {text}"
    size = len(canonical_json(arguments))
    shown_by = f"`{command} approvals show {approval['id']}` prints them"
    return f"arguments: {size} bytes with SHA-256 {approval['arguments_sha256']}; {shown_by}"
