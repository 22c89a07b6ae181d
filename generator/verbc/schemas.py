"""Schemas as written → JSON Schema as advertised: names written out, objects closed, keywords in one order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .source import Plain
from .spec import Schema

JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
KEYWORDS = tuple(Schema.model_fields)  # in the order in which schemas show them
_HOLDERS = frozenset({"properties", "anyOf", "oneOf", "items", "additionalProperties"})  # keywords that hold schemas
_SCALARS = JSON_TYPES - {"array", "object"}

Node = Schema | str  # a schema, or the name of a type


@dataclass(frozen=True, slots=True)
class Types:
    """The named types of a spec, and the form that schemas get when the names are written out."""

    named: Mapping[str, Node]
    recursive: frozenset[str]
    # What has been worked out already, by the identity of nodes; each is kept, so that no other can have its identity.
    _forms: dict[int, tuple[Schema, dict[str, Any]]] = field(default_factory=dict, repr=False, compare=False)
    _sizes: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    _admitted: dict[int, tuple[Schema, frozenset[str]]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, named: Mapping[str, Node]) -> "Types":
        uses = {name: frozenset(used_names(node)) for name, node in named.items()}
        return cls(named, frozenset(name for name in named if _reaches(name, name, uses)))

    def advertised(self, node: Node) -> dict[str, Any]:
        """The whole JSON Schema of a node, with `$defs` for the types that recurse."""
        form = self.form(node)
        definitions = self._definitions(node)
        return {**form, "$defs": definitions} if definitions else form

    def form(self, node: Node) -> dict[str, Any]:
        """The JSON Schema of a node, not to be changed; types that recurse stand as `$ref`."""
        if isinstance(node, str):
            return self._named(node)
        if known := self._forms.get(id(node)):
            return known[1]
        form: dict[str, Any] = {}
        given = node.model_fields_set
        for keyword in KEYWORDS:
            if keyword in given:
                form.update(self._keyword(keyword, getattr(node, keyword), node))
        if "properties" in form and "additionalProperties" not in form:
            form["additionalProperties"] = False
        self._forms[id(node)] = node, form
        return form

    def params(self, properties: Mapping[str, Node], required: tuple[str, ...], *, opened: bool) -> dict[str, Any]:
        """The schema of a verb's parameters; `opened` for verbs whose parameters vary."""
        form: dict[str, Any] = {
            "type": "object",
            "properties": {name: self.form(node) for name, node in properties.items()},
        }
        if required:
            form["required"] = [name for name in properties if name in required]
        form["additionalProperties"] = opened
        definitions: dict[str, Any] = {}
        for node in properties.values():
            definitions.update(self._definitions(node))
        return {**form, "$defs": dict(sorted(definitions.items()))} if definitions else form

    def data(self, value: Any, node: Node | None) -> Any:
        """Data of a spec as its schema wants it: a plain scalar is text where only text fits."""
        node = self.resolved(node)
        match value:
            case Plain():
                return self._scalar(value, node)
            case dict():
                return {str(key): self.data(item, self._property(node, key)) for key, item in value.items()}
            case list() | tuple():
                return [self.data(item, node.items if isinstance(node, Schema) else None) for item in value]
            case float() if value.is_integer():
                return int(value)
            case _:
                return value

    def admitted(self, node: Node | None) -> frozenset[str]:
        """The JSON types that a node lets through."""
        resolved = self.resolved(node)
        if resolved is None:
            return JSON_TYPES
        if isinstance(resolved, str):
            return frozenset({resolved})
        if known := self._admitted.get(id(resolved)):
            return known[1]
        admitted = self._let_through(resolved)
        self._admitted[id(resolved)] = resolved, admitted
        return admitted

    def _let_through(self, node: Schema) -> frozenset[str]:
        types = frozenset().union(*(self.admitted(name) for name in type_names(node))) if node.type else JSON_TYPES
        if branches := node.anyOf or node.oneOf:
            types &= frozenset().union(*(self.admitted(branch) for branch in branches))
        if (values := self.values(node)) is not None:
            types &= frozenset().union(*map(json_types, values))
        return types

    def values(self, node: Schema) -> list[Any] | None:
        """The values that `const` or `enum` leave to a node; None where neither is given."""
        if "const" in node.model_fields_set:
            return [self.data(node.const, by_type_alone(node))]
        return None if node.enum is None else [self.data(item, by_type_alone(node)) for item in node.enum]

    def size(self, node: Node) -> int:
        """How many schemas a node holds once names are written out."""
        if isinstance(node, str):
            return self._size_of_named(node)
        named = self._size_of_named(node.type) if isinstance(node.type, str) else 1
        return named + sum(self.size(child) for _, child in children(node))

    def _size_of_named(self, name: str) -> int:
        if name in self.recursive or name not in self.named:
            return 1
        if name not in self._sizes:
            self._sizes[name] = self.size(self.named[name])
        return self._sizes[name]

    def resolved(self, node: Node | None) -> Node | None:
        """A node without the names of types before it; None where anything goes."""
        seen: set[str] = set()
        while (name := node if isinstance(node, str) else single_type(node)) in self.named and name not in seen:
            seen.add(str(name))
            node = self.named[str(name)]
        return node

    def _scalar(self, value: Plain, node: Node | None) -> Any:
        native = value.value
        if isinstance(native, str):
            return native
        types = self.admitted(node)
        return str(value) if "string" in types and not json_types(native) & types else native

    def _property(self, node: Node | None, key: str) -> Node | None:
        if not isinstance(node, Schema):
            return None
        if node.properties and key in node.properties:
            return node.properties[key]
        return None if isinstance(node.additionalProperties, bool) else node.additionalProperties

    def _keyword(self, keyword: str, value: Any, node: Schema) -> dict[str, Any]:
        match keyword:
            case "type":
                return self._named(value) if isinstance(value, str) else {"type": list(value)}
            case "enum":
                return {"enum": [self.data(item, by_type_alone(node)) for item in value]}
            case "const":
                return {"const": self.data(value, by_type_alone(node))}
            case "default":
                return {"default": self.data(value, node)}
            case "properties":
                return {"properties": {name: self.form(item) for name, item in value.items()}}
            case "anyOf" | "oneOf":
                return {keyword: [self.form(item) for item in value]}
            case "items" | "additionalProperties":
                return {keyword: value if isinstance(value, bool) else self.form(value)}
            case "required":
                return {"required": list(value)}
            case "description":
                return {"description": value.strip()}
            case "x_mcp_header":
                return {"x-mcp-header": value}
            case _:
                return {keyword: value}

    def _named(self, name: str) -> dict[str, Any]:
        if name in self.recursive:
            return {"$ref": f"#/$defs/{name}"}
        return {"type": name} if name in JSON_TYPES else self.form(self.named[name])

    def _definitions(self, node: Node) -> dict[str, Any]:
        if not self.recursive:
            return {}
        found: set[str] = set()
        pending = [node]
        while pending:
            for name in used_names(pending.pop()):
                if name in self.named and name not in found:
                    found.add(name)
                    pending.append(self.named[name])
        return {name: self.form(self.named[name]) for name in sorted(found & self.recursive)}


