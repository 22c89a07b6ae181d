"""Rights and scopes: what a grant covers, whatever callers put into a right, and what a refusal tells of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.call import LOCAL, Caller
from verbc.support.refusal import Refusal
from verbc.support.registry import from_data
from verbc.support.rights import Access, Right, grants, rights_of

from .samples import DATA, verb_data

VALUES = st.text() | st.text("ab:*<> ", max_size=6)
WORDS = st.text("ab*", min_size=1, max_size=3)  # without colons
SCOPES = {
    "jobs:read": ["read job:*"],
    "jobs:first": ["read job:1", "write job:1"],
    "jobs:write": ["write job:*"],
    "tools": ["execute mcp:time:*", "execute verb:*"],
}


def right(template: str, **arguments: Any) -> Right:
    return Right.of(template, arguments)


def caller(*scopes: str, key: str | None = "k") -> Caller:
    return Caller("ada", None, frozenset(scopes), key)


def refusal(who: Caller, *rights: Right) -> Refusal:
    found = Access(SCOPES).refusal(who, rights)
    assert found is not None
    return found


def is_pattern(text: str) -> bool:
    return text == "*" or text.endswith(":*")


@pytest.mark.parametrize(
    ("grant", "template", "covered"),
    [
        ("execute verb:lithi.run", "execute verb:lithi.run", True),
        ("execute verb:lithi.run", "execute verb:lithi.running", False),
        ("execute verb:lithi.run", "read verb:lithi.run", False),
        ("execute verb:*", "execute verb:lithi.run", True),
        ("execute verb:*", "execute verbs:lithi.run", False),
        ("read job:*", "write job:1", False),
        ("admin job:*", "read job:1", False),
        ("execute verb:lithi.*", "execute verb:lithi.run", False),
        ("read job:*", "read job:*", True),
        ("read job:1", "read job:*", False),
        ("execute mcp:time:*", "execute mcp:time:now", True),
        ("execute mcp:time:*", "execute mcp:times:now", False),
        ("execute mcp:time:*", "execute mcp:time", False),
        ("execute mcp:*", "execute mcp:time:now", True),
    ],
)
def test_a_grant_covers_itself_or_all_that_begins_like_it(grant: str, template: str, covered: bool) -> None:
    assert grants(grant, right(template)) is covered


@given(VALUES, VALUES)
def test_a_value_matches_literally(granted: str, value: str) -> None:
    asked = right("read job:<id>", id=value)
    if not is_pattern(granted):
        assert grants(f"read job:{granted}", asked) is (granted == value)
    assert grants("read job:*", asked)
    assert not grants("write job:*", asked)


@given(VALUES, VALUES, WORDS)
def test_a_value_does_not_reach_beyond_its_place(server: str, tool: str, granted: str) -> None:
    asked = right("execute mcp:<server>:<tool>", server=server, tool=tool)
    assert grants(f"execute mcp:{granted}:*", asked) is (server == granted)


@given(VALUES, VALUES, WORDS, VALUES)
def test_several_values_are_not_taken_for_one_another(server: str, tool: str, first: str, second: str) -> None:
    asked = right("execute mcp:<server>:<tool>", server=server, tool=tool)
    if not is_pattern(second):
        assert grants(f"execute mcp:{first}:{second}", asked) is ((server, tool) == (first, second))


@pytest.mark.parametrize(
    ("server", "tool", "grant", "covered"),
    [
        ("a", "b:c", "execute mcp:a:b:c", True),
        ("a:b", "c", "execute mcp:a:b:c", False),
        ("a:b", "c", "execute mcp:a:*", False),
        ("a", "b:c", "execute mcp:a:*", True),
        ("a", "", "execute mcp:a:*", True),
        ("", "a", "execute mcp:a:*", False),
        ("*", "c", "execute mcp:a:*", False),
        ("a", "*", "execute mcp:a:b", False),
    ],
)
def test_a_colon_in_a_value_is_no_boundary(server: str, tool: str, grant: str, covered: bool) -> None:
    assert grants(grant, right("execute mcp:<server>:<tool>", server=server, tool=tool)) is covered


@given(VALUES)
def test_a_value_is_filled_in_once(value: str) -> None:
    asked = right("read job:of-<id>:<other>", id="<other>", other=value)
    assert asked.parts == ("read job", "of-<other>", value)


def test_a_name_may_have_a_colon() -> None:
    assert right("read job:<a:b>", **{"a:b": "1"}).parts == ("read job", "1")


@pytest.mark.parametrize("arguments", [{}, {"id": 1}, {"id": None}, {"id": ["1"]}])
def test_what_cannot_be_filled_in_is_no_right(arguments: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError)):
        Right.of("read job:<id>", arguments)


def test_a_verb_tells_its_rights() -> None:
    registry = from_data({**DATA, "verbs": [verb_data("v", requires=["read job:<id>", "execute verb:v"])]})
    assert [*rights_of(registry.verbs[0], {"id": "7"})] == [right("read job:7"), right("execute verb:v")]


@pytest.mark.parametrize("scopes", [{}, None])
def test_without_scopes_whoever_is_known_may_do_everything(scopes: dict[str, list[str]] | None) -> None:
    access = Access.of(from_data({**DATA, "access": {"verify": None, "scopes": scopes, "pin": {}}}))
    assert access.refusal(caller(), [right("admin job:1")]) is None
    assert access.refusal(LOCAL, [right("admin job:1")]) is None
    assert Access.of(from_data(DATA)).refusal(LOCAL, [right("admin job:1")]) is None


def test_scopes_add_up() -> None:
    access = Access(SCOPES)
    both = [right("read job:2"), right("write job:2")]
    assert access.refusal(caller("jobs:read", "jobs:write", "unheard"), both) is None
    assert access.refusal(caller("jobs:first"), [right("read job:1"), right("write job:1")]) is None
    assert access.refusal(caller(), []) is None


def test_the_scopes_that_would_do_are_told() -> None:
    error = refusal(caller("tools"), right("read job:<id>", id="1")).as_error()
    assert error == {
        "kind": "insufficient_scope",
        "message": "The key lacks a scope; each of `scopes` is enough.",
        "detail": {"scopes": ["jobs:read", "jobs:first"]},
    }


def test_only_what_is_missing_counts() -> None:
    found = refusal(caller("jobs:read"), right("read job:2"), right("write job:2"))
    assert found.detail == {"scopes": ["jobs:write"]}


def test_where_no_scope_is_enough_by_itself_all_of_them_are_told() -> None:
    found = refusal(caller(), right("read job:2"), right("write job:2"))
    assert found.message == "The key lacks scopes; it takes several of `scopes`."
    assert found.detail == {"scopes": ["jobs:read", "jobs:write"]}


@pytest.mark.parametrize("rights", [[right("admin job:1")], [right("read job:1"), right("admin job:1")]])
def test_where_no_scope_helps_none_is_told(rights: list[Right]) -> None:
    found = refusal(caller(), *rights)
    assert (found.kind, found.message, found.detail) == ("insufficient_scope", "No scope allows this.", {"scopes": []})


def test_whoever_has_no_key_has_no_scopes() -> None:
    for who in (LOCAL, Caller("bob")):
        found = refusal(who, right("read job:1"))
        assert (found.kind, found.detail) == ("denied", None)


@given(VALUES, st.sets(st.sampled_from([*SCOPES])), st.sets(st.sampled_from([*SCOPES])))
def test_more_scopes_never_allow_less(value: str, some: set[str], more: set[str]) -> None:
    access, asked = Access(SCOPES), [right("read job:<id>", id=value)]
    if access.refusal(caller(*some), asked) is None:
        assert access.refusal(caller(*some, *more), asked) is None


@given(st.sampled_from(["1", "2", "*", "1:*"]), st.sets(st.sampled_from([*SCOPES])))
def test_just_those_scopes_would_do_that_are_told(value: str, some: set[str]) -> None:
    access, asked = Access(SCOPES), [right("write job:<id>", id=value)]
    found = access.refusal(caller(*some), asked)
    if found is not None:
        assert found.detail is not None
        enough = {scope for scope in SCOPES if access.refusal(caller(*some, scope), asked) is None}
        assert enough == set(found.detail["scopes"])


@given(VALUES)
def test_nothing_of_a_value_is_told(value: str) -> None:
    sent = f"s3cret{value}"
    found = refusal(caller("jobs:first"), right("read job:<id>", id=sent), right("write job:<id>", id=sent))
    assert "s3cret" not in str(found.as_error())
