"""The modules of `models/`: the named types in one, the views of each verb module's parameters and results in another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .backends import CliBackend, HttpBackend, McpBackend
from .contract import backend_and_target, is_spawn
from .ir import Exports, ModelModule
from .literals import Code, bracketed, docstring, exported, imports, natural, python
from .names import class_name, module_name
from .parse import Parsed
from .python_types import Module
from .schemas import used_names
from .spec import CONTENT, Verb

TYPES_MODULE = Code("_types")


@dataclass(frozen=True, slots=True)
class Models:
    """The modules, and how verbs refer to what they define."""

    modules: tuple[ModelModule, ...]
    exports: Exports
    params: Mapping[str, Code]  # verb → the class of its parameters
    results: Mapping[str, Code]  # verb → the annotation of its declared result
    homes: Mapping[str, str]  # class or alias → module

    @classmethod
    def of(cls, parsed: Parsed, package: str) -> "Models":
        """The models of a spec."""
        builder = _Builder(parsed, package)
        builder.add_types()
        for module, verbs in verbs_by_module(parsed).items():
            builder.add_verbs(module, verbs)
        exports = _exports(package, builder.homes)
        return cls(tuple(builder.modules), exports, builder.params, builder.results, builder.homes)


def verbs_by_module(parsed: Parsed) -> dict[str, dict[str, Verb]]:
    """The verbs that can be called, by the module that they belong to, modules sorted."""
    grouped: dict[str, dict[str, Verb]] = {}
    for name, verb in parsed.spec.verbs.items():
        if verb.unavailable is None:
            grouped.setdefault(module_name(name), {})[name] = verb
    return dict(sorted(grouped.items()))


class _Builder:
    def __init__(self, parsed: Parsed, package: str) -> None:
        self.parsed = parsed
        self.types = parsed.types
        self.package = package
        self.modules: list[ModelModule] = []
        self.params: dict[str, Code] = {}
        self.results: dict[str, Code] = {}
        self.homes: dict[str, str] = {}

    def add_types(self) -> None:
        module = Module(self.types, of_types=True, fill_defaults=True, reserved=frozenset(self.types.named))
        done: set[str] = set()
        for name in self.types.named:
            self._add_type(name, module, done)
        if module.definitions:
            self._finish(module, TYPES_MODULE, "The named types of the spec.", deferred=bool(self.types.recursive))

    def _add_type(self, name: str, module: Module, done: set[str]) -> None:
        if name in done:
            return
        done.add(name)
        node = self.types.named[name]
        for used in used_names(node):
            if used in self.types.named:
                self._add_type(used, module, done)
        # `null` stands beside what else a type lets through, so that needs a name of its own.
        nullable = "null" in self.types.admitted(node)
        annotation = module.define(f"{name}Value" if nullable else name, node, f"The type {name}.")
        if annotation not in (name, "None"):
            module.alias(name, annotation.split(" | "))

    def add_verbs(self, name: str, verbs: Mapping[str, Verb]) -> None:
        owned = {class_name(verb, suffix) for verb in verbs for suffix in ("Params", "Result")}
        module = Module(self.types, of_types=False, fill_defaults=True, reserved=frozenset({*self.types.named, *owned}))
        for verb_name, verb in verbs.items():
            backend = self.parsed.spec.backends[backend_and_target(verb)[0]]
            # Command lines and services know their own defaults.
            module.fill_defaults = not (
                isinstance(backend, CliBackend | HttpBackend | McpBackend) or is_spawn(verb, self.parsed)
            )
            if verb.params:
                extra = Code("Any") if verb.varies_with else None
                wanted = class_name(verb_name, "Params")
                text = f"Parameters of {verb_name}."
                self.params[verb_name] = module.model(wanted, text, verb.params, verb.required, extra)
            module.fill_defaults = True
            if verb.result == CONTENT:
                self.results[verb_name] = Code("list[dict[str, Any]]")
            elif verb.declared is not None:
                wanted = class_name(verb_name, "Result")
                self.results[verb_name] = module.define(wanted, verb.declared, f"Result of {verb_name}.")
        if module.definitions:
            self._finish(
                module, Code(name), f"Views of the parameters and results of {_family(verbs)}.", deferred=False
            )

    def _finish(self, module: Module, name: Code, summary: str, *, deferred: bool) -> None:
        self.homes.update(dict.fromkeys((definition.name for definition in module.definitions), name))
        lines = _imports(self.package, module)
        self.modules.append(ModelModule(name, docstring(summary), lines, deferred, tuple(module.definitions)))


def _family(verbs: Iterable[str]) -> str:
    first = next(iter(verbs))
    prefix, dot, _ = first.partition(".")
    return f"`{prefix}.` verbs" if dot else "verbs without a prefix"


def _imports(package: str, module: Module) -> tuple[Code, ...]:
    used = module.words
    named = set() if module.of_types else used & set(module.types.named)
    groups = [
        [("typing", used & {"Any", "Literal"})],
        [("pydantic", used & {"Field"}), ("typing_extensions", used & {"TypeAliasType"})],
        [(f"{package}._support.model", used & {"Closed", "Open"}), (f"{package}.models.{TYPES_MODULE}", named)],
    ]
    return import_block(groups)


def import_block(groups: Sequence[Sequence[tuple[str, Iterable[str]]]], indent: int = 0) -> tuple[Code, ...]:
    """Import lines in groups with a blank line between them, as the linter sorts them; empty ones left out."""
    ordered = [sorted(group, key=lambda item: natural(item[0])) for group in groups]
    blocks = [[imports(module, names, indent) for module, names in group if names] for group in ordered]
    lines: list[Code] = []
    for block in filter(None, blocks):
        lines += [*([Code("")] if lines else []), *block]
    return tuple(lines)


def _exports(package: str, homes: Mapping[str, str]) -> Exports:
    by_module: dict[str, set[str]] = {}
    for name, module in homes.items():
        by_module.setdefault(f"{package}.models.{module}", set()).add(name)
    modules = bracketed("{", [f"{python(name)}: {python(homes[name])}" for name in sorted(homes)], "}", explode=True)
    return Exports(import_block([list(by_module.items())], 4), modules, exported(homes))
