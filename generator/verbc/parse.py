"""Document → Parsed: the language as written, checked key by key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from .expand import expand
from .problems import Mark, Problem, SpecError, nearest, quoted
from .schemas import Types
from .source import Map, Seq
from .spec import Spec
from .written import TAG

RESERVED = frozenset({"resources", "prompts"})
# Keywords of JSON Schema that the language leaves out, because no Python type can follow them or nothing reads them.
LEFT_OUT = frozenset(
    "$anchor $comment $defs $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary additionalItems allOf contains "
    "contentEncoding contentMediaType contentSchema definitions dependencies dependentRequired dependentSchemas else examples "
    "if maxContains minContains not patternProperties prefixItems propertyNames readOnly then title unevaluatedItems "
    "unevaluatedProperties writeOnly".split()
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A spec as written, with the document that knows where each part of it stands."""

    spec: Spec
    document: Map
    types: Types
    manifests: Mapping[str, Map]  # as written, by the name that backends have for them

    def at(self, *path: int | str) -> Mark:
        """Where the value of a path stands; for a missing end, its nearest parent."""
        return place(self.document, path, key=False)[0]

    def key_at(self, *path: int | str) -> Mark:
        """Where the last key of a path stands; for a missing end, its nearest parent."""
        return place(self.document, path, key=True)[0]


def parse(document: Map, manifests: Mapping[str, Map]) -> Parsed:
    """The spec of a document, its verbs put together; `manifests` are those that its backends name.

    Raises:
        SpecError: with every key and value that the language does not have.
    """
    whole = expand(document, manifests)
    try:
        spec = Spec.model_validate(whole)
    except ValidationError as error:
        raise SpecError(_problem(whole, fault) for fault in error.errors(include_url=False)) from None
    return Parsed(spec, whole, Types.of(spec.types), manifests)


def place(document: Map, path: tuple[int | str, ...], *, key: bool) -> tuple[Mark, str]:
    """The place of a path, and the last key on it that is really there."""
    here: Any = document
    mark, name = document.mark, "the spec"
    for part in path:
        if isinstance(here, Map) and part in here:
            name = str(part)
            mark = here.keys_at[name] if key or isinstance(here[name], Map) else here.values_at[name]
            here = here[name]
        elif isinstance(here, Seq) and isinstance(part, int) and part < len(here):
            mark, here = here.items_at[part], here[part]
    return mark, name


def _problem(document: Map, fault: Any) -> Problem:
    path, kind = fault["loc"], fault["type"]
    on_key = kind == "extra_forbidden" or path[-1:] == ("[key]",)
    mark, name = place(document, path, key=on_key)
    return Problem(mark, _sentence(quoted(name), path, kind, fault))


def _sentence(name: str, path: tuple[int | str, ...], kind: str, fault: Any) -> str:
    context = fault.get("ctx", {})
    match kind:
        case "extra_forbidden":
            from .keys import keys_at  # only wanted when something is wrong

            return _unknown_key(str(path[-1]), keys_at(path[:-1]))
        case "missing":
            return f"{quoted(str(path[-1]))} is missing"
        case "verbc":
            return f"{name} {context.get('message') or fault['msg']}"
        case "literal_error":
            return f"{name} must be {str(context['expected']).replace(chr(39), chr(34))}"
        case "union_tag_invalid":
            wanted = context["expected_tags"].replace("'", "").replace(repr(TAG)[1:-1], "").split(", ")
            return f"{name} must be {' or '.join([', '.join(wanted[:-1]), wanted[-1]])}"
        case "string_type":
            return f"{name} must be text"
        case "tuple_type":
            return f"{name} must be a list"
        case "too_short":
            return f"{name} must not be empty"
        case "greater_than_equal":
            return f"{name} must be at least {context['ge']}"
        case "dict_type" | "model_type":
            return f"{name} must be a map"
        case _:
            return f"{name} does not fit: {fault['msg']}"


def _unknown_key(key: str, known: frozenset[str]) -> str:
    if key in LEFT_OUT and "anyOf" in known:
        return f"the keyword {quoted(key)} of JSON Schema is not supported"
    if key in RESERVED and "verbs" in known:
        return f"{quoted(key)} is reserved, and not built yet"
    return f"unknown key {quoted(key)}{nearest(key, known)}"
