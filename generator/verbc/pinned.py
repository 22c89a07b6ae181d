"""Manifest → the parameters of a verb that one pinned tool runs: its registered schema, in the language of specs.

It works on documents, so that what the language does not have is told at its place in the manifest.
"""

from collections.abc import Mapping
from typing import Any

from .problems import Mark
from .source import Map, Plain, Seq
from .support.manifest import WRAPPERS

# Keywords that say nothing about which values fit.
_REMARKS = frozenset({"$comment", "$schema", "examples", "title"})


def unwrapped(manifest: Map) -> Map:
    """A manifest without the one key that it may stand under."""
    inner = next((manifest[key] for key in WRAPPERS if key in manifest), None) if len(manifest) == 1 else None
    return inner if isinstance(inner, Map) else manifest


def tool_of(manifest: Map, tool_id: str) -> Map | None:
    """A tool of a manifest, as it is written."""
    tools = manifest.get("tools")
    found = (tool for tool in tools if isinstance(tool, Map)) if isinstance(tools, Seq) else ()
    return next((tool for tool in found if tool.get("tool_id") == tool_id), None)


def tool_part(verb: Map, backends: Any, manifests: Mapping[str, Map]) -> Map | None:
    """What the pinned tool that a verb runs gives it: `params` and `required`; None where it runs none."""
    run = verb.get("run")
    if not isinstance(run, Map) or not isinstance(backends, Map):
        return None
    tool = _run_tool(run, backends, manifests)
    schema = None if tool is None else tool.get("input_schema")
    if not isinstance(schema, Map):
        return None
    renamed = run.get("as")
    names = {str(own): name for name, own in renamed.items()} if isinstance(renamed, Map) else {}
    return _part(schema, names)


def _run_tool(run: Map, backends: Map, manifests: Mapping[str, Map]) -> Map | None:
    for name, target in run.items():
        backend = backends.get(name)
        manifest = manifests.get(backend.get("mcp", "")) if isinstance(backend, Map) else None
        if manifest is not None and isinstance(target, str) and (tool := tool_of(manifest, target)) is not None:
            return tool
    return None


def _part(schema: Map, names: Mapping[str, str]) -> Map:
    part, mark = Map(schema.mark), schema.mark
    properties, required = schema.get("properties"), schema.get("required")
    params = Map(mark)
    if isinstance(properties, Map):
        for name, node in properties.items():
            at = properties.keys_at[name]
            params.put(names.get(name, name), _schema(node), at, properties.values_at[name])
    part.put("params", params, mark, mark)
    if isinstance(required, Seq):
        listed = Seq(mark)
        for name, at in zip(required, required.items_at, strict=True):
            listed.put(names.get(name, name), at)
        part.put("required", listed, mark, mark)
    return part


def _schema(node: Any) -> Any:
    if not isinstance(node, Map):
        return node
    written = Map(node.mark)
    for keyword, value in node.items():
        if keyword in _REMARKS or _is_understood(node, keyword, value):
            continue
        written.put(keyword, _inner(keyword, value), node.keys_at[keyword], node.values_at[keyword])
    if "properties" in node and "additionalProperties" not in node:
        _open(written, node.mark)
    return written


def _is_understood(node: Map, keyword: str, value: Any) -> bool:
    """Whether the language says it without being told: an object that lists its properties has no others."""
    return keyword == "additionalProperties" and value == "false" and "properties" in node


def _open(written: Map, mark: Mark) -> None:
    written.put("additionalProperties", Plain("true"), mark, mark)


def _inner(keyword: str, value: Any) -> Any:
    match keyword:
        case "properties" if isinstance(value, Map):
            inner = Map(value.mark)
            for name, node in value.items():
                inner.put(name, _schema(node), value.keys_at[name], value.values_at[name])
            return inner
        case "items" | "additionalProperties":
            return _schema(value)
        case "anyOf" | "oneOf" if isinstance(value, Seq):
            branches = Seq(value.mark)
            for node, mark in zip(value, value.items_at, strict=True):
                branches.put(_schema(node), mark)
            return branches
        case _:
            return value
