"""The operations that come with verbc: partial verbs in the spec language, for the backends that have some.

The YAML files of this folder hold them, with their own `types`. Their names are written out here, so that a verb can narrow
an operation anywhere inside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ..compose import load
from ..merge import merge
from ..problems import Mark, Source
from ..source import Map, Seq

KINDS = ("jobs", "gateway")
KEY = "idempotency_key"
KEYS = ("key", "derived")  # ways to be idempotent that take one
SPAWN = "spawn"

# What only an operation says of itself; the rest of it is a partial verb.
_FACTS = ("open", "waits", "plan")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: what a verb that runs it gets, and what else is known of it."""

    part: Map
    open: bool = False  # it reaches outside
    waits: bool = False  # it holds no slot of `concurrency`
    plan: str | None = None  # the rights that only the plan of a call can know


def operation_of(verb: Map, backends: Any) -> Operation | None:
    """The operation that a verb of a document runs; None when it runs none, or one that does not exist."""
    run = verb.get("run")
    if not isinstance(run, Map) or not isinstance(backends, Map):
        return None
    for name, target in run.items():
        backend = backends.get(name)
        for kind in KINDS:
            if isinstance(backend, Map) and kind in backend and isinstance(target, str):
                return operations(kind).get(target.partition(" ")[0])
    return None


@cache
def operations(kind: str) -> Mapping[str, Operation]:
    """The operations of a kind of backend, by name."""
    document = _document(kind)
    parts, types = document["shared"], document["types"]
    return {name: _operation(_written_out(part, types)) for name, part in parts.items()}


def key_part(kind: str, mark: Mark, *, with_result: bool) -> Map:
    """What `idempotent: <kind>`, which stands at `mark`, adds to a verb; to its result only when it has one."""
    part: Map = placed(_document("keys")["shared"][kind], mark)
    if not with_result:
        part.pop("result", None)
    return part


def placed(part: Any, mark: Mark) -> Any:
    """A copy of a part in which everything stands at `mark`: problems with it are told where the spec asks for it."""
    if isinstance(part, Map):
        whole = Map(mark)
        for key, value in part.items():
            whole.put(key, placed(value, mark), mark, mark)
        return whole
    if isinstance(part, Seq):
        items = Seq(mark)
        for item in part:
            items.put(placed(item, mark), mark)
        return items
    return part


@cache
def _document(name: str) -> Map:
    text = (files(__package__) / f"{name}.yaml").read_text(encoding="utf-8")
    return load(Source(f"{__name__}/{name}.yaml", text))


def _operation(whole: Map) -> Operation:
    part = Map(whole.mark)
    for key, value in whole.items():
        if key not in _FACTS:
            part.put(key, value, whole.keys_at[key], whole.values_at[key])
    return Operation(part, open="open" in whole, waits="waits" in whole, plan=whole.get("plan"))


def _written_out(part: Map, types: Map) -> Map:
    """A partial verb in which no schema is a name of `types`."""
    whole = Map(part.mark)
    for key, value in part.items():
        if key == "params":
            value = _each(value, types)
        elif key == "result":
            value = _schema(value, types)
        whole.put(key, value, part.keys_at[key], part.values_at[key])
    return whole


def _schema(node: Any, types: Map) -> Any:
    if isinstance(node, str):
        return _schema(types[node], types) if node in types else node
    if not isinstance(node, Map):
        return node
    written = Map(node.mark)
    for keyword, value in node.items():
        match keyword:
            case "properties":
                value = _each(value, types)
            case "items" | "additionalProperties":
                value = _schema(value, types)
            case "anyOf" | "oneOf":
                value = _list(value, types)
        written.put(keyword, value, node.keys_at[keyword], node.values_at[keyword])
    named = written.get("type")
    if not (isinstance(named, str) and named in types):
        return written
    del written["type"]
    return merge(_schema(types[named], types), written)


def _each(nodes: Map, types: Map) -> Map:
    written = Map(nodes.mark)
    for name, node in nodes.items():
        written.put(name, _schema(node, types), nodes.keys_at[name], nodes.values_at[name])
    return written


def _list(nodes: Seq, types: Map) -> Seq:
    written = Seq(nodes.mark)
    for node, mark in zip(nodes, nodes.items_at, strict=True):
        written.put(_schema(node, types), mark)
    return written
