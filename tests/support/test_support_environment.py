"""Values from the environment, and the environment of a child."""

from __future__ import annotations

import pytest

from verbc.support.environment import MissingVariableError, child_environment, expand

ENVIRON = {"HOME": "/h", "EMPTY": "", "LC_ALL": "C", "LC_TIME": "de", "TOKEN": "t", "TRICK": "${TOKEN}"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("${HOME}/x", "/h/x"),
        ("${HOME}${LC_ALL}", "/hC"),
        ("${MISSING:-li}", "li"),
        ("${EMPTY:-li}", "li"),
        ("${HOME:-li}", "/h"),
        ("${MISSING:-}", ""),
        ("${MISSING:-a b:-c}", "a b:-c"),
        ("${TRICK}", "${TOKEN}"),
        ("$HOME ${} ${1} ${HOME", "$HOME ${} ${1} ${HOME"),
    ],
)
def test_references_are_replaced(text: str, value: str) -> None:
    assert expand(text, ENVIRON) == value


@pytest.mark.parametrize(("text", "message"), [("${NONE}", "`NONE` is not set"), ("x${EMPTY}", "`EMPTY` is empty")])
def test_a_variable_without_value_and_default_is_named(text: str, message: str) -> None:
    with pytest.raises(MissingVariableError, match=message):
        expand(text, ENVIRON)


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ([], {}),
        (["HOME", "NONE"], {"HOME": "/h"}),
        (["LC_*"], {"LC_ALL": "C", "LC_TIME": "de"}),
        (["*KEN"], {"TOKEN": "t"}),
        (["lc_*", "LC"], {}),
        (["NO_COLOR=1", "A=b=c", "E="], {"NO_COLOR": "1", "A": "b=c", "E": ""}),
        (["HOME=/x", "HOME"], {"HOME": "/x"}),
        (["KEY=${TOKEN}", "OTHER=${NONE:-o}"], {"KEY": "t", "OTHER": "o"}),
    ],
)
def test_a_child_gets_what_is_listed(allowed: list[str], expected: dict[str, str]) -> None:
    assert child_environment(allowed, ENVIRON) == expected


def test_a_setting_without_its_variable_is_an_error() -> None:
    with pytest.raises(MissingVariableError, match="NONE"):
        child_environment(["KEY=${NONE}"], ENVIRON)
