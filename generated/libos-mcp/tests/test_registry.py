"""This package agrees with its registry, its docs and its server. Needs neither the network nor verbc."""

import asyncio
import inspect
import itertools
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError
from package import NAME, REGISTRY, Bindings, Verb, create_server, digest, fingerprint, server
from values import accepted

FOLDER = Path(__file__).parents[1]
DATA = json.loads((FOLDER / NAME / "registry.json").read_text(encoding="utf-8"))
ENTRIES = {entry["name"]: entry for entry in DATA["verbs"]}
RELIED_ON = (
    "name summary description effect hints params result refused requires plan fingerprint_required idempotent "
    "varies_with unavailable"
)
AVAILABLE = REGISTRY.available
UNAVAILABLE = REGISTRY.unavailable
BINDINGS = Bindings(f"{NAME}.verbs")
UNKNOWN = "no parameter has this name"


def name_of(verb: Verb) -> str:
    return str(verb.name)


def validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def call(tool: str, arguments: dict[str, Any], surface: str = "tools") -> Any:
    async def called() -> Any:
        async with Client(create_server(surface)) as client:
            try:
                return await client.call_tool(tool, arguments)
            except MCPError as error:
                return error

    return asyncio.run(called())


def tools(surface: str) -> list[dict[str, Any]]:
    async def listed() -> Any:
        async with Client(create_server(surface)) as client:
            return await client.list_tools()

    return [tool.model_dump(by_alias=True, exclude_unset=True) for tool in asyncio.run(listed()).tools]


