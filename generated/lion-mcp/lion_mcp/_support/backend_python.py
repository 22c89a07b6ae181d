"""Runs verbs with hand-written handlers: one object with a method for each verb."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from .backend import Plan
from .binding import Bindings
from .call import Call


class PythonBackend:
    """A backend over `handlers`: the object itself, or a function or class that makes it when it is first needed."""

    def __init__(self, bindings: Bindings, handlers: object | Callable[[], object]) -> None:
        self._bindings = bindings
        self._source = handlers
        self._handlers: object | None = None

    async def plan(self, call: Call) -> Plan:
        """Build the typed view of the arguments."""
        binding = self._bindings.of(call.verb)
        return Plan(call, binding.params.model_validate(call.arguments) if binding.params else None)

    async def run(self, plan: Plan) -> Any:
        """Call the verb's function; models anywhere in what it returns become plain JSON values."""
        binding = self._bindings.of(plan.call.verb)
        arguments = () if binding.params is None else (plan.bound,)
        return plain(await binding.function(self.handlers(), *arguments, plan.call))

    async def params_for(self, param: str, value: str, call: Call) -> dict[str, Any]:
        """What the handlers' method `params_for_<param>` says to `value`."""
        answer = getattr(self.handlers(), f"params_for_{param}")(value, call)
        further: dict[str, Any] = plain(await answer if inspect.isawaitable(answer) else answer)
        return further

    def handlers(self) -> object:
        """The object itself, made now if it was not needed before."""
        if self._handlers is None:
            source = self._source
            made_on_use = inspect.isroutine(source) or isinstance(source, type)
            self._handlers = source() if made_on_use else source  # type: ignore[operator]
        return self._handlers


def plain(value: Any) -> Any:
    """`value` with every pydantic model in it written out, by its wire names and with what was set only."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
