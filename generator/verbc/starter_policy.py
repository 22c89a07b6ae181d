"""The starter policy of a spec, written out as the file of a policy."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .literals import Code


def policy_lines(subjects: Mapping[str, Any]) -> tuple[Code, ...]:
    """The lines of a policy file with these subjects, which are in the form that a registry has."""
    return tuple(Code(line) for line in _lines(subjects))


def _lines(subjects: Mapping[str, Any]) -> Iterator[str]:
    yield "subjects:" if subjects else "subjects: {}"
    for subject, rows in subjects.items():
        said = [*_rights(rows), *_budget(rows["budget"])]
        yield f"  {_text(subject)}:" if said else f"  {_text(subject)}: {{}}"
        yield from said


def _rights(rows: Mapping[str, Any]) -> Iterator[str]:
    for key in ("allow", "ask", "deny"):
        if rows[key]:
            yield f"    {key}:"
        for row in rows[key]:
            yield f"      - {_row(row)}"


def _row(row: Any) -> str:
    if isinstance(row, str):
        return _text(row)
    right = _text(row["right"])
    return right if row["approver"] == "operator" else f"{{right: {right}, approver: {row['approver']}}}"


def _budget(budget: Mapping[str, Any] | None) -> Iterator[str]:
    if budget is not None:
        limits = {key: budget[key] for key in ("calls", "bytes") if budget[key] is not None}
        limits["per"] = f"{round(budget['per'] * 1000)}ms"
        yield f"    budget: {{{', '.join(f'{key}: {limit}' for key, limit in limits.items())}}}"


def _text(text: str) -> str:
    """A text of JSON, which is one of YAML."""
    return json.dumps(text)
