"""YAML as JSON values: what looks like something else stays text, and what could grow, hide or be doubled is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.strict_yaml import YamlError, load_yaml

TEXTS = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029\ufeff\ufffe\uffff"), max_size=12
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


def problem(text: str) -> str:
    with pytest.raises(YamlError) as error:
        load_yaml(text)
    return str(error.value)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("7", 7),
        ("-7", -7),
        ("0", 0),
        ("1.5", 1.5),
        ("1.0", 1),
        ("-0.25e2", -25),
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("True", "True"),
        ("NULL", "NULL"),
        ("~", "~"),
        ("2026-09-30", "2026-09-30"),
        ("012", "012"),
        ("0o17", "0o17"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("+7", "+7"),
        (".5", ".5"),
        ("12:30:00", "12:30:00"),
        ("=", "="),
        ("'7'", "7"),
        ('"true"', "true"),
        ("''", ""),
        ('"a\\tb"', "a\tb"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">\n  a\n  b\n", "a b\n"),
        ("read mcp:time:*", "read mcp:time:*"),
    ],
)
def test_a_scalar_is_what_it_looks_like_in_json(written: str, value: Any) -> None:
    found = load_yaml(f"key: {written}")
    assert found == {"key": value}
    assert type(found["key"]) is type(value)


def test_lists_and_maps_nest() -> None:
    text = "a:\n  - b: 1\n    c: [x, {d: 2}]\n  - []\n  - {}\n"
    assert load_yaml(text) == {"a": [{"b": 1, "c": ["x", {"d": 2}]}, [], {}]}


def test_one_scalar_is_a_document() -> None:
    assert load_yaml("7") == 7
    assert load_yaml("--- x\n...\n") == "x"


def test_an_alias_stands_for_what_its_anchor_names() -> None:
    assert load_yaml("a: &x [1, {b: 2}]\nc: *x\nd: &y t\ne: *y") == {
        "a": [1, {"b": 2}],
        "c": [1, {"b": 2}],
        "d": "t",
        "e": "t",
    }


@given(VALUES)
def test_json_is_yaml(value: Any) -> None:
    expected = json.loads(json.dumps(value))
    for text in (json.dumps(value), json.dumps(value, indent="\t"), json.dumps(value, ensure_ascii=False)):
        if isinstance(value, list | dict):
            assert load_yaml(text) == expected


@given(VALUES)
def test_what_others_write_is_read(value: Any) -> None:
    text = yaml.safe_dump(value, allow_unicode=True, default_style='"')
    if isinstance(value, str):
        assert load_yaml(text) == value


@given(st.text(max_size=40) | st.text("ab:-[]{}&*!|>'\"\n #,%", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    told = ""
    try:
        json.dumps(load_yaml(text), allow_nan=False)
    except YamlError as error:
        told = str(error).removeprefix(f"line {error.line}, column {error.column}: ")
    assert told.isprintable()
    assert not told.startswith("line ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1, column 1: there is nothing in it"),
        ("# only a remark\n", "line 1, column 1: there is nothing in it"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1: the key `a` is there before"),
        ('a: 1\n"a": 3', "line 2, column 1: the key `a` is there before"),
        ('{"a": 1,\n "a": 2}', "line 2, column 2: the key `a` is there before"),
        ("a: 1\n---\nb: 2", "line 2, column 1: a second document begins here"),
        ("1: x", "line 1, column 1: the key `1` is no text; put it in quotes"),
        ("true: x", "line 1, column 1: the key `true` is no text"),
        ("null: x", "line 1, column 1: the key `null` is no text"),
        ("? \n: x", "is no text"),
        ("? [a]\n: x", "line 1, column 3: a key has to be plain text"),
        ("{a: 1}: x", "line 1, column 1: a key has to be plain text"),
        ("&k a: x", "line 1, column 1: a key has to be plain text"),
        ("!!str a: x", "line 1, column 1: a key has to be plain text"),
        ("a: &x 1\n*x : 2", "line 2, column 1: a key has to be plain text"),
        ("a: !!python/object:os.system x", "line 1, column 4: the tag `!!python/object:os.system` has no meaning here"),
        ("a: !!int 7", "line 1, column 4: the tag `!!int` has no meaning here"),
        ("a: !secret [x]", "line 1, column 4: the tag `!secret` has no meaning here"),
        ("a: .nan", "line 1, column 4: `.nan` is no number that JSON has"),
        ("a: -.inf", "`-.inf` is no number that JSON has"),
        ("a: NaN", "`NaN` is no number that JSON has"),
        ('{"a": Infinity}', "`Infinity` is no number that JSON has"),
        ("a: 1e999", "line 1, column 4: this number is not finite"),
        ("a: " + "9" * 5000, "line 1, column 4: this number is too long"),
        ("a:", "there is no value here; write one, or take this out"),
        ("- x\n-", "there is no value here"),
        ("a: &x\n  - *x", "line 2, column 5: the alias `x` holds itself"),
        ("a: *x", "line 1, column 4: the alias `x` has no anchor before it"),
        ("a: &x 1\nb: &x 2", "line 2, column 4: the anchor `x` is defined twice"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "line 3, column 3: merge keys are not read"),
        (BOMB, "aliases repeat too much; write it out"),
        (f"a: &x {'y' * 2000}\nb: [{', '.join(['*x'] * 600)}]", "aliases repeat too much"),
        ("[" * 65 + "]" * 65, "line 1, column 65: this is nested more than 64 deep"),
        ('{"a":' * 65 + "1" + "}" * 65, "this is nested more than 64 deep"),
        ("[" * 50_000, "nested more than 64 deep"),
        ("a: b: c", "line 1, column 5: this colon would begin a map; put a text that holds one in quotes"),
        ("a: @b", "line 1, column 4: no text can begin with this character; put it in quotes"),
        ("a: [b", "this is not YAML: "),
        ("a: 'b", "this is not YAML: "),
        ("a: \x07", "line 1, column 4: the character U+0007 cannot stand here; take it out"),
        ("\ufeffa: b", "line 1, column 1: the character U+FEFF cannot stand here"),
        ("a: b\u2028c", "line 1, column 5: the character U+2028 cannot stand here"),
        ("a: \ud800", "the character U+D800 cannot stand here"),
        ('a: "\\0"', "line 1, column 4: the character U+0000 cannot stand here"),
        ('"\\e": b', "line 1, column 1: the character U+001B cannot stand here"),
        ('{"a": "\\ud800"}', "this is not YAML"),
        ("%YAML 3.0\n---\na: b", "this is not YAML"),
    ],
)
def test_what_is_not_taken_is_told_by_its_place(text: str, told: str) -> None:
    assert told in problem(text)


def test_what_is_nested_64_deep_is_read() -> None:
    for text in ("[" * 64 + "]" * 64, "- " * 64 + "x"):
        value = load_yaml(text)
        for _ in range(63):
            (value,) = value
        assert value in ([], ["x"])


def test_without_a_fast_parser_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert load_yaml("a: [1, x, &y {b: 2026-09-30}, *y]") == {"a": [1, "x", {"b": "2026-09-30"}, {"b": "2026-09-30"}]}
    assert problem("a: 1\na: 2") == "line 2, column 1: the key `a` is there before"
    assert problem("a: b: c") == "line 1, column 5: this colon would begin a map; put a text that holds one in quotes"
    assert "nested" in problem("[" * 5_000)
