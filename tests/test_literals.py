"""What the printers of literals print is a fixed point of the formatter, and comes back as what went in.

Each example is a batch: one file of many statements, formatted once.
"""

from __future__ import annotations

import ast
import keyword
import math
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from verbc.literals import (
    WIDTH,
    Code,
    bracketed,
    call,
    docstring,
    imports,
    literal_type,
    markdown,
    markdown_code,
    python,
    python_text,
    signature,
    toml,
    union,
)

# A failing batch is not made smaller: every step would start the formatter.
PHASES = (Phase.explicit, Phase.generate)
CHECKS = list(HealthCheck)
BATCHES = settings(
    max_examples=12, deadline=None, derandomize=True, database=None, phases=PHASES, suppress_health_check=CHECKS
)
SINGLES = settings(max_examples=100, deadline=None, derandomize=True, database=None)

NASTY = st.sampled_from(
    [
        *"\"'\\{}$#%|`<>&*/@:;,~-+= \t\n\r\0\x1b\x7f\x85\xa0éß€",
        "\u200b",
        "\u202e",
        "\u2028",
        "\ufeff",
        "\U0001f600",
        '"""',
        "'''",
    ]
)
TEXTS = st.lists(st.one_of(NASTY, st.characters(exclude_categories=["Cs"])), max_size=30).map("".join)
LONG_TEXTS = st.one_of(TEXTS, st.integers(50, 160).map(lambda length: "x" * length), st.just('it\'s "so" ' * 12))
NUMBERS = st.one_of(st.integers(), st.integers(10**20, 10**30), st.floats(allow_nan=False, allow_infinity=False))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, LONG_TEXTS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(LONG_TEXTS, inner, max_size=4), max_leaves=10
)
ODD_NAMES = [
    "A1",
    "A2",
    "A10",
    "a1",
    "a10",
    "a2",
    "AB",
    "Ab",
    "aB",
    "ab",
    "A_B",
    "A",
    "B_",
    "X1",
    "v1_2",
    "Z9_",
    "_types",
]


def names(length: int) -> st.SearchStrategy[str]:
    """Python names of at most a length; `verbc.names` cuts fields at 40, classes at 50 and functions at 64."""
    short = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,12}", fullmatch=True).filter(
        lambda name: not keyword.iskeyword(name)
    )
    return st.one_of(short, st.integers(length - 12, length).map(lambda count: "n" * count), st.sampled_from(ODD_NAMES))


FIELDS, CLASSES, FUNCTIONS = names(40), names(50), names(64)


