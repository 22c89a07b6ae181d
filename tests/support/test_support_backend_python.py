"""Handlers as a backend, and the way from a verb to its generated function."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from verbc.support.backend_python import PythonBackend, plain
from verbc.support.binding import Binding, Bindings
from verbc.support.call import LOCAL, Call
from verbc.support.registry import Registry

from .programs import finish


class Show(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    id: str
    count: int = 10
    source: str | None = Field(None, alias="from")


class Handlers:
    made = 0

    def __init__(self) -> None:
        Handlers.made += 1

    async def item_show(self, params: Show, call: Call) -> Any:
        return {"model": params, "list": [params, (1, 2)], "verb": call.verb.name}

    async def free(self, call: Call) -> Any:
        return call.verb.name

    def params_for_playbook(self, value: str, call: Call) -> Any:
        return {"required": [value]}

    async def params_for_other(self, value: str, call: Call) -> Any:
        return {"required": [value, call.verb.name]}


async def item_show(handlers: Handlers, params: Show, call: Call) -> object:
    return await handlers.item_show(params, call)


async def free(handlers: Handlers, call: Call) -> object:
    return await handlers.free(call)


@pytest.fixture
def bindings() -> Iterator[Bindings]:
    module = ModuleType("handled.sample")
    module.VERBS = {"item.show": Binding(item_show, Show), "free": Binding(free)}  # type: ignore[attr-defined]
    sys.modules["handled"] = ModuleType("handled")
    sys.modules["handled.sample"] = module
    yield Bindings("handled")
    del sys.modules["handled"], sys.modules["handled.sample"]


def call(registry: Registry, name: str, arguments: dict[str, Any]) -> Call:
    verb = registry.verb(name)
    assert verb is not None
    return Call(verb, arguments, LOCAL, "c0", registry, datetime.now(UTC), 0.0)


def run(backend: PythonBackend, call: Call) -> Any:
    async def work() -> Any:
        return await backend.run(await backend.plan(call))

    return finish(work())


def test_a_verb_without_parameters_is_called_without_them(registry: Registry, bindings: Bindings) -> None:
    assert run(PythonBackend(bindings, Handlers()), call(registry, "free", {})) == "free"


def test_models_become_plain_values_with_what_was_set_only(registry: Registry, bindings: Bindings) -> None:
    shown = {"id": "a", "from": "b"}
    result = run(PythonBackend(bindings, Handlers()), call(registry, "item.show", dict(shown)))
    assert result == {"model": shown, "list": [shown, [1, 2]], "verb": "item.show"}


def test_the_view_is_built_by_the_plan(registry: Registry, bindings: Bindings) -> None:
    plan = finish(PythonBackend(bindings, Handlers()).plan(call(registry, "item.show", {"id": "a"})))
    assert plan.bound == Show.model_validate({"id": "a"})
    assert plan.refusal is None


@pytest.mark.parametrize("wrap", [lambda make: make, lambda make: lambda: make()])
def test_handlers_are_made_once_and_only_when_needed(registry: Registry, bindings: Bindings, wrap: Any) -> None:
    before = Handlers.made
    backend = PythonBackend(bindings, wrap(Handlers))
    assert Handlers.made == before
    for _ in range(2):
        run(backend, call(registry, "free", {}))
    assert Handlers.made == before + 1


def test_values_are_resolved_by_the_handlers(registry: Registry, bindings: Bindings) -> None:
    backend = PythonBackend(bindings, Handlers)
    flow = call(registry, "flow", {})
    assert asyncio.run(backend.params_for("playbook", "deep", flow)) == {"required": ["deep"]}
    assert asyncio.run(backend.params_for("other", "deep", flow)) == {"required": ["deep", "flow"]}


def test_plain_leaves_plain_values_alone() -> None:
    value = {"a": [1, "b", None, {"c": 1.5}]}
    assert plain(value) == value


def test_a_package_that_lacks_a_verb_is_found_out(registry: Registry, bindings: Bindings) -> None:
    verb = registry.verb("spawn")
    assert verb is not None
    with pytest.raises(KeyError):
        bindings.of(verb)
    with pytest.raises(ModuleNotFoundError):
        Bindings("nowhere").of(verb)
