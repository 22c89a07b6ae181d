"""The surface `tools`: one MCP tool for each verb that is available."""

from __future__ import annotations

from typing import Any

from .admission import Admission, Request
from .content import FORM
from .quoting import quoted
from .registry import Registry, Verb
from .surface import (
    REFUSAL_SCHEMA,
    ToolCall,
    UnknownToolError,
    compact_json,
    content_answer,
    refused_answer,
    structured_answer,
    text_answer,
)

FINGERPRINT_KEY = "schema_fingerprint"


class ToolsSurface:
    """Lists verbs as tools, and answers with the verb's result itself."""

    def __init__(self, registry: Registry, admission: Admission) -> None:
        self._registry = registry
        self._admission = admission
        self._tools = [_tool(verb) for verb in registry.available]
        declared = {verb.name: verb.result for verb in registry.verbs if verb.result is not None}
        self._content = {verb.name for verb in registry.verbs if verb.run.reply["form"] == FORM}
        self._wrapped = {name for name, result in declared.items() if not _is_object(result)}

    def tools(self) -> list[dict[str, Any]]:
        """One tool for each available verb, in the order of the registry."""
        return self._tools

    def input_schema(self, tool: str) -> dict[str, Any] | None:
        """The parameters of the verb that this tool stands for, synonyms included."""
        verb = self._registry.resolve(tool)
        return verb.params if verb else None

    async def call(self, call: ToolCall) -> dict[str, Any]:
        """Run a verb, by its name or a synonym. Raises UnknownToolError for any other name, and InputRequiredError."""
        if self._registry.resolve(call.tool) is None:
            raise UnknownToolError(self._unknown(call.tool))
        outcome = await self._admission.admit(
            Request(
                name=call.tool,
                arguments=call.arguments,
                fingerprint=call.meta.get(FINGERPRINT_KEY),
                fingerprint_expected=False,
                caller=call.caller,
                report=call.report,
                consent=call.consent,
            )
        )
        if outcome.refusal is not None:
            return refused_answer(outcome.refusal)
        return self._answer(outcome.op, outcome.result)

    def _answer(self, verb: str, result: Any) -> dict[str, Any]:
        if verb in self._content:
            return content_answer(result)
        if verb in self._wrapped:
            return structured_answer({"result": result})
        if isinstance(result, dict):
            return structured_answer(result)
        return text_answer(result if isinstance(result, str) else compact_json(result))

    def _unknown(self, name: str) -> str:
        if self._registry.feedback != "names":
            return "Unknown tool."
        nearest = self._registry.nearest(name)
        return f"Unknown tool {quoted(name)}" + (f"; did you mean {quoted(nearest)}?" if nearest else ".")


def _tool(verb: Verb) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": verb.name,
        "description": f"{verb.summary}\n\n{verb.description}" if verb.description else verb.summary,
        "inputSchema": verb.params,
        "annotations": dict(verb.hints),
    }
    if verb.result is not None:
        tool["outputSchema"] = _output_schema(verb.result)
    if verb.quotes_fingerprint:
        tool["_meta"] = {FINGERPRINT_KEY: verb.fingerprint}
    return tool


def _output_schema(result: dict[str, Any]) -> dict[str, Any]:
    """What structured content can be: the declared result, or a refusal, which some clients check as well."""
    body = {key: value for key, value in result.items() if key != "$defs"}
    if not _is_object(result):
        body = {"type": "object", "properties": {"result": body}, "required": ["result"], "additionalProperties": False}
    refusal = {"type": "object", "properties": {"error": REFUSAL_SCHEMA}, "required": ["error"]}
    schema: dict[str, Any] = {"type": "object", "anyOf": [body, refusal]}
    if "$defs" in result:
        schema["$defs"] = result["$defs"]  # references count from the root
    return schema


def _is_object(result: dict[str, Any]) -> bool:
    """Whether every result is an object, so that it can be structured content as it is."""
    reference = result.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        target = result.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
        return bool(target.get("type") == "object")
    return result.get("type") == "object"
