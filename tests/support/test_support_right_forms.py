"""The forms of grants: whatever a call of the gateway can need is one, and nothing else of the kinds that are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.right_forms import ID_PATTERN, form_problem, is_id, is_needed
from verbc.support.rights import Right, grants

IDS = st.from_regex(ID_PATTERN, fullmatch=True).filter(lambda text: len(text) <= 96)
SPELT = st.text("a:*.b ", max_size=8)


@given(IDS, IDS)
def test_a_right_on_a_tool_can_be_granted(server_id: str, tool_id: str) -> None:
    right = Right(("read mcp", server_id, tool_id))
    for grant in (f"read mcp:{server_id}:{tool_id}", f"read mcp:{server_id}:*", "read mcp:*"):
        assert form_problem(grant) is None
        assert grants(grant, right)
    assert form_problem(f"read mcp_server:{server_id}") is None


@given(SPELT, IDS, IDS)
def test_what_is_refused_grants_nothing(spelt: str, server_id: str, tool_id: str) -> None:
    grant = f"read mcp:{spelt}"
    if form_problem(grant) is not None:
        assert not grants(grant, Right(("read mcp", server_id, tool_id)))


@pytest.mark.parametrize(
    ("grant", "problem"),
    [
        ("write mcp:calendar", "must be mcp:<server>:<tool>, mcp:<server>:* or mcp:*"),
        ("read mcp_server:", "must be mcp_server:<server> or mcp_server:*"),
        ("execute mcp_stdio:xyz", "must be mcp_stdio:* or mcp_stdio: and 64 lower-case hex digits"),
        ("write process:kill", "must be process:spawn or process:*"),
        ("read job:a\u200b", "must not have characters that cannot be seen"),
        ("read job:a:b:*", None),
        ("read mpc:whatever", None),
    ],
)
def test_a_problem_says_what_would_do(grant: str, problem: str | None) -> None:
    assert form_problem(grant) == problem


def test_a_grant_is_needed_by_a_verb_or_by_the_gateway() -> None:
    required = frozenset({"read job:<run_id>", "admin mcp_server:*"})
    needed = ["read job:*", "admin mcp_server:a", "execute verb:x", "execute mcp_stdio:*", "write process:spawn"]
    assert all(is_needed(grant, required) for grant in needed)
    idle = ["write job:*", "read mpc:*", "write proces:spawn", "execute process:spawn", "write mcp_server:*"]
    assert not any(is_needed(grant, required) for grant in idle)


def test_an_id_has_at_most_96_characters() -> None:
    assert is_id("a" * 96)
    assert not is_id("a" * 97)
    assert not is_id("a b")
    assert not is_id("")
