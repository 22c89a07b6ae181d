"""Random schemas: what a schema accepts its typed view accepts and gives back, and the code of the view is clean."""

from __future__ import annotations

import itertools
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from verbc.support.validation import bounded_result
from verbc.testing.values import accepted

from .compiled import Server, files_of, same, served, taking
from .schemas_at_random import TYPES, verbs

QUIETLY = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # making a failing spec smaller takes minutes
)
HANDLERS = '"""Nothing is called here."""\n\n\nclass Handlers:\n    pass\n'


def whole(name: str, partial: dict[str, Any]) -> dict[str, Any]:
    return {"summary": f"The verb {name}.", "run": {"local": name}, **partial}


def result_type(server: Server, verb: str) -> TypeAdapter[Any]:
    """The type that the protocol of the handlers has for a verb's result."""
    interface, models = (import_module(f"{server.package}.{name}") for name in ("interface", "models"))
    names = {**vars(interface), **{name: getattr(models, name) for name in models.__all__}}
    return TypeAdapter(get_type_hints(getattr(interface.LocalHandlers, verb), names)["return"])


def params_are_given_back(server: Server, verb: str, data: st.DataObject) -> None:
    known = server.registry.verb(verb)
    assert known is not None
    if not known.params["properties"]:
        return
    arguments = bounded_result(data.draw(accepted(known.params), label=f"arguments of {verb}"))
    view = server.view(verb, arguments)
    assert same(view, arguments), (view, arguments)


def results_are_given_back(server: Server, verb: str, data: st.DataObject) -> None:
    known = server.registry.verb(verb)
    assert known is not None
    assert known.result is not None
    result = bounded_result(data.draw(accepted(known.result), label=f"result of {verb}"))
    adapter = result_type(server, verb)
    view = adapter.dump_python(adapter.validate_python(result, strict=True), by_alias=True, exclude_unset=True)
    assert same(view, result), (view, result)


# Schemas whose values or names are easily taken for one another in Python, and values that have to come through.
ALIKE: dict[str, tuple[Any, list[Any]]] = {
    "ones": ({"enum": [1, True, "1"]}, [1, True, "1"]),
    "zeros": ({"enum": [False, 0, "0", None]}, [False, 0, "0", None]),
    "half": ({"enum": [1.5, True, 1]}, [1.5, True, 1]),
    "types": ({"type": ["boolean", "integer", "number"]}, [True, 1, 0, False, 1.5, 10**30]),
    "constants": ({"anyOf": [{"const": 1}, {"const": True}]}, [1, True]),
    "constant": ({"anyOf": [{"const": 0}, "boolean"]}, [0, True, False]),
    "flag": ({"anyOf": [{"const": True}, "integer"]}, [1, True, 2]),
    "nested": (
        {"type": "array", "items": {"anyOf": ["integer", {"type": "array", "items": {"enum": [0, False]}}]}},
        [[1, [0, False]]],
    ),
    "objects": (
        {
            "anyOf": [
                {"type": "object", "properties": {"a": "integer"}, "additionalProperties": True},
                {
                    "type": "object",
                    "properties": {"a": "number", "b": {"type": "object", "additionalProperties": True}},
                },
            ]
        },
        [{}, {"a": 1}, {"a": 1, "b": {"c": [True]}}, {"a": 1.5, "b": {}}, {"z": {"a": 1}}],
    ),
    "letters": (
        {
            "type": "object",
            "properties": {
                "\xe9": {"type": "object", "properties": {"\xe9": {"type": "object", "properties": {"a": "string"}}}},
                "ref": {"type": "array", "items": {"type": "object", "properties": {"b": "integer"}}},
                "refItem": {"type": "object", "properties": {"c": "boolean"}},
                "$ref": {"type": "object", "properties": {"d": "number"}},
            },
        },
        [{"\xe9": {"\xe9": {"a": "x"}}, "ref": [{"b": 1}], "refItem": {"c": True}, "$ref": {"d": 0.5}}],
    ),
    "members": (
        {"type": "object", "properties": {"copy": "string", "_private": "integer"}, "additionalProperties": True},
        [{"copy": "a", "_private": 1, "self": 2, "model_fields": 3, "model_extra": 4, "__dict__": 5, "__class__": "b"}],
    ),
}


def test_views_tell_alike_things_apart(tmp_path: Path) -> None:
    verbs_of_schemas = {name: taking(schema) for name, (schema, _) in ALIKE.items()}
    with served("alike", files_of("alike", verbs_of_schemas, tmp_path), tmp_path / "package") as server:
        for name, (_, values) in ALIKE.items():
            for value in values:
                arguments = server.judged(name, value)
                assert arguments is not None, (name, value)
                view = server.view(name, arguments)
                assert same(view, arguments), (name, view, arguments)


def test_views_take_and_give_back_what_schemas_accept(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS, encoding="utf-8")
    numbers = itertools.count()

    @QUIETLY
    @given(TYPES, verbs(), st.data())
    def given_back(types: dict[str, Any], partial: dict[str, dict[str, Any]], data: st.DataObject) -> None:
        name = f"p{next(numbers)}"
        whole_verbs = {verb: whole(verb, part) for verb, part in partial.items()}
        files = files_of(name, whole_verbs, tmp_path, types=types)
        with served(name, files, tmp_path / "generated" / name) as server:
            for verb in whole_verbs:
                params_are_given_back(server, verb, data)
                results_are_given_back(server, verb, data)

    given_back()
    for command in (["format", "--diff"], ["check"]):
        done = subprocess.run(
            [Path(sys.executable).with_name("ruff"), *command, "--no-cache", "."],
            cwd=tmp_path / "generated",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
