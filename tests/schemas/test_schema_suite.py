"""The JSON-Schema-Test-Suite against what a generated server enforces, for the keywords that the spec language has.

What the language does not have is refused when a spec is compiled, by the keyword's name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from verbc.problems import SpecError
from verbc.spec import Schema

from .compiled import files_of, same, served, taking

PEER = Path(__file__).parents[2] / ".peers" / "suite"
SUITE = PEER / "json" / "tests" / "draft2020-12"
# Of the optional parts, those about what the language promises: formats that are asserted, and exact numbers.
OPTIONAL = ("format/*.json", "bignum.json", "float-overflow.json", "ecmascript-regex.json", "non-bmp-regex.json")
SUPPORTED = frozenset(Schema.model_fields)
ANNOTATION = "is only an annotation by default"  # ends the description of what an asserted format refuses
DIALECT = "$schema"  # says which JSON Schema it is; every schema of the suite has it

PORTABLE = "clients and servers read it differently; a pattern of a spec means the same to all"
CONTROL = "a spec is a text that people read; control characters do not stand in it"
FITS = "a default that does not fit is a mistake of whoever wrote the spec"
# Schemas within the keywords that the language refuses for another reason: what its problem says, and why that is right.
REFUSED: dict[tuple[str, str], tuple[str, str]] = {
    ("const.json", "nul characters in strings"): ("U+0000", CONTROL),
    ("enum.json", "nul characters in strings"): ("U+0000", CONTROL),
    ("properties.json", "properties with escaped characters"): ("U+000C", CONTROL),
    ("required.json", "required with escaped characters"): ("U+000C", CONTROL),
    ("default.json", "invalid type for default"): ("the default does not fit", FITS),
    ("default.json", "invalid string value for default"): ("the default does not fit", FITS),
    ("default.json", "the default keyword does not do anything if the property is missing"): (
        "the default does not fit",
        FITS,
    ),
    ("optional/format/unknown.json", "unknown format"): (
        'there is no format "unknown"',
        "a misspelt format would check nothing",
    ),
    ("optional/ecmascript-regex.json", "ECMA 262 \\d matches ascii digits only"): ('"\\d"', PORTABLE),
    ("optional/ecmascript-regex.json", "ECMA 262 \\D matches everything but ascii digits"): ('"\\D"', PORTABLE),
    ("optional/ecmascript-regex.json", "ECMA 262 \\w matches ascii letters only"): ('"\\w"', PORTABLE),
    ("optional/ecmascript-regex.json", "ECMA 262 \\W matches everything but ascii letters"): ('"\\W"', PORTABLE),
    ("optional/ecmascript-regex.json", "ECMA 262 \\s matches whitespace"): ('"\\s"', PORTABLE),
    ("optional/ecmascript-regex.json", "ECMA 262 \\S matches everything but whitespace"): ('"\\S"', PORTABLE),
    ("optional/ecmascript-regex.json", "patterns always use unicode semantics with pattern"): ('"\\p"', PORTABLE),
    ("optional/ecmascript-regex.json", "pattern with non-ASCII digits"): ('"\\p"', PORTABLE),
    ("optional/ecmascript-regex.json", "\\w in patterns matches [A-Za-z0-9_], not unicode letters"): (
        '"\\w"',
        PORTABLE,
    ),
    ("optional/ecmascript-regex.json", "\\d in pattern matches [0-9], not unicode digits"): ('"\\d"', PORTABLE),
}


@dataclass(frozen=True, slots=True)
class Group:
    """One schema of the suite and the values that are tried with it."""

    file: str
    description: str
    schema: Any
    tests: list[dict[str, Any]]

    @property
    def key(self) -> tuple[str, str]:
        return self.file, self.description


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    if not SUITE.is_dir():
        pytest.fail("There is no JSON-Schema-Test-Suite: run `make peers`.")
    files = [
        *sorted(SUITE.glob("*.json")),
        *(file for part in OPTIONAL for file in sorted((SUITE / "optional").glob(part))),
    ]
    return [
        Group(file.relative_to(SUITE).as_posix(), group["description"], group["schema"], group["tests"])
        for file in files
        for group in json.loads(file.read_text(encoding="utf-8"))
    ]


def written(schema: Any) -> Any:
    """A schema of the suite as it is written in a spec, where objects with properties are closed unless they say so."""
    if not isinstance(schema, dict):
        return schema
    form = {keyword: value for keyword, value in schema.items() if keyword != DIALECT}
    if "properties" in form:
        form["properties"] = {name: written(inner) for name, inner in form["properties"].items()}
        form.setdefault("additionalProperties", True)
    for keyword in ("anyOf", "oneOf"):
        if keyword in form:
            form[keyword] = [written(inner) for inner in form[keyword]]
    for keyword in ("items", "additionalProperties"):
        if keyword in form:
            form[keyword] = written(form[keyword])
    return form


def inner_schemas(schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas right inside a schema, as far as the language has their keywords."""
    yield from schema.get("properties", {}).values()
    for keyword in ("anyOf", "oneOf"):
        yield from schema.get(keyword, ())
    if "items" in schema:
        yield schema["items"]
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield schema["additionalProperties"]


