"""From the end of a command to a result or a refusal: every way a reply can be right or wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from verbc.support.foreign_text import DETAIL_CHARACTERS, TEXT_CHARACTERS, short_text, short_value
from verbc.support.pointer import MISSING, look_up
from verbc.support.process import Finished
from verbc.support.refusal import BUILT_IN_KINDS, Refusal
from verbc.support.registry import Run
from verbc.support.reply import read_reply

ENVELOPE = {
    "form": "pointers",
    "expect": {"/contract_version": [1]},
    "ok": "/ok",
    "result": {"contract_version": "/contract_version", "data": "/data"},
    "error": "/error",
}
JSON, TEXT, LINES = {"form": "json"}, {"form": "text"}, {"form": "lines"}
KINDS = {**BUILT_IN_KINDS, "quote_expired": "It is too late."}
REFUSALS = {"3": "not_found"}


def read(stdout: Any, form: Mapping[str, Any], code: int = 0, stderr: str = "noise") -> Any:
    output = stdout if isinstance(stdout, bytes) else json.dumps(stdout).encode()
    run = Run("li", ("schedule", "create"), form, REFUSALS, "schedule", "schedule_create")
    return read_reply(Finished(code, output, stderr), run, KINDS)


def refused(stdout: Any, form: Mapping[str, Any], code: int = 0) -> dict[str, Any]:
    with pytest.raises(Refusal) as refusal:
        read(stdout, form, code)
    assert "noise" not in refusal.value.message
    return refusal.value.as_error()


def internal(stdout: Any, form: Mapping[str, Any], code: int = 0) -> str:
    """The message of a refusal that has nothing but the kind `internal` and what the command said on stderr."""
    error = refused(stdout, form, code)
    assert error["kind"] == "internal"
    assert error["detail"]["stderr"] == "noise"
    assert "`schedule create`" in error["message"]
    return str(error["message"])


def envelope(**members: Any) -> dict[str, Any]:
    return {"ok": True, "contract_version": 1, "data": {"id": "s1"}, "error": None, **members}


def error(**members: Any) -> dict[str, Any]:
    return envelope(ok=False, data=None, error=members)


def test_a_result_is_put_together_from_its_places() -> None:
    assert read(envelope(), ENVELOPE) == {"contract_version": 1, "data": {"id": "s1"}}


def test_a_result_may_be_null_but_not_missing() -> None:
    assert read(envelope(data=None), ENVELOPE) == {"contract_version": 1, "data": None}
    assert "`/data`" in internal({"ok": True, "contract_version": 1}, ENVELOPE)


@pytest.mark.parametrize(
    ("result", "value"),
    [(None, {"a": [1, 2]}), ("", {"a": [1, 2]}), ("/a/1", 2), ({"x": "/a/0", "y": "/a"}, {"x": 1, "y": [1, 2]})],
)
def test_where_a_result_stands_without_ok(result: Any, value: Any) -> None:
    assert read({"a": [1, 2]}, {"form": "pointers", "result": result}) == value


@pytest.mark.parametrize(
    ("stdout", "value"), [(b'{"a": 1.0}\n', {"a": 1}), (b"[]", []), (b" null ", None), (b'"x"', "x")]
)
def test_json_is_the_result(stdout: bytes, value: Any) -> None:
    assert read(stdout, JSON) == value


@pytest.mark.parametrize(
    ("stdout", "text", "lines"),
    [
        (b"", "", []),
        (b"\n", "\n", [""]),
        (b"a\nb\n", "a\nb\n", ["a", "b"]),
        (b"a\r\nb", "a\r\nb", ["a", "b"]),
        ("é\u2028x\n\n".encode(), "é\u2028x\n\n", ["é\u2028x", ""]),
        (b"\xff", "\ufffd", ["\ufffd"]),
    ],
)
def test_text_and_lines(stdout: bytes, text: str, lines: list[str]) -> None:
    assert read(stdout, TEXT) == text
    assert read(stdout, LINES) == lines


@pytest.mark.parametrize("form", [ENVELOPE, JSON])
@pytest.mark.parametrize(
    ("stdout", "told"),
    [
        (b"", "ended with exit code 0 without a reply"),
        (b" \n", "without a reply"),
        (b"Usage: li", "`schedule create` is not JSON."),
        (b'{"ok": true', "`schedule create` is not JSON."),
        (b"12 monkeys", "`schedule create` is not JSON."),
        (b'{"ok": true}\n{"ok": true}\n', "more than one JSON document"),
        (b"1 2", "more than one JSON document"),
        (b'{"data": NaN}', "not finite"),
        (b'{"data": -Infinity}', "not finite"),
        (b'{"data": 1e999}', "not finite"),
        (b'{"ok": true, "ok": false}', "same key twice"),
        (b'{"data": "\\ud800"}', "not valid Unicode"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100 + b"]" * 100, "nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b"9" * 10_000, "too long"),
    ],
)
def test_what_is_no_usable_json_is_told_apart(form: Mapping[str, Any], stdout: bytes, told: str) -> None:
    assert told in internal(stdout, form)


def test_a_program_that_dies_without_a_reply_is_told_with_its_end() -> None:
    assert "exit code 4" in internal(b"", ENVELOPE, 4)
    assert "signal 9" in internal(b"", ENVELOPE, -9)


@pytest.mark.parametrize("stdout", ["text", 1, None, True])
def test_an_envelope_is_an_object(stdout: Any) -> None:
    assert "not an object" in internal(stdout, ENVELOPE)


@pytest.mark.parametrize("ok", [None, 1, "true", []])
def test_ok_is_a_boolean(ok: Any) -> None:
    assert "whether it went well" in internal(envelope(ok=ok), ENVELOPE)


def test_ok_is_there() -> None:
    assert "whether it went well" in internal({"contract_version": 1}, ENVELOPE)


@pytest.mark.parametrize("version", [2, "1", True, None, 1.5, [1], {"x": "y" * 100_000}])
def test_another_contract_is_one_clean_refusal(version: Any) -> None:
    for document in (envelope(contract_version=version), {**error(kind="conflict"), "contract_version": version}):
        refusal = refused(document, ENVELOPE)
        assert refusal["kind"] == "internal"
        assert refusal["detail"]["at"] == "/contract_version"
        assert refusal["detail"]["accepted"] == [1]
        assert len(json.dumps(refusal)) < 5000


def test_a_missing_contract_is_refused_too() -> None:
    assert "found" not in refused({"ok": True, "data": 1}, ENVELOPE)["detail"]


def test_a_contract_of_several_values() -> None:
    form = {**ENVELOPE, "expect": {"/contract_version": [1, 2], "/kind": ["x"]}}
    assert read(envelope(contract_version=2.0, kind="x"), form)["contract_version"] == 2


def test_ok_with_an_exit_code_is_no_result() -> None:
    assert "exit code 3" in internal(envelope(), ENVELOPE, 3)


@pytest.mark.parametrize("code", [0, 4, -15])
def test_a_refusal_is_passed_on_at_any_exit_code(code: int) -> None:
    document = error(kind="conflict", message="It runs.", detail={"run": 7})
    how = {"exit_code": code, "stderr": "noise"} if code else {}
    detail = {"run": 7, **how}
    assert refused(document, ENVELOPE, code) == {"kind": "conflict", "message": "It runs.", "detail": detail}


@pytest.mark.parametrize("code", [0, 4])
@pytest.mark.parametrize("missing", [None, {}, "boom", [], {"kind": None, "other": 1}])
def test_a_refusal_that_says_nothing(missing: Any, code: int) -> None:
    assert "without saying why" in internal({**error(), "error": missing}, ENVELOPE, code)


def test_a_kind_that_nobody_declared_stays_in_the_detail() -> None:
    refusal = refused(error(kind="weird_kind", message="hm", detail={"a": 1}), ENVELOPE)
    assert refusal["kind"] == "internal"
    assert refusal["detail"] == {"kind": "weird_kind", "message": "hm", "detail": {"a": 1}}
    assert "hm" not in refusal["message"]


@pytest.mark.parametrize("kind", [1, ["conflict"], {"a": 1}, ""])
def test_a_kind_that_is_no_text_is_none(kind: Any) -> None:
    refusal = refused(error(kind=kind, message="hm"), ENVELOPE)
    assert (refusal["kind"], refusal["detail"]) == ("internal", {"kind": kind, "message": "hm"})


def test_a_declared_kind_of_the_spec_is_passed_on() -> None:
    assert refused(error(kind="quote_expired", message="m"), ENVELOPE) == {"kind": "quote_expired", "message": "m"}


def test_a_refusal_without_a_kind_has_the_one_of_its_exit_code() -> None:
    for code, kind in ((3, "not_found"), (4, "internal")):
        how = {"exit_code": code, "stderr": "noise"}
        assert refused(error(message="gone"), ENVELOPE, code) == {"kind": kind, "message": "gone", "detail": how}
    refusal = refused(error(kind="nope", message="gone"), ENVELOPE, 3)
    how = {"exit_code": 3, "stderr": "noise"}
    assert refusal == {"kind": "not_found", "message": "gone", "detail": {"kind": "nope", "message": "gone", **how}}


@pytest.mark.parametrize(
    "stdout", [b"", b"plain text", b"[1", b"7", b"{}", b'{"contract_version": 1, "ok": 7}', b"1 2"]
)
def test_a_reply_that_cannot_be_read_has_the_kind_of_its_exit_code(stdout: bytes) -> None:
    for code, kind in ((3, "not_found"), (4, "internal"), (-9, "internal")):
        refusal = refused(stdout, ENVELOPE, code)
        assert refusal["kind"] == kind
        assert refusal["detail"].items() >= {"exit_code": code, "stderr": "noise"}.items()
    at_zero = refused(stdout, ENVELOPE, 0)
    assert at_zero["kind"] == "internal"
    assert "exit_code" not in at_zero["detail"]


def test_a_failed_command_that_says_it_went_well_is_internal_whatever_its_exit_code() -> None:
    refusal = refused(envelope(), ENVELOPE, 3)
    assert (refusal["kind"], refusal["detail"]) == ("internal", {"exit_code": 3, "stderr": "noise"})


@pytest.mark.parametrize("message", [None, 7, "", "  "])
def test_a_refusal_without_a_message_gets_one(message: Any) -> None:
    refusal = refused(error(kind="conflict", message=message), ENVELOPE)
    assert refusal == {"kind": "conflict", "message": "`schedule create` was refused."}


def test_the_places_of_an_error_may_be_anywhere() -> None:
    form = {**ENVELOPE, "error": {"kind": "/type", "message": "/errors/0", "detail": ""}}
    document = {**envelope(ok=False), "type": "conflict", "errors": ["no"]}
    assert refused(document, form) == {"kind": "conflict", "message": "no", "detail": document}


@pytest.mark.parametrize("detail", ["text", 7, ["a"]])
def test_a_detail_that_is_no_object_becomes_one(detail: Any) -> None:
    assert refused(error(kind="conflict", message="m", detail=detail), ENVELOPE)["detail"] == {"detail": detail}


def test_foreign_texts_are_escaped_and_bounded() -> None:
    document = error(kind="conflict", message="a\x1b[31m\u202e" + "m" * 9999, detail={"k\0": ["\u2066x"], "big": "v"})
    refusal = refused(document, ENVELOPE)
    assert refusal["message"].startswith("a\\u001b[31m\\u202emmm")
    assert len(refusal["message"]) == TEXT_CHARACTERS
    assert refusal["detail"] == {"k\\u0000": ["\\u2066x"], "big": "v"}
    huge = refused(error(kind="conflict", message="m", detail={"a": "b" * 20_000}), ENVELOPE)["detail"]
    assert len(json.dumps(huge)) < TEXT_CHARACTERS + 100


@pytest.mark.parametrize("form", [JSON, TEXT, LINES, {"form": "pointers", "result": "/data"}])
def test_without_ok_another_exit_code_is_a_refusal(form: Mapping[str, Any]) -> None:
    assert refused(b"", form, 2) == {
        "kind": "internal",
        "message": "`schedule create` ended with exit code 2.",
        "detail": {"exit_code": 2, "stderr": "noise"},
    }
    assert refused(b"", form, 3)["kind"] == "not_found"
    assert refused(b"", form, -9)["message"] == "`schedule create` was ended by signal 9."


def test_what_a_failed_command_printed_is_kept() -> None:
    assert refused({"left": 1}, JSON, 3)["detail"] == {"output": {"left": 1}, "exit_code": 3, "stderr": "noise"}
    assert refused(b"half\x1b", TEXT, 1)["detail"]["output"] == "half\\u001b"
    assert len(refused(b"x" * 100_000, TEXT, 1)["detail"]["output"]) == TEXT_CHARACTERS


def test_without_ok_an_error_may_still_be_read() -> None:
    form = {"form": "pointers", "result": "/data", "error": {"message": "/why", "kind": "/kind"}}
    refusal = refused({"why": "It runs.", "kind": "conflict"}, form, 1)
    assert refusal == {"kind": "conflict", "message": "It runs.", "detail": {"exit_code": 1, "stderr": "noise"}}
    assert refused({"other": 1}, form, 3)["message"] == "`schedule create` ended with exit code 3."
    assert refused(b"no JSON", form, 3)["detail"]["output"] == "no JSON"


DOCUMENT = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, " ": 7, "~1": 9, "k": {"0": "zero"}, "none": None}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/m~0n", 8),
        ("/ ", 7),
        ("/~01", 9),
        ("/k/0", "zero"),
        ("/none", None),
        ("/foo/2", MISSING),
        ("/foo/-", MISSING),
        ("/foo/01", MISSING),
        ("/foo/-1", MISSING),
        ("/foo/\u0660", MISSING),
        ("/foo/" + "9" * 5000, MISSING),
        ("/foo/0/0", MISSING),
        ("/none/x", MISSING),
        ("/nope", MISSING),
    ],
)
def test_pointers(pointer: str, value: Any) -> None:
    assert look_up(DOCUMENT, pointer) == value


def test_ordinary_text_stays_as_it_is() -> None:
    text = "é 日本 👩\u200d💻\n\tnon\u00a0breaking"
    assert short_text(text) == text
    assert short_text("\x7f\u009b\U000e0041\ufeff") == "\\u007f\\u009b\\U000e0041\\ufeff"


def test_the_limits_are_exact() -> None:
    assert short_text("x" * 10, 10) == "x" * 10
    assert short_text("x" * 11, 10) == "x" * 9 + "…"
    fitting = "x" * (DETAIL_CHARACTERS - 2)
    assert short_value(fitting) == fitting
    assert short_value(fitting + "x") == '"' + "x" * (TEXT_CHARACTERS - 2) + "…"
