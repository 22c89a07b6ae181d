"""What commands print: tables, and JSON that no terminal takes for anything but text."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.printing import failed, json_line, json_lines, printed, table, tell

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_table_has_its_columns_below_one_another() -> None:
    assert table([("a", "b", "c"), ("long", "", "x"), ("y", "zz", "")]) == ["a     b   c", "long      x", "y     zz"]


@given(JSON)
def test_json_is_plain_ascii_and_the_same_value(value: Any) -> None:
    lines = json_lines(value)
    assert json.loads("\n".join(lines)) == value
    assert json.loads(json_line(value)) == value
    for line in (*lines, json_line(value)):
        assert line.isascii()
        assert line.isprintable()


def test_the_keys_of_a_long_value_are_sorted() -> None:
    assert json_lines({"b": 1, "a": [True, "\u202e\x1b\x7f"]}) == [
        "{",
        '  "a": [',
        "    true,",
        '    "\\u202e\\u001b\\u007f"',
        "  ],",
        '  "b": 1',
        "}",
    ]
    assert json_line({"b": 1, "a": 2}) == '{"b": 1, "a": 2}'


def test_lines_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(iter(["a", "b"]), "sample") == 0
    assert printed([], "sample") == 0
    assert capsys.readouterr() == ("a\nb\n", "")


def test_all_else_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    tell("sample", "So it is.")
    assert failed("sample", "It cannot be.") == 1
    assert capsys.readouterr() == ("", "sample: So it is.\nsample: It cannot be.\n")


CLOSED = """
import os, sys
from verbc.support.printing import prepare_stdout, printed, tell

prepare_stdout()
opened = os.open(os.devnull, os.O_RDONLY)
tell("sample", "So it is.")
os._exit(printed(["a"], "sample") if opened > 2 else 9)
"""


@pytest.mark.parametrize(
    ("redirected", "code", "out", "err"),
    [
        (">&-", 1, "", "sample: So it is.\nsample: Cannot print: stdout is closed.\n"),
        ("2>&-", 0, "a\n", ""),
        ("<&-", 0, "a\n", "sample: So it is.\n"),
        (">&- 2>&- <&-", 1, "", ""),
        ("2>/dev/full", 0, "a\n", ""),
        (">/dev/full", 1, "", "sample: So it is.\nsample: Cannot print: No space left on device.\n"),
    ],
)
def test_what_is_closed_takes_nothing(redirected: str, code: int, out: str, err: str) -> None:
    command = ["/bin/sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-c", CLOSED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, out, err)


def test_a_reader_that_leaves_ends_it_in_silence() -> None:
    program = (
        "import sys; from verbc.support.printing import printed; sys.exit(printed(map(str, range(10**9)), 'sample'))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
