"""Rules of names: what is made of them must be distinct, and hide nothing."""

import builtins
import keyword
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from ..backends import PythonBackend
from ..contract import package_of
from ..names import class_name, field_name, function_name, module_name, protocol_name
from ..parse import Parsed
from ..problems import Problem, quoted
from ..schemas import JSON_TYPES
from .lookups import property_lists

GENERATED_MODULES = frozenset({"server", "interface", "models", "verbs"})
# What generated modules call things themselves, or import beside the types of a spec.
NAMES_OF_CODE = (
    JSON_TYPES
    | frozenset(dir(builtins))
    | frozenset(
        {
            "Any",
            "Ask",
            "Binding",
            "Call",
            "Closed",
            "End",
            "Field",
            "JobOperations",
            "Launch",
            "Literal",
            "Open",
            "Protocol",
            "Refusal",
            "RunRecord",
            "Schema",
            "TypeAliasType",
        }
    )
)
NAMES_OF_SERVER = frozenset({"bindings", "build_server", "caller", "load", "state", "surface"}) | frozenset(
    keyword.kwlist
)
# What packages and their tests import; and the folders that lie beside a package.
HIDDEN_BY_PACKAGES = frozenset(
    "anyio hypothesis jsonschema_rs mcp mcp_types pydantic pydantic_core pytest typing_extensions values".split()
)
BESIDE_PACKAGES = frozenset({"build", "dist", "docs", "tests"})


def backends_have_names_of_their_own(parsed: Parsed) -> Iterator[Problem]:
    for name, backend in parsed.spec.backends.items():
        if isinstance(backend, PythonBackend) and (
            name in NAMES_OF_SERVER or name.startswith("load_") or name.endswith("_backend")
        ):
            sentence = f"{quoted(name)} is a name that generated code uses itself; name the backend otherwise"
            yield Problem(parsed.key_at("backends", name), sentence)


def protocols_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    yield from _clashes(
        (
            (name, protocol_name(name))
            for name, backend in parsed.spec.backends.items()
            if isinstance(backend, PythonBackend)
        ),
        lambda name, other: Problem(
            parsed.key_at("backends", name),
            f"the backend {quoted(name)} gets the same class as {quoted(other)}; rename one",
        ),
    )


def package_shadows_nothing(parsed: Parsed) -> Iterator[Problem]:
    package = package_of(parsed)
    if package in BESIDE_PACKAGES:
        sentence = f"the package {quoted(package)} would take the place of another folder; name it otherwise"
        yield Problem(parsed.at("server", "package"), sentence)
    if package in sys.stdlib_module_names or package in HIDDEN_BY_PACKAGES:
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
        ((name, class_name(name, "Params")) for name in _first_of_each(parsed.spec.verbs)),
        lambda name, other: Problem(
            parsed.key_at("verbs", name), f"the verb {quoted(name)} gets the same class as {quoted(other)}; rename one"
        ),
    )


def types_have_names_of_their_own(parsed: Parsed) -> Iterator[Problem]:
    protocols = {protocol_name(name) for name in parsed.spec.backends}
    taken = {class_name(verb, suffix): verb for verb in parsed.spec.verbs for suffix in ("Params", "Result")}
    for name in parsed.spec.types:
        if name in NAMES_OF_CODE or name in protocols:
            yield Problem(
                parsed.key_at("types", name), f"the type {quoted(name)} has a name that generated code uses itself"
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
            lambda name, other, path=path: Problem(parsed.key_at(*path, name), _same_attribute(name, other)),  # type: ignore[misc]
        )


def _same_attribute(name: str, other: str) -> str:
    if unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", other):
        return f"{quoted(name)} is another spelling of {quoted(other)}; rename one"
    return f"{quoted(name)} gets the same Python name as {quoted(other)}; rename one"


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


def _first_of_each(verbs: Iterable[str]) -> Iterable[str]:
    """The verbs without those whose functions clash already."""
    return {function_name(name): name for name in reversed(list(verbs))}.values()


def _clashes(pairs: Iterable[tuple[str, str]], problem: Callable[[str, str], Problem]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, made in pairs:
        if made in first:
            yield problem(name, first[made])
        first.setdefault(made, name)