def formatted(code: str) -> str:
    """The code as the pinned formatter has it."""
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", f"--line-length={WIDTH}"]
    done = subprocess.run(
        [*ruff, "--target-version=py311", "-"], input=code, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def linted(code: str, rules: str) -> str:
    """What the pinned linter says of the code, or nothing."""
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format=concise"]
    arguments = [*ruff, f"--line-length={WIDTH}", "--target-version=py311", f"--select={rules}", "-"]
    done = subprocess.run(arguments, input=code, capture_output=True, encoding="utf-8", check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal down to their types and the signs of zeros."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other and (not isinstance(one, float) or math.copysign(1, one) == math.copysign(1, other)))


def body(statements: Iterable[str]) -> str:
    return "\n".join(statements) + "\n"


@BATCHES
@given(st.lists(VALUES, min_size=10, max_size=40))
@example([1e16, 1e22, 1e-7, -0.0, 1.5e300, 5e-324, -1, 10**40, True, None, "", [], {}, [[]], [{}], {"": []}])
def test_values_are_formatted_and_come_back(values: list[Any]) -> None:
    code = body(f"x{number} = {python(['first', value])}" for number, value in enumerate(values))
    code += f"y = {bracketed('Field(', [f'default={python(value, 4)}' for value in values[:1]], ')', explode=True)}\n"
    assert formatted(code) == code
    assigned = [statement.value for statement in ast.parse(code).body if isinstance(statement, ast.Assign)]
    found = [ast.literal_eval(node)[1] for node in assigned[: len(values)]]
    assert all(map(same, found, values))


@SINGLES
@given(TEXTS)
@example('it\'s "so"')
@example("'")
@example('\\"')
@example("\ud7ff\ue000\U0010ffff")
def test_text_is_one_ascii_line_and_comes_back(text: str) -> None:
    code = python_text(text)
    assert isinstance(code, Code)
    assert code.isascii()
    assert code.isprintable()
    assert ast.literal_eval(code) == text


@BATCHES
@given(st.lists(TEXTS, min_size=20, max_size=60))
@example(
    [
        '"',
        "'",
        "\"'",
        '"\'"',
        "''\"",
        '\\"',
        "\\'",
        "{\"'}",
        'it\'s "so"',
        "it's \"",
        "N{DASH}",
        "\\N{DASH}",
        "\x00",
        "\x7f",
    ]
)
def test_texts_have_the_quotes_of_the_formatter(texts: list[str]) -> None:
    code = f"x = {bracketed('[', map(python_text, texts), ']', explode=True)}\n"
    assert formatted(code) == code


@BATCHES
@given(st.lists(TEXTS.filter(str.strip), min_size=10, max_size=40))
@example(
    [
        '"',
        '"a"',
        'a"',
        '""',
        '"""',
        '""""',
        'a""',
        "\\",
        "a\\",
        '\\"',
        "a \\ b",
        "'",
        " a ",
        "a\n\nb",
        "{x}",
        "\x00",
        "a\\\\",
    ]
)
def test_docstrings_are_formatted_and_come_back(texts: list[str]) -> None:
    code = "\n\n".join(f"class X{number}:\n    {docstring(text)}\n" for number, text in enumerate(texts))
    assert formatted(code) == code
    found = [ast.get_docstring(node, clean=False) for node in ast.parse(code).body if isinstance(node, ast.ClassDef)]
    assert [str(text).strip() for text in found] == [" ".join(text.split()) for text in texts]


def test_an_empty_docstring_is_formatted() -> None:
    code = f"class X:\n    {docstring(' ')}\n"
    assert formatted(code) == code


MEMBERS = st.one_of(CLASSES, st.sampled_from(["int", "str", "list[str]", "dict[str, Any]", 'Literal["a"]', "None"]))


@BATCHES
@given(st.lists(st.tuples(CLASSES, st.lists(MEMBERS, min_size=1, max_size=8, unique=True)), min_size=10, max_size=30))
@example([("X" * count, ["a" * 28, "b" * 28, "c" * 28]) for count in range(15, 40)])
@example([("X", ["a" * 28, "b" * 28, "c" * 28, "d" * count]) for count in range(1, 40)])
def test_unions_are_formatted(aliases: list[tuple[str, list[str]]]) -> None:
    code = body(union(f"{name} = ", members) for name, members in aliases)
    assert formatted(code) == code


@BATCHES
@given(st.lists(st.tuples(FIELDS, st.lists(CLASSES, min_size=1, max_size=8, unique=True)), min_size=5, max_size=20))
@example([("m" * count, ["N" * 50]) for count in range(30, 60)])
@example([("m", ODD_NAMES)])
def test_imports_are_formatted_and_sorted(lines: list[tuple[str, list[str]]]) -> None:
    code = "\n\n".join(f"def f{number}():\n    {printed(*line)}\n" for number, line in enumerate(lines))
    assert formatted(code) == code
    assert linted(code, "I") == ""


def printed(module: str, names: list[str]) -> str:
    """An import inside a function, where its lines are indented and each is sorted alone."""
    return imports(f"package.models.{module}", names, 4)


ARGUMENTS = st.lists(st.one_of(TEXTS.map(python_text), FIELDS.map("params.{}".format)), min_size=1, max_size=4)
CALLED = st.sampled_from(["flag", "switch", "json_flag", "positionals"])


@BATCHES
@given(st.lists(st.tuples(CALLED, ARGUMENTS), min_size=10, max_size=30))
@example([("flag", ['"--x"', "a" * count]) for count in range(90, 110)])
@example([("positionals", ["a" * count]) for count in range(90, 110)])
def test_calls_are_formatted(calls: list[tuple[str, list[str]]]) -> None:
    entries = bracketed("[", ["first", *(call(f"*{name}", given, 8, 8) for name, given in calls)], "]", 4, explode=True)
    code = f"def function() -> list[str]:\n    return {entries}\n"
    assert formatted(code) == code


@BATCHES
@given(st.lists(st.tuples(FUNCTIONS, st.sampled_from([["call"], ["params", "call"]])), min_size=10, max_size=30))
def test_awaited_calls_are_formatted(calls: list[tuple[str, list[str]]]) -> None:
    lines = (f"    return await {call(f'handlers.{name}', given, 17, 4)}" for name, given in calls)
    code = "\n\n".join(f"async def function{number}() -> object:\n{line}\n" for number, line in enumerate(lines))
    assert formatted(code) == code


PARAMETERS = st.lists(CLASSES.map("params: {}".format), max_size=1)


@BATCHES
@given(st.lists(st.tuples(names(60), PARAMETERS, CLASSES), min_size=10, max_size=30))
@example([("f" * count, ["params: " + "N" * 50], "n" * 20) for count in range(10, 60)])
def test_signatures_are_formatted(functions: list[tuple[str, list[str], str]]) -> None:
    printed = [
        signature(f"async def {name}{number}", ["self", *given, "call: Call"], returns)
        for number, (name, given, returns) in enumerate(functions)
    ]
    code = "\n\n".join(f"{line}\n    return None\n" for line in printed)
    assert formatted(code) == code


def test_brackets_of_one_are_formatted() -> None:
    name = "n" * 20
    texts = [python_text("x" * length) for length in range(1, 130)]
    code = body(f"{name} = {bracketed('[', [text], ']', column=len(name) + 3)}" for text in texts)
    assert formatted(code) == code


@BATCHES
@given(st.lists(st.tuples(CLASSES, st.lists(st.one_of(LONG_TEXTS, st.integers()), min_size=1, max_size=4)), min_size=5))
@example([("N" * count, ["x" * 60]) for count in range(1, 51)])
def test_literal_types_are_formatted(types: list[tuple[str, list[Any]]]) -> None:
    code = body(literal_type(f"{name} = ", values) for name, values in types)
    assert formatted(code) == code


@SINGLES
@given(TEXTS, st.lists(TEXTS, max_size=4))
@example("\x7f\x00\x1f\u2028", ['"', "\\"])
def test_toml_comes_back(text: str, texts: list[str]) -> None:
    code = f"text = {toml(text)}\ntexts = {toml(texts)}\n"
    assert code.isascii()
    assert tomllib.loads(code) == {"text": text, "texts": texts}


@SINGLES
@given(TEXTS)
@example("a|b")
@example("\\|")
@example("`|`")
@example("a\\")
def test_markdown_is_one_line_of_one_cell(text: str) -> None:
    for code in (markdown(text), markdown_code(text)):
        assert code.isprintable()
        assert cells(f"| {code} | x |") == 2


def cells(row: str) -> int:
    """The cells of a table row, as GitHub counts them: a bar ends a cell unless a backslash stands right before it."""
    bars = [place for place, character in enumerate(row) if character == "|" and row[place - 1 : place] != "\\"]
    return len(bars) - 1
