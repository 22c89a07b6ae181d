"""Calls of the tool `request`, which all of these servers have."""

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from .client import AnswerError, Client

_TURN_CALLS: Final = 100
_TURN_SECONDS: Final = 0.4


def call(client: Client, arguments: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """The seconds that a call took, and its result. Raises AnswerError if it was refused as a whole."""
    seconds, result = client.ask("tools/call", {"name": "request", "arguments": arguments})
    if result.get("isError"):
        raise AnswerError(f"{arguments} was refused as a whole: {result}")
    return seconds, result


def turn(client: Client, arguments: Mapping[str, Any]) -> list[float]:
    """The seconds of a number of calls, fewer if they are slow; the first, on cold caches, is left out."""
    call(client, arguments)
    until = time.perf_counter() + _TURN_SECONDS
    seconds: list[float] = []
    while len(seconds) < _TURN_CALLS and (not seconds or time.perf_counter() < until):
        seconds.append(call(client, arguments)[0])
    return seconds


def value(result: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object that a call brought back."""
    answer: dict[str, Any] = json.loads(result["content"][0]["text"])
    return answer


def run_op(client: Client, op: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """The seconds that a call with one op took, and the result of the op. Raises AnswerError if it was refused."""
    seconds, result = call(client, {"ops": [op]})
    (entry,) = value(result)["ops"]
    if not entry["ok"]:
        raise AnswerError(f"{op} was refused: {entry['error']}")
    return seconds, entry["result"]
