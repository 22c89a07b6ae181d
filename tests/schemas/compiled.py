"""Schemas put through the whole way that a server's have taken: a spec, its registry, and its typed views."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from verbc.pipeline import compile_spec
from verbc.support.binding import Bindings
from verbc.support.fingerprint import canonical_json
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, Verb, load
from verbc.support.validation import Validator, bounded_arguments
from verbc.tree import write

Verbs = Mapping[str, dict[str, Any]]


BACKENDS = {"echo": {"cli": "echo"}, "local": {"python": "handlers.py"}}


def yaml_of(value: Any) -> str:
    """JSON data as ASCII that YAML reads as the same data; JSON's own escapes would be halves of characters there."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(
        character if character.isascii() and character.isprintable() else f"\\U{ord(character):08x}"
        for character in text
    )


def files_of(name: str, verbs: Verbs, folder: Path, types: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The files of the package that these verbs make; the backend is the first key of what they `run`. Raises SpecError."""
    backends = {next(iter(verb["run"])) for verb in verbs.values()}
    spec = {
        "verbc": 1,
        "server": {"name": name, "summary": "Schemas."},
        "backends": {backend: BACKENDS[backend] for backend in backends},
        **({"types": types} if types else {}),
        "verbs": verbs,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml_of(spec), encoding="ascii")
    return compile_spec(path, f"specs/{name}.yaml")[1]


def taking(schema: Any, result: Any = None) -> dict[str, Any]:
    """A verb with the parameter `value`."""
    verb = {"summary": "Takes a value.", "params": {"value": schema}, "run": {"echo": "value", "json": ["value"]}}
    return verb if result is None else {**verb, "result": result}


@dataclass(frozen=True, slots=True)
class Server:
    """What of a generated server judges the arguments of calls."""

    package: str
    registry: Registry
    bindings: Bindings

    def judged(self, verb: str, value: Any) -> dict[str, Any] | None:
        """The arguments as a backend gets them when `value` is accepted, else None."""
        try:
            arguments = bounded_arguments({"value": value})
        except Refusal:
            return None
        problems = Validator(self._known(verb).params, subject="the arguments object").problems(arguments)
        return None if problems else arguments

    def view(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The same arguments by way of the typed view."""
        model = self.bindings.of(self._known(verb)).params
        assert model is not None
        return given_back(model, arguments)

    def _known(self, verb: str) -> Verb:
        known = self.registry.verb(verb)
        assert known is not None
        return known


def given_back(model: type[BaseModel], value: Any) -> dict[str, Any]:
    return model.model_validate(value).model_dump(by_alias=True, exclude_unset=True)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are one, `true` and `1` told apart."""
    return canonical_json(one) == canonical_json(other)


@contextmanager
def served(name: str, files: Mapping[str, str], folder: Path) -> Iterator[Server]:
    """The package of `files`, written into `folder` and importable meanwhile."""
    package = f"{name}_mcp"
    write(files, folder)
    sys.path.insert(0, str(folder))
    try:
        yield Server(package, load(folder / package / "registry.json"), Bindings(f"{package}.verbs"))
    finally:
        sys.path.remove(str(folder))
        for module in [module for module in sys.modules if module.partition(".")[0] == package]:
            del sys.modules[module]
