"""What a person reads who is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.consent_question import question_of
from verbc.support.fingerprint import canonical_json, digest


def approval(arguments: Any, **changes: Any) -> dict[str, Any]:
    return {
        "id": "appr_0123456789abcdef",
        "subject": "writer",
        "rights": ["write mcp:git:commit"],
        "verb": "call_mcp_tool",
        "contract_digest": "c" * 64,
        "target": {"server_id": "git", "tool_id": "commit", "registration_digest": "d" * 64},
        "arguments_sha256": digest(arguments),
        "expires_at": "2031-01-01T00:00:00Z",
        **changes,
    }


def test_it_says_who_wants_to_do_what_with_what() -> None:
    arguments = {"message": "a\nb \u202e", "all": True}
    question = question_of(approval(arguments), arguments, "libos-mcp")
    assert (question.approval_id, question.detail) == ("appr_0123456789abcdef", approval(arguments))
    assert question.message.splitlines() == [
        "May `writer` run `call_mcp_tool`? A yes counts once, and for exactly this:",
        "",
        'server_id: "git"',
        'tool_id: "commit"',
        'right: "write mcp:git:commit"',
        "arguments: {",
        '  "all": true,',
        '  "message": "a\\nb \\u202e"',
        "}",
    ]


@pytest.mark.parametrize(("characters", "shown"), [(3900, True), (4000, False)])
def test_arguments_that_nobody_would_read_are_told_by_their_digest(characters: int, shown: bool) -> None:
    arguments = {"text": "x" * characters}
    message = question_of(approval(arguments), arguments, "libos-mcp").message
    assert ("x" * characters in message) is shown
    last = message.splitlines()[-1]
    if not shown:
        size = len(canonical_json(arguments))
        assert last == (
            f"arguments: {size} bytes with SHA-256 {digest(arguments)}; "
            "`libos-mcp approvals show appr_0123456789abcdef` prints them"
        )


text = st.text(max_size=40)
values = st.recursive(st.none() | st.booleans() | st.integers() | text, lambda inner: st.lists(inner, max_size=3))


@given(arguments=st.dictionaries(text, values, max_size=4), subject=text, name=text)
def test_nothing_that_was_sent_can_pass_for_a_line_of_the_question(
    arguments: dict[str, Any], subject: str, name: str
) -> None:
    told = approval(arguments, subject=subject, rights=[name, name], target={"tool_id": name})
    message = question_of(told, arguments, "libos-mcp").message
    head, shown = message.split("\narguments: ", 1)
    assert len(head.split("\n")) == 5
    assert all(line.isprintable() for line in message.split("\n"))
    assert json.loads(shown) == arguments


def test_what_is_long_leaves_the_question_short() -> None:
    arguments = {"id": "y" * 100_000}
    told = approval(arguments, subject="s" * 1000, rights=["write item:" + "y" * 100_000], target=arguments)
    assert len(question_of(told, arguments, "libos-mcp").message) < 1000
