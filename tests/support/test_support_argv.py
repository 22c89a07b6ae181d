"""Command lines: complete tokens, and values that stay values whatever they hold."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from verbc.support.argv import extras, flag, json_flag, positionals, switch


class Row(BaseModel):
    from_: str = Field(alias="from")
    note: str | None = None
    size: int | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    playbook: str | None = None


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (None, []),
        (False, []),
        (True, ["--x"]),
        ("", ["--x="]),
        ("a b", ["--x=a b"]),
        ("--machine", ["--x=--machine"]),
        (7, ["--x=7"]),
        (-0.5, ["--x=-0.5"]),
        (1e30, ["--x=1e+30"]),
        (10**30, ["--x=" + "1" + "0" * 30]),
        ([], []),
        (["a", "", "-b"], ["--x=a", "--x=", "--x=-b"]),
        ([1, 2.5], ["--x=1", "--x=2.5"]),
        (["a", True], ["--x=a", "--x"]),
    ],
)
def test_flag(value: Any, tokens: list[str]) -> None:
    assert flag("--x", value) == tokens


@pytest.mark.parametrize(
    ("value", "default", "tokens"),
    [
        (None, False, []),
        (None, True, []),
        (False, False, []),
        (True, False, ["--x"]),
        (True, True, []),
        (False, True, ["--x"]),
    ],
)
def test_a_switch_stands_only_where_it_changes_something(value: bool | None, default: bool, tokens: list[str]) -> None:
    assert switch("--x", value, default=default) == tokens


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (None, []),
        (["-a", "b c"], ['--x=["-a", "b c"]']),
        ([], ["--x=[]"]),
        ({"k": [1, None, True]}, ['--x={"k": [1, null, true]}']),
        ("é\0", [r'--x="\u00e9\u0000"']),
        (Row.model_validate({"from": "a", "note": None}), ['--x={"from": "a", "note": null}']),
        ([Row.model_validate({"from": "a"})], ['--x=[{"from": "a"}]']),
    ],
)
def test_json_is_one_token(value: Any, tokens: list[str]) -> None:
    assert json_flag("--x", value) == tokens


@pytest.mark.parametrize(
    ("values", "tokens"),
    [
        ((), []),
        ((None, []), []),
        (("a",), ["--", "a"]),
        (("-x --machine", None, ["--from", "b"], 3, True), ["--", "-x --machine", "--from", "b", "3", "true"]),
        (("",), ["--", ""]),
        (("--",), ["--", "--"]),
    ],
)
def test_positionals_stand_behind_two_dashes(values: tuple[Any, ...], tokens: list[str]) -> None:
    assert positionals(*values) == tokens


def test_what_a_variant_adds_follows_the_same_conventions() -> None:
    params = Open.model_validate(
        {"playbook": "p", "max_ops": 7, "dry": True, "wet": False, "tag": ["a", "b"], "no": None}
    )
    assert extras(params) == ["--max-ops=7", "--dry", "--tag=a", "--tag=b"]


@pytest.mark.parametrize("name", ["", "-x", "a=b", "a b", "a\0", "--", "_a"])
def test_a_name_that_cannot_be_a_flag_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a flag"):
        extras(Open.model_validate({name: "v"}))


@pytest.mark.parametrize("value", [{"a": 1}, [["a"]], Row.model_validate({"from": "a"})])
def test_an_object_has_no_form_but_json(value: Any) -> None:
    with pytest.raises(TypeError):
        positionals(value)


def test_numbers_that_are_no_json_are_errors() -> None:
    with pytest.raises(ValueError, match="JSON"):
        flag("--x", float("nan"))


# argparse itself loses a value that is just `--` before Python 3.13; the tests above show that its token is right.
ANY_TEXT = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(
    lambda text: text != "--"
)
LIKE_OPTIONS = [
    "--machine",
    "---",
    "-",
    "-t",
    "--text",
    "--text=x",
    "--on",
    "--tex",
    "@file",
    "show",
    "-h",
    "--help",
    "=",
    "--rows=[]",
]
TEXTS = ANY_TEXT | st.sampled_from(LIKE_OPTIONS)
ROWS = st.recursive(TEXTS | st.integers() | st.booleans() | st.none(), lambda inner: st.lists(inner, max_size=3))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    made.add_argument("command", choices=["show"])
    made.add_argument("--machine", action="store_true")
    made.add_argument("--text")
    made.add_argument("--bare", nargs="?", const=True)
    made.add_argument("--number", type=int)
    made.add_argument("--many", action="append")
    made.add_argument("--on", action="store_true")
    made.add_argument("--rows", type=json.loads)
    made.add_argument("first")
    made.add_argument("rest", nargs="*")
    return made


@given(
    text=st.none() | TEXTS,
    bare=st.none() | st.just(True) | TEXTS,
    number=st.none() | st.integers(),
    many=st.none() | st.lists(TEXTS),
    on=st.none() | st.booleans(),
    rows=st.none() | ROWS,
    first=TEXTS,
    rest=st.lists(TEXTS),
)
def test_whatever_the_values_are_the_command_reads_them_back(
    text: str | None,
    bare: str | bool | None,
    number: int | None,
    many: list[str] | None,
    on: bool | None,
    rows: Any,
    first: str,
    rest: list[str],
) -> None:
    argv = [
        "show",
        "--machine",
        *flag("--text", text),
        *flag("--bare", bare),
        *flag("--number", number),
        *flag("--many", many),
        *switch("--on", on),
        *json_flag("--rows", rows),
        *positionals(first, rest),
    ]
    read = vars(parser().parse_args(argv))
    assert [read.pop("first"), *read.pop("rest")] == [first, *rest]
    assert read == {
        "command": "show",
        "machine": True,
        "text": text,
        "bare": bare,
        "number": number,
        "many": many or None,
        "on": bool(on),
        "rows": rows,
    }
    assert argv[argv.index("--") :] == ["--", first, *rest]
