"""Schemas as written → typed Python: one class for each object, an alias for whatever is not a plain annotation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from .ir import Definition
from .literals import WIDTH, Code, bracketed, call, docstring, literal_type, python, union, words
from .names import class_name, field_name
from .schemas import JSON_TYPES, Node, Types, single_type
from .spec import Schema

_BUILT_IN = {
    "string": "str",
    "integer": "int",
    "number": "int | float",
    "boolean": "bool",
    "null": "None",
    "array": "list[Any]",
    "object": "dict[str, Any]",
}

_SCALARS = frozenset(_BUILT_IN) - {"array", "object"}


@dataclass(slots=True)
class Module:
    """Collects the definitions of one module of models; every name is defined once, before it is used."""

    types: Types
    of_types: bool  # the module of the named types itself, where they are not imported
    fill_defaults: bool
    reserved: frozenset[str]  # names that belong to types and verbs
    definitions: list[Definition] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)  # names that were given out, whether something was defined or not

    defined: set[str] = field(default_factory=set)

    @property
    def words(self) -> set[str]:
        """The names in its code; what stands in docstrings is none."""
        lines = (line for definition in self.definitions for line in definition.lines)
        return words("\n".join(_as_code(line) for line in lines))

    def define(self, name: str, node: Node, text: str) -> Code:
        """The type of a node that owns `name`: the name itself where something had to be defined for it."""
        return self._annotation(node, name, text, owned=True)

    def model(
        self, name: str, text: str, properties: Mapping[str, Node], required: Sequence[str], extra: Code | None
    ) -> Code:
        """Define a class with a field for each property; `extra` is the type of further properties, None forbids them."""
        name = self._undefined(name)
        fields = [self._field(wire, node, wire in required, name) for wire, node in properties.items()]
        body = [Code(f"class {name}({'Open' if extra else 'Closed'}):"), Code(f"    {docstring(text)}")]
        if extra and extra != "Any":
            fields = [Code(f"    __pydantic_extra__: dict[str, {extra}] = Field(init=False)"), *fields]
        return self._define(name, [*body, Code(""), *fields] if fields else body)

    def alias(self, name: str, members: Sequence[str]) -> Code:
        """Define a name for a union; one that recurses is resolved when it is first used."""
        name = self._undefined(name)
        if self.of_types and self.types.recursive & words(" ".join(members)):
            arguments = [python(name), python(" | ".join(members))]
            return self._define(name, [Code(f"{name} = {call('TypeAliasType', arguments, len(name) + 3)}")])
        return self._define(name, [union(f"{name} = ", members)])

    def _plain(self, node: Node) -> Code | None:
        """The type of a node for which nothing has to be defined."""
        if isinstance(node, str):
            return self._name(node)
        scalar = node.type in _SCALARS and node.enum is None and "const" not in node.model_fields_set
        return Code(_BUILT_IN[str(node.type)]) if scalar else None

    def _annotation(self, node: Node, suggestion: str, text: str = "", *, owned: bool = False) -> Code:
        """The type of a node; `suggestion` names what has to be defined for it, `text` says what it is."""
        if isinstance(node, str):
            return self._name(node)
        if isinstance(node.type, str) and node.type not in JSON_TYPES:
            return self._name(node.type)
        name = suggestion if owned else self._free(suggestion)
        if (values := _values(node, self.types)) is not None:
            return self._literal(values, name)
        if node.type is None:
            return self._alternatives(node.anyOf or node.oneOf or (), name, node.description or text)
        types = (node.type,) if isinstance(node.type, str) else node.type
        return self._union([self._of_type(each, node, name, text) for each in types], name)

    def _field(self, wire: str, node: Node, required: bool, owner: str) -> Code:
        attribute = field_name(wire)
        annotation = self._plain(node) or self._annotation(node, class_name(owner, wire), f"`{wire}` of {owner}.")
        default = None if required else self._default(node)
        if not required and default is None and not _admits_none(annotation):
            annotation = Code(f"{annotation} | None")
        head = Code(f"    {attribute}: {annotation}")
        options = [] if required else [f"default={python(default, 8, 16)}"]
        if attribute != wire:
            options.append(f"alias={python(wire)}")
        if isinstance(default, list | dict):
            options.append("validate_default=True")
        if not options:
            return head
        simple = Code(f"{head} = {python(default, 4, len(head) + 3)}")
        if len(options) == 1 and not required and "\n" not in simple and len(simple) <= WIDTH:
            return simple
        return Code(f"{head} = {bracketed('Field(', options, ')', 4, explode=True)}")

    def _default(self, node: Node) -> Any:
        """What a view fills in; None where nothing is, or where the command or service does it."""
        filled = self.fill_defaults and isinstance(node, Schema) and "default" in node.model_fields_set
        return self.types.data(node.default, node) if filled and isinstance(node, Schema) else None

    def _name(self, name: str) -> Code:
        if self.types.admitted(name) == {"null"}:
            return Code("None")
        return Code(_BUILT_IN.get(name, name))

    def _literal(self, values: list[Any], suggestion: str) -> Code:
        members = [value for value in values if value is not None]
        if not members:
            return Code("None")
        code = literal_type("", members)
        if len(members) > 1 or len(code) >= 40:
            name = self._undefined(suggestion)
            code = self._define(name, [literal_type(f"{name} = ", members)])
        return Code(f"{code} | None" if len(members) < len(values) else code)

    def _of_type(self, name: str, node: Schema, suggestion: str, text: str) -> Code:
        if name == "array" and node.items is not None:
            item = self._annotation(node.items, class_name(suggestion, "Item"), f"An item of {suggestion}.")
            return self._container("list[", item, suggestion)
        if name == "object":
            return self._object(node, suggestion, node.description or text or f"{suggestion}.")
        return self._name(name)

    def _object(self, node: Schema, suggestion: str, text: str) -> Code:
        rest = node.additionalProperties
        further = None if rest is False or (rest is None and node.properties is not None) else Code("Any")
        if rest is not None and not isinstance(rest, bool):
            further = self._annotation(rest, class_name(suggestion, "Value"))
        if node.properties is None and further is not None:
            return self._container("dict[str, ", further, suggestion)
        return self.model(suggestion, text, node.properties or {}, node.required, further)

    def _container(self, opening: str, inner: Code, suggestion: str) -> Code:
        if "[" in inner or " | " in inner or len(inner) > 30:
            inner = self.alias(self._free(class_name(suggestion, "Entry")), inner.split(" | "))
        return Code(f"{opening}{inner}]")

    def _alternatives(self, branches: Sequence[Node], suggestion: str, text: str) -> Code:
        if not branches:
            return Code("Any")
        values: list[Any] = []
        members: list[Code] = []
        flat = list(self._flattened(branches))
        # What is only something or null needs no name beside that of the something.
        alone = len([branch for branch in flat if self.types.admitted(branch) != {"null"}]) == 1
        for number, branch in enumerate(flat, 1):
            resolved = self.types.resolved(branch)
            own = _values(resolved, self.types) if isinstance(resolved, Schema) else None
            values += own or []
            if own is None:
                inner = suggestion if alone else class_name(suggestion, str(number))
                members.append(self._annotation(branch, inner, text if alone else "", owned=alone))
        # pydantic confuses 1 and `true` in separate literals, so there is one for all values, and it is tried last.
        if values:
            distinct = list({(type(value), value): value for value in values}.values())
            members.append(
                self._literal(distinct, self._free(class_name(suggestion, "Value")) if members else suggestion)
            )
        return self._union(members, suggestion)

    def _flattened(self, branches: Sequence[Node]) -> Iterator[Node]:
        """The branches, and in place of one that is only a choice between others, these."""
        for branch in branches:
            resolved = self.types.resolved(branch)
            inner = (
                (resolved.anyOf or resolved.oneOf or ()) if isinstance(resolved, Schema) and not resolved.type else ()
            )
            recurs = (branch if isinstance(branch, str) else single_type(branch)) in self.types.recursive
            yield from self._flattened(inner) if inner and not recurs else (branch,)

    def _union(self, members: list[Code], suggestion: str) -> Code:
        if "Any" in members:
            return Code("Any")
        flat = list(dict.fromkeys(part for member in members for part in member.split(" | ")))
        if "None" in flat:
            flat = [*(part for part in flat if part != "None"), "None"]
        joined = Code(" | ".join(flat))
        if (
            len(flat) == 1
            or (len(flat) <= 3 and len(joined) <= 30)
            or (len(flat) == 2 and f"{flat[0]} | None" == joined)
        ):
            return joined
        name = self.alias(suggestion, [part for part in flat if part != "None"])
        return Code(f"{name} | None" if "None" in flat else name)

    def _free(self, suggestion: str) -> str:
        """Claim the suggestion, or the suggestion with a number when something else has that name."""
        numbered = (class_name(suggestion, str(number)) for number in count(2))
        name = suggestion
        while name in self.claimed or name in self.reserved:
            name = next(numbered)
        self.claimed.add(name)
        return name

    def _undefined(self, name: str) -> str:
        """The name, or a free one like it once something was defined under it."""
        return self._free(name) if name in self.defined else name

    def _define(self, name: str, lines: Sequence[Code]) -> Code:
        self.defined.add(name)
        self.definitions.append(Definition(Code(name), tuple(lines)))
        return Code(name)


def _values(node: Schema, types: Types) -> list[Any] | None:
    """The values of `enum` or `const`, if a Literal can hold them."""
    values = types.values(node)
    fit = values is not None and all(value is None or isinstance(value, str | int) for value in values)
    return values if fit else None


def _admits_none(annotation: str) -> bool:
    return annotation in ("Any", "None") or annotation.endswith(" | None")


def _as_code(line: str) -> str:
    if line.lstrip().startswith('"""'):
        return ""
    # The text of an alias that is resolved late is code, too.
    return line.replace('"', " ") if " = TypeAliasType(" in line else line
