"""Puts verbs together: the operation or the pinned tool that one runs, the shared parts it uses, and the verb itself.

It works on the document, before anything is typed, so that whatever is wrong with a merged verb is still told at the place
where it was written.
"""

from collections.abc import Mapping
from typing import Any

from .merge import merge
from .operations import KEY, KEYS, key_part, operation_of, placed
from .pinned import tool_part
from .problems import Mark, Problem, SpecError, nearest, quoted
from .source import Map, Seq


def expand(document: Map, manifests: Mapping[str, Map]) -> Map:
    """The document with every verb of `verbs` put together; `manifests` are those that its backends name.

    Raises:
        SpecError: a verb uses a part that is not there, or has a parameter that the language adds.
    """
    verbs = document.get("verbs")
    if not isinstance(verbs, Map) or not isinstance(document.get("shared", Map(document.mark)), Map):
        return document
    assembly = _Assembly(document, manifests)
    expanded = Map(verbs.mark)
    for name, verb in verbs.items():
        whole = assembly.verb(verb) if isinstance(verb, Map) else verb
        expanded.put(name, whole, verbs.keys_at[name], verbs.values_at[name])
    if assembly.problems:
        raise SpecError(assembly.problems)
    whole = Map(document.mark)
    for key, value in document.items():
        whole.put(key, expanded if key == "verbs" else value, document.keys_at[key], document.values_at[key])
    return whole


class _Assembly:
    """Puts the verbs of one document together, and keeps what is wrong with them."""

    def __init__(self, document: Map, manifests: Mapping[str, Map]) -> None:
        self.manifests = manifests
        self.shared = document.get("shared", Map(document.mark))
        self.backends = document.get("backends")
        self.types = document.get("types")
        self.problems: list[Problem] = []

    def verb(self, verb: Map) -> Map:
        whole = self._with_parts(verb)
        if operation := operation_of(whole, self.backends):
            whole = merge(placed(operation.part, whole.values_at["run"]), whole)
        elif tool := tool_part(whole, self.backends, self.manifests):
            whole = merge(tool, whole)
        return self._with_key(whole) if whole.get("idempotent") in KEYS else whole

    def _with_parts(self, verb: Map) -> Map:
        use = verb.get("use", ())
        if not isinstance(use, Seq):
            return verb
        whole = Map(verb.mark)
        for name, mark in zip(use, use.items_at, strict=True):
            part = self.shared.get(name) if isinstance(name, str) else None
            if part is None:
                self.problems.append(_unknown_part(name, mark, self.shared))
            elif isinstance(part, Map):
                whole = merge(whole, part)
        return merge(whole, verb)

    def _with_key(self, verb: Map) -> Map:
        params = verb.get("params")
        if isinstance(params, Map) and KEY in params:
            sentence = f'{quoted(KEY)} is the parameter that "idempotent" adds; name yours otherwise'
            self.problems.append(Problem(params.keys_at[KEY], sentence))
            return verb
        result = self._closed_result(verb)
        key = key_part(verb["idempotent"], verb.values_at["idempotent"], with_result=result is not None)
        whole = merge(verb, key)
        if result is not None and "result" in key:
            whole["result"] = merge(result, key["result"])
            whole["result"].mark = result.mark  # it is still the type that it was written as
        return whole

    def _closed_result(self, verb: Map) -> Map | None:
        """The result that a verb declares, as a map, where it could not hold anything else; a name stands for its type."""
        result, seen = verb.get("result"), set[str]()
        while isinstance(result, str) and isinstance(self.types, Map) and result in self.types and result not in seen:
            seen.add(result)
            result = self.types[result]
        closed = isinstance(result, Map) and "properties" in result and "additionalProperties" not in result
        return result if closed else None


def _unknown_part(name: Any, mark: Mark, shared: Map) -> Problem:
    shown = str(name)
    return Problem(mark, f"`shared` has no part {quoted(shown)}{nearest(shown, shared)}")
