"""Two partial verbs as one: maps merge, some lists join, all else is replaced."""

from typing import Any

from .source import Map, Seq

# Lists under these keys join, each item once; every other list is replaced.
JOINED = frozenset({"required", "requires", "positional", "json", "held", "examples"})


def merge(under: Map, over: Map) -> Map:
    """Both maps as one: maps merge, the lists of JOINED join, all else is replaced by `over`."""
    merged = Map(over.mark)
    for key, value in under.items():
        merged.put(key, value, under.keys_at[key], under.values_at[key])
    for key, value in over.items():
        merged.put(key, _merged(key, under.get(key), value), over.keys_at[key], over.values_at[key])
    return merged


def _merged(key: str, under: Any, over: Any) -> Any:
    if isinstance(under, Map) and isinstance(over, Map):
        return merge(under, over)
    if isinstance(under, Seq) and isinstance(over, Seq) and key in JOINED:
        joined = Seq(over.mark)
        for items in (under, over):
            for item, mark in zip(items, items.items_at, strict=True):
                if item not in joined:
                    joined.put(item, mark)
        return joined
    return over