def rows(heading: str) -> list[str]:
    """The first cells of a table of the docs page, without their backticks."""
    page = (FOLDER / "docs" / "verbs.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"(?m)^\| `([^`|]+)` \|", section)


def test_manifest_lists_every_file_as_it_is() -> None:
    files = json.loads((FOLDER / ".verbc.json").read_text(encoding="utf-8"))["files"]
    assert {path: sha256((FOLDER / path).read_bytes()).hexdigest() for path in files} == files


def test_docs_list_exactly_the_verbs() -> None:
    assert rows("Verbs") == [verb.name for verb in AVAILABLE]
    assert rows("Unavailable") == [verb.name for verb in UNAVAILABLE]
    assert rows("Synonyms") == list(REGISTRY.synonyms)
    assert rows("Kinds of refusal") == list(REGISTRY.kinds)


def test_digest_of_the_registry_recomputes() -> None:
    assert digest({key: value for key, value in DATA.items() if key != "digest"}) == DATA["digest"]


@pytest.mark.parametrize("verb", REGISTRY.verbs, ids=name_of)
def test_digests_recompute(verb: Verb) -> None:
    entry = ENTRIES[verb.name]
    pin = (DATA["access"] or {"pin": {}})["pin"]
    target = {"pin": pin, "backend": REGISTRY.backends[verb.run.backend]["kind"], "target": list(verb.run.target)}
    assert digest({**{key: entry[key] for key in RELIED_ON.split()}, **target}) == verb.digest
    assert fingerprint(verb.params) == verb.fingerprint


@pytest.mark.parametrize("verb", AVAILABLE, ids=name_of)
def test_model_has_the_fields_of_the_schema(verb: Verb) -> None:
    model = BINDINGS.of(verb).params
    fields = model.model_fields if model else {}
    assert [field.alias or name for name, field in fields.items()] == list(verb.params["properties"])
    assert {field.alias or name for name, field in fields.items() if field.is_required()} == set(verb.required)


@pytest.mark.parametrize("verb", AVAILABLE, ids=name_of)
def test_model_gives_back_what_the_schema_accepts(verb: Verb) -> None:
    model = BINDINGS.of(verb).params

    @settings(max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(accepted(verb.params))
    def gives_back(arguments: Any) -> None:
        view = model.model_validate(arguments).model_dump(by_alias=True, exclude_unset=True) if model else {}
        assert digest(view) == digest(arguments)

    gives_back()


@pytest.mark.parametrize("verb", AVAILABLE, ids=name_of)
def test_command_line_is_the_command_then_options_then_values(verb: Verb) -> None:
    backend, binding = REGISTRY.backends[verb.run.backend], BINDINGS.of(verb)

    @settings(max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(accepted({**verb.params, "additionalProperties": False}))
    def built(arguments: Any) -> None:
        argv = binding.function(*([binding.params.model_validate(arguments)] if binding.params else []))
        command = [*verb.run.target, *backend["args"]] if backend["kind"] == "cli" else list(verb.run.target[1:])
        options = itertools.takewhile(lambda word: word != "--", argv[len(command) :])
        assert argv[: len(command)] == command
        assert all(option.startswith("--") for option in options)

    if backend["kind"] == "cli" or verb.run.target[0] == "spawn":
        built()


@pytest.mark.parametrize("verb", AVAILABLE, ids=name_of)
def test_unknown_parameter_is_refused(verb: Verb) -> None:
    result = call(verb.name, {UNKNOWN: 1})
    assert result.is_error
    assert result.structured_content["error"]["kind"] == "invalid_input"


def test_unavailable_verbs_answer_with_their_reason() -> None:
    for verb in UNAVAILABLE:
        error = call(verb.name, {}).structured_content["error"]
        assert (error["kind"], error["message"]) == ("unavailable", verb.unavailable)


def test_synonyms_resolve() -> None:
    for synonym, name in REGISTRY.synonyms.items():
        assert REGISTRY.resolve(synonym) is REGISTRY.verb(name)
        assert call(synonym, {UNKNOWN: 1}).structured_content["error"]["kind"] in ("invalid_input", "unavailable")


def test_handlers_have_a_method_for_each_verb() -> None:
    for verb in AVAILABLE:
        if REGISTRY.backends[verb.run.backend]["kind"] == "python":
            method = getattr(getattr(server, f"load_{verb.run.backend}")(), verb.run.target[0])
            assert inspect.iscoroutinefunction(method), verb.name
            assert not method.__module__.endswith(".interface"), verb.name


def test_no_verb_reaches_a_fenced_path() -> None:
    for verb in REGISTRY.verbs:
        for fenced in REGISTRY.backends[verb.run.backend].get("fenced", ()):
            assert list(verb.run.target[: len(fenced.split())]) != fenced.split()


def test_examples_fit() -> None:
    for verb, example in [(each, example) for each in REGISTRY.verbs for example in each.examples]:
        assert validator(verb.params).is_valid(example["args"]), verb.name
        assert example.get("refusal", "internal") in REGISTRY.kinds
        if "result" in example and verb.result is not None:
            assert validator(verb.result).is_valid(example["result"]), verb.name


def test_tools_surface_lists_the_available_verbs() -> None:
    listed = tools("tools")
    assert [tool["name"] for tool in listed] == [verb.name for verb in AVAILABLE]
    assert [tool["inputSchema"] for tool in listed] == [verb.params for verb in AVAILABLE]
    assert [tool["annotations"] for tool in listed] == [dict(verb.hints) for verb in AVAILABLE]


def test_request_surface_lists_one_tool_and_the_catalog() -> None:
    assert [tool["name"] for tool in tools("request")] == ["request"]
    catalog = call("request", {"help": True}, "request").structured_content
    assert [entry["verb"] for entry in catalog["verbs"]] == [verb.name for verb in REGISTRY.verbs]
    assert (catalog["verb_count"], catalog["available_count"]) == (len(REGISTRY.verbs), len(AVAILABLE))


def test_unknown_tool_is_a_protocol_error() -> None:
    assert isinstance(call("no verb has this name", {}), MCPError)


@given(st.text(max_size=70))
@settings(max_examples=20, deadline=None, derandomize=True, database=None)
def test_only_names_of_the_registry_resolve(name: str) -> None:
    assert (REGISTRY.resolve(name) is not None) == (name in ENTRIES or name in REGISTRY.synonyms)
