"""Rules of names: what is made of them must be distinct, and hide nothing."""

import sys
from collections.abc import Callable, Iterable, Iterator

from ..backends import PythonBackend
from ..names import class_name, field_name, function_name, module_name
from ..parse import Parsed
from ..problems import Problem, quoted
from ..schemas import JSON_TYPES
from ..spec import RUN_OPTIONS
from .lookups import property_lists

GENERATED_MODULES = frozenset({"server", "interface", "models", "verbs"})
NAMES_OF_MODELS = frozenset({"Any", "Closed", "Field", "Literal", "Open", "TypeAliasType"}) | JSON_TYPES


def backends_have_names_of_their_own(parsed: Parsed) -> Iterator[Problem]:
    for name in parsed.spec.backends:
        if name in RUN_OPTIONS:
            yield Problem(
                parsed.key_at("backends", name), f"{quoted(name)} is an option of `run`; name the backend otherwise"
            )


def package_shadows_nothing(parsed: Parsed) -> Iterator[Problem]:
    server = parsed.spec.server
    package = server.package or f"{server.name.replace('-', '_')}_mcp"
    if package in sys.stdlib_module_names or package in ("mcp", "mcp_types", "pydantic", "jsonschema_rs"):
        yield Problem(parsed.at("server", "package"), f"the package {quoted(package)} would hide a module of that name")


def functions_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    yield from _clashes(
        ((name, function_name(name).lower()) for name in parsed.spec.verbs),
        lambda name, other: Problem(
            parsed.key_at("verbs", name),
            f"the verb {quoted(name)} gets the same Python name as {quoted(other)}; rename one",
        ),
    )


def classes_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    yield from _clashes(
        ((name, class_name(name, "Params")) for name in parsed.spec.verbs),
        lambda name, other: Problem(
            parsed.key_at("verbs", name), f"the verb {quoted(name)} gets the same class as {quoted(other)}; rename one"
        ),
    )


def types_have_names_of_their_own(parsed: Parsed) -> Iterator[Problem]:
    taken = {class_name(verb, suffix): verb for verb in parsed.spec.verbs for suffix in ("Params", "Result")}
    for name in parsed.spec.types:
        if name in NAMES_OF_MODELS:
            yield Problem(
                parsed.key_at("types", name), f"the type {quoted(name)} has a name that models use themselves"
            )
        elif name in taken:
            yield Problem(
                parsed.key_at("types", name),
                f"the verb {quoted(taken[name])} gets a class of that name; rename the type",
            )


def attributes_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    for path, properties in property_lists(parsed):
        yield from _clashes(
            ((name, field_name(name)) for name in properties),
            lambda name, other, path=path: Problem(  # type: ignore[misc]
                parsed.key_at(*path, name), f"{quoted(name)} gets the same Python name as {quoted(other)}; rename one"
            ),
        )


def handlers_are_modules(parsed: Parsed) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name, backend in parsed.spec.backends.items():
        if not isinstance(backend, PythonBackend):
            continue
        module, mark = backend.python.removesuffix(".py"), parsed.at("backends", name, "python")
        if module in GENERATED_MODULES or module_name(f"{module}.x") not in (module, f"{module}_"):
            yield Problem(mark, f"{quoted(backend.python)} has the name of a generated file; rename it")
        if (other := seen.setdefault(module, name)) != name:
            yield Problem(mark, f"{quoted(backend.python)} belongs to the backend {quoted(other)} already")


def _clashes(pairs: Iterable[tuple[str, str]], problem: Callable[[str, str], Problem]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, made in pairs:
        if made in first:
            yield problem(name, first[made])
        first.setdefault(made, name)
