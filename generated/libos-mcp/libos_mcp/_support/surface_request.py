"""The surface `request`: one MCP tool, inside which verbs travel as ops."""

from __future__ import annotations

from typing import Any, Final

from .admission import Admission, Outcome, Request
from .call import Caller, ProgressReport
from .catalog import catalog, details, unavailable_details
from .quoting import listed, quoted
from .refusal import Refusal
from .registry import Registry, Verb
from .surface import REFUSAL_SCHEMA, ToolCall, UnknownToolError, refused_answer, structured_answer

TOOL: Final = "request"

_INPUTS = ("help", "ops")
_OP_KEYS = ("args", "op", "schema_fingerprint")
_ENTRY_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "op": {"type": "string"}, "error": REFUSAL_SCHEMA},
    "required": ["ok", "op"],
}
_HELP_TYPES = "help must be true, the name of a verb, or an object of strings"


class RequestSurface:
    """Answers `help`, and runs `ops` in their order; a bad op fails alone."""

    def __init__(self, registry: Registry, admission: Admission) -> None:
        self._registry = registry
        self._admission = admission
        self._names = registry.feedback == "names"
        self._tool = _tool(registry)
        self._catalog = structured_answer(catalog(registry))

    def tools(self) -> list[dict[str, Any]]:
        """The one tool."""
        return [self._tool]

    def input_schema(self, tool: str) -> dict[str, Any] | None:
        """The schema of the one tool."""
        schema: dict[str, Any] = self._tool["inputSchema"]
        return schema if tool == TOOL else None

    async def call(self, call: ToolCall) -> dict[str, Any]:
        """Answer a request; what is wrong with it as a whole is refused as a whole. Raises UnknownToolError."""
        if call.tool != TOOL:
            raise UnknownToolError(f"Unknown tool {quoted(call.tool)}." if self._names else "Unknown tool.")
        try:
            ops, topic = self._read(call.arguments)
            if topic is not None:
                return await self._help(topic)
            return await self._run(ops, call.caller, call.report)
        except Refusal as refusal:
            return refused_answer(refusal)

    def _read(self, arguments: dict[str, Any]) -> tuple[list[Any], Any]:
        """The ops to run, or what help is wanted on (None for no help)."""
        if unknown := sorted(arguments.keys() - set(_INPUTS)):
            raise _invalid(f"{self._no_keys(unknown)} of a request; it has ops or help.")
        ops, topic = arguments.get("ops"), arguments.get("help")
        if ops is not None and not isinstance(ops, list):
            raise _invalid("ops must be an array.")
        if not (topic is None or isinstance(topic, bool | str | dict)):
            raise _invalid(f"{_HELP_TYPES}.")
        topic = None if topic is False else topic
        if topic is not None and ops:
            raise _invalid("ops and help cannot be combined; send two calls. Nothing was run.")
        if topic is None and not ops:
            raise _invalid("Pass ops, or help: true." if ops is None else "ops is empty.")
        most = self._registry.limits.ops
        if ops and len(ops) > most:
            raise _invalid(f"There are {len(ops)} ops, and at most {most} are taken. Nothing was run.")
        return ops or [], topic

    async def _help(self, topic: Any) -> dict[str, Any]:
        if topic is True:
            return self._catalog
        values: dict[str, Any] = {"verb": topic} if isinstance(topic, str) else dict(topic)
        if "verb" not in values:
            raise _invalid("help needs a verb.")
        name = values.pop("verb")
        verb = self._registry.resolve(name) if isinstance(name, str) else None
        if verb is not None:
            self._check_varying(verb, values)
        if not all(isinstance(value, str) for value in (name, *values.values())):
            raise _invalid(f"{_HELP_TYPES}.")
        if verb is not None and verb.unavailable is not None:
            return structured_answer(unavailable_details(verb))
        outcome = await self._admission.describe(name, values)
        if outcome.refusal is not None or verb is None or outcome.schema is None:
            raise outcome.refusal or Refusal("internal", "There is no schema.")
        quotes = verb.fingerprint_required and (verb.quotes_fingerprint or bool(values))
        return structured_answer(details(verb, outcome.schema, outcome.schema_fingerprint if quotes else None))

    def _check_varying(self, verb: Verb, values: dict[str, Any]) -> None:
        if unknown := sorted(values.keys() - verb.varies_with.keys()):
            raise _invalid(f"The schema of {quoted(verb.name)} does not vary with {self._listed(unknown)}.")

    async def _run(self, ops: list[Any], caller: Caller, report: ProgressReport | None) -> dict[str, Any]:
        outcomes = [await self._op(op, caller, report) for op in ops]
        first_with: dict[str, int] = {}
        entries = [_entry(index, outcome, first_with) for index, outcome in enumerate(outcomes)]
        status = "success" if all(entry["ok"] for entry in entries) else "partial"
        return structured_answer({"status": status, "ops": entries})

    async def _op(self, op: Any, caller: Caller, report: ProgressReport | None) -> Outcome:
        if not isinstance(op, dict):
            return Outcome("?", refusal=_invalid("An op must be an object."))
        name = op.get("op")
        if not isinstance(name, str):
            return Outcome("?", refusal=_invalid("op must be the name of a verb."))
        if unknown := sorted(op.keys() - set(_OP_KEYS)):
            message = f"{self._no_keys(unknown)} of an op; it has op, args and schema_fingerprint."
            return Outcome(self._admission.op(name), refusal=_invalid(message))
        return await self._admission.admit(
            Request(name, op.get("args"), op.get("schema_fingerprint"), caller=caller, report=report)
        )

    def _no_keys(self, names: list[str]) -> str:
        return f"{self._listed(names)} {'is not a key' if len(names) == 1 or not self._names else 'are not keys'}"

    def _listed(self, names: list[str]) -> str:
        return listed(names) if self._names else "`*`"


