"""Puts the shared parts of verbs in: `use`, then the verb itself.

It works on the document, before anything is typed, so that whatever is wrong with a merged verb is still told at the place
where it was written.
"""

from typing import Any

from .problems import Mark, Problem, SpecError, nearest, quoted
from .source import Map, Seq

# Lists under these keys join, each item once; every other list is replaced.
JOINED = frozenset({"required", "requires", "positional", "json", "held", "examples"})


def expand(document: Map) -> Map:
    """The document with every verb of `verbs` put together.

    Raises:
        SpecError: a verb uses a part that is not there.
    """
    verbs, shared = document.get("verbs"), document.get("shared", Map(document.mark))
    if not isinstance(verbs, Map) or not isinstance(shared, Map):
        return document
    problems: list[Problem] = []
    expanded = _like(verbs)
    for name, verb in verbs.items():
        merged = _merged_verb(verb, shared, problems) if isinstance(verb, Map) else verb
        expanded.put(name, merged, verbs.keys_at[name], verbs.values_at[name])
    if problems:
        raise SpecError(problems)
    whole = _like(document)
    for key, value in document.items():
        whole.put(key, expanded if key == "verbs" else value, document.keys_at[key], document.values_at[key])
    return whole


def _merged_verb(verb: Map, shared: Map, problems: list[Problem]) -> Map:
    use = verb.get("use", ())
    if not isinstance(use, Seq):
        return verb
    merged = _like(verb)
    for name, mark in zip(use, use.items_at, strict=True):
        part = shared.get(name) if isinstance(name, str) else None
        if part is None:
            problems.append(_unknown_part(name, mark, shared))
        elif isinstance(part, Map):
            merged = merge(merged, part)
    return merge(merged, verb)


def _unknown_part(name: Any, mark: Mark, shared: Map) -> Problem:
    shown = str(name)
    return Problem(mark, f"`shared` has no part {quoted(shown)}{nearest(shown, shared)}")


def merge(under: Map, over: Map) -> Map:
    """Both maps as one: maps merge, the lists of JOINED join, all else is replaced by `over`."""
    merged = _like(over)
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


def _like(original: Map) -> Map:
    return Map(original.mark)
