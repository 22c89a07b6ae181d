"""From a verb to the generated function that stands for it; its module is imported when the verb is first used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .registry import Verb

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Binding:
    """A verb's function, and the model of its parameters; None for a verb that has no parameters."""

    function: Callable[..., Any]
    params: type[BaseModel] | None = None


class Bindings:
    """The bindings of one package, whose modules are below `package`, such as `hello_mcp.verbs`."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._known: dict[str, Binding] = {}

    def of(self, verb: Verb) -> Binding:
        """The binding of `verb`. Raises ImportError or KeyError when the package does not fit its registry."""
        if (binding := self._known.get(verb.name)) is None:
            self._known.update(import_module(f"{self._package}.{verb.run.module}").VERBS)
            binding = self._known[verb.name]
        return binding
