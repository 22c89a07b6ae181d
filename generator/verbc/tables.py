"""What the pages of a package tell: the tables of `docs/verbs.md`, and what its README says is needed."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .ir import Table
from .literals import Code, markdown, markdown_code

Verb = Mapping[str, Any]

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}")


def tables(registry: Mapping[str, Any]) -> tuple[Table, ...]:
    """Every table of the page; the rows are exactly what the registry has."""
    return (*_of_available(registry), *_of_names(registry), *_of_upstreams(registry), *_of_access(registry))


def _of_available(registry: Mapping[str, Any]) -> tuple[Table, ...]:
    available = [verb for verb in registry["verbs"] if verb["unavailable"] is None]
    return (
        _table(
            "Verbs",
            "What can be called.",
            ("Verb", "What it does", "Effect", "Fingerprint"),
            ((_name(verb), markdown(verb["summary"]), Code(verb["effect"]), _fingerprint(verb)) for verb in available),
        ),
        _table(
            "Parameters",
            "In the order of the verbs.",
            ("Verb", "Parameter", "Type", "Required", "Default", "Meaning"),
            (row for verb in available for row in _parameters(verb)),
        ),
        _table(
            "Refused parameters",
            "Known, never taken.",
            ("Verb", "Parameter", "Why"),
            (
                (_name(verb), markdown_code(name), markdown(reason))
                for verb in available
                for name, reason in verb["refused"].items()
            ),
        ),
    )


def _of_names(registry: Mapping[str, Any]) -> tuple[Table, ...]:
    unavailable = [verb for verb in registry["verbs"] if verb["unavailable"] is not None]
    synonyms = registry["synonyms"]
    until = f" Until {synonyms['removed_after']}." if synonyms["removed_after"] else ""
    return (
        _table(
            "Unavailable",
            "Catalogued, and answered with the reason.",
            ("Verb", "What it would do", "Why not"),
            ((_name(verb), markdown(verb["summary"]), markdown(verb["unavailable"])) for verb in unavailable),
        ),
        _table(
            "Synonyms",
            f"Old names that still work.{markdown(until)}",
            ("Synonym", "Verb"),
            ((markdown_code(synonym), markdown_code(verb)) for synonym, verb in synonyms["verbs"].items()),
        ),
    )


def _of_upstreams(registry: Mapping[str, Any]) -> tuple[Table, ...]:
    backends = registry["backends"].values()
    manifests = [manifest for backend in backends for manifest in backend.get("manifests", [backend.get("manifest")])]
    return (
        _table(
            "Upstream tools",
            "What is registered to begin with.",
            ("Server", "Tool", "Its name there", "Right"),
            (
                (
                    markdown_code(manifest["server_id"]),
                    markdown_code(tool["tool_id"]),
                    markdown_code(tool["mcp_name"]),
                    Code(tool["right"]),
                )
                for manifest in manifests
                if manifest is not None
                for tool in manifest["tools"]
            ),
        ),
    )


def _of_access(registry: Mapping[str, Any]) -> tuple[Table, ...]:
    return (
        _table(
            "Rights",
            "What a caller must be granted.",
            ("Verb", "Rights"),
            (
                (_name(verb), markdown("; ".join(rights)))
                for verb in registry["verbs"]
                if (rights := [*verb["requires"], *filter(None, [verb["plan"]])])
            ),
        ),
        _table(
            "Scopes",
            "What the keys of callers can be good for.",
            ("Scope", "Rights"),
            (
                (markdown_code(scope), markdown("; ".join(rights)))
                for scope, rights in (registry["access"] or {"scopes": {}})["scopes"].items()
            ),
        ),
        _table(
            "Kinds of refusal",
            "Every answer that says no is of one of these.",
            ("Kind", "Meaning"),
            ((markdown_code(kind), markdown(text)) for kind, text in registry["kinds"].items()),
        ),
    )


def needs(registry: Mapping[str, Any]) -> tuple[Code, ...]:
    """The programs that must be there, and the variables that are read."""
    backends = registry["backends"].values()
    programs = [need for backend in backends if backend["kind"] == "cli" for need in _programs(backend)]
    services = [
        text
        for backend in backends
        if backend["kind"] == "http"
        for text in (backend["url"], *backend["headers"].values())
    ]
    verify = (registry["access"] or {}).get("verify") or {}
    texts = [
        *services,
        *(value for value in verify.values() if isinstance(value, str)),
        *verify.get("headers", {}).values(),
    ]
    return tuple(dict.fromkeys([*programs, *_variables(texts)]))


def _programs(backend: Mapping[str, Any]) -> Iterable[Code]:
    command = backend["command"]
    program = _VARIABLE.sub(lambda variable: variable["default"] or "", command).split()
    instead = [variable["name"] for variable in _VARIABLE.finditer(command) if variable["default"]]
    if program:
        other = f", or the command in the variable {markdown_code(instead[0])}" if instead else ""
        yield Code(f"the program {markdown_code(program[0])}{other}")
    yield from _variables([command, *backend["args"]])


def _variables(texts: Iterable[str]) -> Iterable[Code]:
    """The variables that have no default."""
    for variable in _VARIABLE.finditer(" ".join(texts)):
        if not variable["default"]:
            yield Code(f"the variable {markdown_code(variable['name'])}")


def _table(heading: str, sentence: str, columns: tuple[str, ...], rows: Iterable[tuple[Code, ...]]) -> Table:
    return Table(Code(heading), Code(sentence), tuple(Code(column) for column in columns), tuple(rows))


def _name(verb: Verb) -> Code:
    return markdown_code(verb["name"])


def _fingerprint(verb: Verb) -> Code:
    return Code("required" if verb["fingerprint_required"] else "")


def _parameters(verb: Verb) -> Iterable[tuple[Code, ...]]:
    schema, owner = verb["params"], _name(verb)
    for name, parameter in schema["properties"].items():
        required = Code("yes" if name in schema.get("required", ()) else "")
        default = markdown_code(json.dumps(parameter["default"])) if "default" in parameter else Code("")
        meaning = markdown(parameter.get("description", ""))
        yield owner, markdown_code(name), markdown(_type(parameter)), required, default, meaning


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words: `string`, `integer or null`, `array of string`, `one of "a", "b"`."""
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if branches := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(_type(branch) for branch in branches)
    named = schema.get("type", "any")
    text = named if isinstance(named, str) else " or ".join(named)
    return f"{text} of {_type(schema['items'])}" if text == "array" and "items" in schema else text