def unknown_keywords(schema: Any) -> set[str]:
    """The keywords, here and inside, that the language does not have."""
    if isinstance(schema, bool):
        return set()
    return set(schema).difference(SUPPORTED).union(*map(unknown_keywords, inner_schemas(schema)))


def truth_values(schema: Any) -> set[str]:
    """The schemas, here and inside, that are `true` or `false`; the language takes these for names of types."""
    if isinstance(schema, bool):
        return {json.dumps(schema)}
    return set[str]().union(*map(truth_values, inner_schemas(schema)))


def refused_names(group: Group) -> set[str]:
    """What the compiler has to name when it refuses a schema; nothing when it has to take it."""
    schema = written(group.schema)
    return unknown_keywords(schema) or truth_values(schema)


def problems(group: Group, folder: Path) -> list[str]:
    """What the compiler says of a schema; nothing when it takes it."""
    try:
        files_of("one", {"v": taking(written(group.schema))}, folder)
    except SpecError as error:
        return [problem.message for problem in error.problems]
    return []


def test_what_is_not_in_the_language_is_refused_by_name(groups: list[Group], tmp_path: Path) -> None:
    unnamed = []
    checked = 0
    for group in groups:
        names = refused_names(group)
        if not names:
            continue
        said = "\n".join(problems(group, tmp_path))
        unnamed += [(*group.key, name, said) for name in sorted(names) if f'"{name}"' not in said]
        checked += 1
    assert unnamed == []
    assert checked > 200


def test_exceptions_are_refused_as_they_say(groups: list[Group], tmp_path: Path) -> None:
    known = {group.key: group for group in groups}
    assert REFUSED.keys() <= known.keys()
    for key, (sentence, _) in REFUSED.items():
        assert sentence in "\n".join(problems(known[key], tmp_path)), key


def test_a_server_agrees_with_the_suite(groups: list[Group], tmp_path: Path) -> None:
    within = [group for group in groups if not refused_names(group) and group.key not in REFUSED]
    verbs = {f"v{number}": taking(written(group.schema)) for number, group in enumerate(within)}
    different: dict[tuple[str, str, str], str] = {}
    checked = 0
    with served("suite", files_of("suite", verbs, tmp_path), tmp_path / "package") as server:
        for verb, group in zip(verbs, within, strict=True):
            for test in group.tests:
                arguments = server.judged(verb, test["data"])
                key = (*group.key, test["description"])
                checked += 1
                valid = test["valid"] and not test["description"].endswith(ANNOTATION)
                if (arguments is not None) != valid:
                    different[key] = f"the suite says {valid}"
                elif arguments is not None and not same(server.view(verb, arguments), arguments):
                    different[key] = f"the view gives back {server.view(verb, arguments)}"
    assert different == {}
    assert checked > 1000