def _entry(index: int, outcome: Outcome, first_with: dict[str, int]) -> dict[str, Any]:
    """One op's answer. A schema stands in the first entry that needs it, and later ones refer to that entry."""
    if outcome.refusal is None:
        return {"ok": True, "op": outcome.op, "result": outcome.result}
    error = outcome.refusal.as_error()
    if outcome.schema is not None and outcome.schema_fingerprint is not None:
        first = first_with.setdefault(outcome.schema_fingerprint, index)
        if first == index:
            error["schema"] = outcome.schema
        else:
            error["schema_ref"] = {"op_index": first, "schema_fingerprint": outcome.schema_fingerprint}
    return {"ok": False, "op": outcome.op, "error": error}


def _invalid(message: str) -> Refusal:
    return Refusal("invalid_input", message)


def _tool(registry: Registry) -> dict[str, Any]:
    identity = registry.server
    ops = f"Up to {registry.limits.ops} ops, run in order. Each is an object with op (a verb), args (an object) and, "
    return {
        "name": TOOL,
        "description": f"{identity.summary}\n\nhelp: true lists the verbs, and help with the name of a verb gives its "
        "schema. Then send ops; each is answered by itself, so one that is refused stops no other.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "ops": {
                    "type": "array",
                    "items": {},  # a malformed op is answered by itself, so clients must not check it
                    "description": ops + "where the verb has one, schema_fingerprint.",
                },
                "help": {
                    "anyOf": [
                        {"type": "boolean"},
                        {"type": "string"},
                        {"type": "object", "additionalProperties": {"type": "string"}},
                    ],
                    "description": "true, the name of a verb, or an object with verb and a parameter its schema varies "
                    "with. Not together with ops.",
                },
            },
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "status": {"enum": ["success", "partial"]},
                "ops": {"type": "array", "items": _ENTRY_SCHEMA},
                "error": REFUSAL_SCHEMA,
            },
        },
        "annotations": _hints(registry),
    }


def _hints(registry: Registry) -> dict[str, bool]:
    """The hints of a tool that can do whatever any of its verbs can do."""
    hints = [verb.hints for verb in registry.available]
    return {
        "readOnlyHint": all(hint["readOnlyHint"] for hint in hints),
        "destructiveHint": any(hint["destructiveHint"] for hint in hints),
        "idempotentHint": all(hint["idempotentHint"] for hint in hints),
        "openWorldHint": any(hint["openWorldHint"] for hint in hints),
    }