def type_names(node: Schema) -> tuple[str, ...]:
    """The names under `type`."""
    return (node.type,) if isinstance(node.type, str) else node.type or ()


def single_type(node: Node | None) -> str | None:
    """The one name under `type`, if it is one."""
    return node.type if isinstance(node, Schema) and isinstance(node.type, str) else None


def children(node: Schema) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """The schemas inside a schema, each with its path."""
    if not node.model_fields_set & _HOLDERS:
        return
    for name, item in (node.properties or {}).items():
        yield ("properties", name), item
    for keyword in ("anyOf", "oneOf"):
        for index, item in enumerate(getattr(node, keyword) or ()):
            yield (keyword, index), item
    for keyword in ("items", "additionalProperties"):
        item = getattr(node, keyword)
        if item is not None and not isinstance(item, bool):
            yield (keyword,), item


def used_names(node: Node) -> Iterator[str]:
    """Every name of a type in a node, JSON's own included."""
    if isinstance(node, str):
        yield node
        return
    yield from type_names(node)
    for _, item in children(node):
        yield from used_names(item)


def json_types(value: Any) -> frozenset[str]:
    """The JSON types that a value is of; an integer is also a number."""
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"integer", "number"}) if value.is_integer() else frozenset({"number"})
        case str():
            return frozenset({"string"})
        case list() | tuple():
            return frozenset({"array"})
        case _:
            return frozenset({"object"})


def by_type_alone(node: Schema) -> Node:
    """The node without `enum` and `const`, whose values are read by its type alone."""
    if node.type in _SCALARS and not (node.anyOf or node.oneOf):
        return str(node.type)  # nothing else matters to a scalar, and copying a node takes long
    kept = {keyword: getattr(node, keyword) for keyword in node.model_fields_set - {"enum", "const"}}
    return Schema.model_construct(set(kept), **kept)


def _reaches(name: str, target: str, uses: Mapping[str, frozenset[str]]) -> bool:
    pending, seen = [name], set[str]()
    while pending:
        for used in uses.get(pending.pop(), ()):
            if used == target:
                return True
            if used not in seen:
                seen.add(used)
                pending.append(used)
    return False
