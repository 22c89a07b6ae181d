"""What the request surface tells about verbs: the catalog of all, made once, and the details of one."""

from __future__ import annotations

from typing import Any

from .registry import Registry, Verb

_USAGE = (
    "Call with help set to the name of a verb to read its schema"
    " (an object with verb and the named parameter where schema_fingerprint_varies_with is given),"
    " then send ops: a list of objects with op, args and, for a verb that has one, schema_fingerprint."
)


def catalog(registry: Registry) -> dict[str, Any]:
    """All verbs, those that are unavailable last, with counts and how to go on."""
    known: dict[str, Any] = {
        "verbs": [_entry(verb) for verb in registry.available]
        + [_unavailable_entry(registry, verb) for verb in registry.unavailable],
        "verb_count": len(registry.verbs),
        "available_count": len(registry.available),
        "max_ops": registry.limits.ops,
        "help_usage": _USAGE,
    }
    if registry.synonyms_removed_after is not None:
        known["synonyms_removed_after"] = registry.synonyms_removed_after
    return known


def details(verb: Verb, schema: dict[str, Any], fingerprint: str | None) -> dict[str, Any]:
    """One verb in full; `fingerprint` is None where none is told."""
    told: dict[str, Any] = {"verb": verb.name, "schema": schema}
    if verb.varies_with:
        told["schema_fingerprint_varies_with"] = list(verb.varies_with)
    if fingerprint is not None:
        told["schema_fingerprint"] = fingerprint
    if verb.refused:
        told["refused"] = dict(verb.refused)
    return told


def unavailable_details(verb: Verb) -> dict[str, Any]:
    """Why a verb cannot be called."""
    return {"verb": verb.name, "available": False, "summary": verb.summary, "reason": verb.unavailable}


def _entry(verb: Verb) -> dict[str, Any]:
    entry: dict[str, Any] = {"verb": verb.name, "summary": verb.summary}
    if required := verb.required:
        entry["required"] = required
    if verb.required_unenforced:
        entry["required_unenforced"] = list(verb.required_unenforced)
    if verb.varies_with:
        entry["schema_fingerprint_varies_with"] = list(verb.varies_with)
    if verb.quotes_fingerprint:
        entry["schema_fingerprint"] = verb.fingerprint
    return entry


def _unavailable_entry(registry: Registry, verb: Verb) -> dict[str, Any]:
    entry: dict[str, Any] = {"verb": verb.name, "available": False, "summary": verb.summary}
    if registry.backends[verb.run.backend]["kind"] == "cli":
        entry["cli_path"] = " ".join(verb.run.target)
    return entry
