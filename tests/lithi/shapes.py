"""What the answers of lithi-mcp may look like, taken from the facts and from what the server itself publishes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from .wire import LEGACY, Endpoint, Reply

TOOLS = ("lithi.quote", "lithi.run", "lithi.batch", "lithi.status", "lithi.result")

HANDLE = re.compile(r"(qt|jb|bt)_[0-9a-hjkmnp-tv-z]{26}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
STATES = {"quoted", "accepted", "running", "succeeded", "failed", "cancelled", "expired"}
NEXT = {"approve", "run", "wait", "read_result", "fetch_terms", "none"}
BUILT_IN = {
    "invalid_input",
    "not_found",
    "conflict",
    "denied",
    "insufficient_scope",
    "pending",
    "busy",
    "unavailable",
    "stale_schema",
    "internal",
}
KINDS = BUILT_IN | {"approval_required", "quote_expired", "not_ready"}

PROBLEMS = 8
PROBLEM_LENGTH = 120

# Handles that fit the pattern and that the service never made.
UNKNOWN = {kind: f"{kind}_{'0' * 26}" for kind in ("qt", "jb", "bt")}


def check_work(work: Mapping[str, Any]) -> None:
    """The projection of R17, and nothing beside it."""
    assert {"handle", "digest", "state"} <= set(work) <= {"handle", "digest", "state", "p_next_action"}, work
    assert HANDLE.fullmatch(work["handle"])
    assert DIGEST.fullmatch(work["digest"])
    assert work["state"] in STATES
    assert work.get("p_next_action", "none") in NEXT


def check_refusal(refusal: Mapping[str, Any]) -> None:
    """The one shape of a refusal; feedback in it is bounded."""
    assert {"kind", "message"} <= set(refusal) <= {"kind", "message", "detail"}, refusal
    assert refusal["kind"] in KINDS, refusal
    assert isinstance(refusal["message"], str)
    detail = refusal.get("detail", {})
    assert isinstance(detail, dict)
    problems = detail.get("problems", [])
    assert len(problems) <= PROBLEMS
    assert all(isinstance(problem, str) and len(problem) <= PROBLEM_LENGTH for problem in problems), problems


def check_call(reply: Reply) -> dict[str, Any]:
    """The structured content of a call, done or refused, after a look at the form of both; its text says the same."""
    result = reply.result
    content = result["structuredContent"]
    if result["isError"]:
        check_refusal(reply.refusal)
    else:
        check_work(content)
    ((kind, text),) = [(block["type"], block["text"]) for block in result["content"]]
    assert kind == "text"
    assert json.loads(text) == content
    return dict(content)


def tools_of(endpoint: Endpoint, revision: str = LEGACY) -> dict[str, dict[str, Any]]:
    """The tools that are listed, by name."""
    result = endpoint.ask(revision, "tools/list").result
    assert result.get("nextCursor") is None
    tools = {tool["name"]: dict(tool) for tool in result["tools"]}
    assert len(tools) == len(result["tools"])
    return tools


def output_validators(endpoint: Endpoint) -> dict[str, Draft202012Validator]:
    """What checks the structured content of each tool against the schema that is published for it."""
    return {name: Draft202012Validator(tool["outputSchema"]) for name, tool in tools_of(endpoint).items()}


def objects_in(schema: Any) -> list[dict[str, Any]]:
    """All schemas of objects in a schema, itself and those inside others."""
    found: list[dict[str, Any]] = []
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if item.get("type") == "object" or "properties" in item:
                found.append(item)
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return found
