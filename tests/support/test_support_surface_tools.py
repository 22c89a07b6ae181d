"""The surface `tools` as a client sees it."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from mcp import Client, MCPError

from verbc.support.call import Call
from verbc.support.registry import Registry, from_data

from .clients import ERAS, call, structured, text, with_client
from .samples import Work, verb_data


def returning(value: Any) -> Work:
    async def work(call: Call) -> Any:
        return value

    return work


def tools(registry: Registry, era: str = "legacy") -> dict[str, dict[str, Any]]:
    async def use(client: Client) -> Any:
        return (await client.list_tools()).tools

    listed = with_client(registry, use, era=era)
    return {tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in listed}


@pytest.mark.parametrize("era", ERAS)
def test_each_available_verb_is_a_tool(registry: Registry, data: dict[str, Any], era: str) -> None:
    listed = tools(registry, era)
    assert list(listed) == ["item.show", "item.names", "free", "spawn", "flow", "play"]
    show = data["verbs"][0]
    assert listed["item.show"]["description"] == "Summary of item.show."
    assert listed["item.names"]["description"] == "Summary of item.names.\n\nMore about it."
    assert listed["item.show"]["inputSchema"] == show["params"]
    assert listed["item.show"]["annotations"] == show["hints"]
    assert "title" not in listed["item.show"]
    assert "outputSchema" not in listed["free"]


def test_a_fingerprint_travels_beside_the_tool(registry: Registry, data: dict[str, Any]) -> None:
    prints = {verb["name"]: verb["fingerprint"] for verb in data["verbs"]}
    told = {name: tool["_meta"]["schema_fingerprint"] for name, tool in tools(registry).items() if "_meta" in tool}
    assert told == {"spawn": prints["spawn"], "flow": prints["flow"]}


def test_results_and_refusals_fit_the_output_schema(registry: Registry) -> None:
    listed = tools(registry)
    good = call(registry, "item.show", {"id": "a"})
    bad = call(registry, "item.show", {})
    names = call(registry, "item.names", {}, works={"item.names": returning(["a", "b"])})
    assert structured(names) == {"result": ["a", "b"]}
    for tool, result in (("item.show", good), ("item.show", bad), ("item.names", names), ("item.names", bad)):
        jsonschema.validate(structured(result), listed[tool]["outputSchema"])
    for tool, value in (("item.show", {"name": 1}), ("item.names", {"result": "a"}), ("item.names", {"id": "a"})):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(value, listed[tool]["outputSchema"])


def test_definitions_move_to_the_root_of_the_output_schema(data: dict[str, Any]) -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}, "additionalProperties": False}
    data["verbs"] += [
        verb_data("tree", result={"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}}),
        verb_data("trees", result={"type": "array", "items": {"$ref": "#/$defs/Tree"}, "$defs": {"Tree": tree}}),
    ]
    listed = tools(from_data(data))
    jsonschema.validate({"next": {"next": {}}}, listed["tree"]["outputSchema"])
    jsonschema.validate({"result": [{"next": {}}]}, listed["trees"]["outputSchema"])
    for tool, value in (("tree", {"next": {"x": 1}}), ("trees", {"result": [{"x": 1}]}), ("trees", {"next": {}})):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(value, listed[tool]["outputSchema"])
    works = {"tree": returning({"next": {}}), "trees": returning([{}])}
    assert structured(call(from_data(data), "tree", {}, works=works)) == {"next": {}}
    assert structured(call(from_data(data), "trees", {}, works=works)) == {"result": [{}]}


@pytest.mark.parametrize(
    ("value", "expected"), [("one\ntwo", "one\ntwo"), (7, "7"), ([1, "é"], '[1,"é"]'), (None, "null"), (True, "true")]
)
def test_without_a_declared_result_what_is_no_object_is_text_alone(
    registry: Registry, value: Any, expected: str
) -> None:
    result = call(registry, "free", {}, works={"free": returning(value)})
    assert (text(result), result.structured_content, result.is_error) == (expected, None, False)


def test_without_a_declared_result_an_object_is_structured(registry: Registry) -> None:
    assert structured(call(registry, "free", {}, works={"free": returning({"a": 1})})) == {"a": 1}


@pytest.mark.parametrize("era", ERAS)
def test_a_refusal_is_an_error_with_one_shape(registry: Registry, era: str) -> None:
    result = call(registry, "item.show", {"id": 7}, era=era)
    assert result.is_error
    error = {
        "kind": "invalid_input",
        "message": "`id` must be a string",
        "detail": {"problems": ["`id` must be a string"]},
    }
    assert structured(result) == {"error": error}


@pytest.mark.parametrize("era", ERAS)
def test_an_unknown_tool_is_a_protocol_error(registry: Registry, era: str) -> None:
    with pytest.raises(MCPError) as caught:
        call(registry, "item.shwo", {}, era=era)
    assert caught.value.error.code == -32602
    assert caught.value.error.message == "Unknown tool `item.shwo`; did you mean `item.show`?"


def test_shapes_names_no_unknown_tool(data: dict[str, Any]) -> None:
    with pytest.raises(MCPError) as caught:
        call(from_data({**data, "feedback": "shapes"}), "s3cr3t", {})
    assert caught.value.error.message == "Unknown tool."


def test_an_unavailable_verb_is_refused_with_its_reason(registry: Registry) -> None:
    result = call(registry, "gone", {})
    assert result.is_error
    assert structured(result)["error"]["message"] == "Nobody needs it."


def test_a_synonym_is_accepted(registry: Registry) -> None:
    assert structured(call(registry, "show_item", {"id": "a"})) == {"id": "a"}


@pytest.mark.parametrize("era", ERAS)
def test_a_fingerprint_counts_only_when_it_is_sent(registry: Registry, data: dict[str, Any], era: str) -> None:
    assert not call(registry, "spawn", {}, era=era).is_error
    right = {"schema_fingerprint": data["verbs"][3]["fingerprint"]}
    assert not call(registry, "spawn", {}, era=era, meta=right).is_error
    wrong = call(registry, "spawn", {}, era=era, meta={"schema_fingerprint": "0" * 16})
    assert structured(wrong)["error"]["kind"] == "stale_schema"


def test_no_arguments_are_empty_arguments(registry: Registry) -> None:
    assert structured(call(registry, "free", None)) == {}
