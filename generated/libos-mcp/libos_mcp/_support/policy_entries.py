"""What a policy file holds, read from JSON values into the form that policies are made of; what is not known is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from .identities import is_name
from .quoting import listed, quoted, shown
from .right_forms import form_problem

_GRANT: Final = re.compile(r"(read|write|execute|admin) [a-z][a-z0-9_]*(:[^\s*]+|(:[^\s*:]+)*:\*)")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_AMOUNT: Final = re.compile(r"([1-9][0-9]{0,14})([A-Za-z]*)")
_BYTES: Final[Mapping[str, int]] = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SECONDS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# Beyond these nothing is limited any more, and databases do not count.
MOST_CALLS: Final = 1 << 53
MOST_BYTES: Final = 1 << 53
MOST_DAYS: Final = 3650
MOST_SECONDS: Final = MOST_DAYS * _SECONDS["d"]
_APPROVERS: Final = ("operator", "client")
_LONGEST_NAME: Final = 32  # characters of a word that is shown; keys are longer

_Place: TypeAlias = tuple[str, ...]


class PolicyEntryError(ValueError):
    """What is wrong, and where: "subject `ada`, `allow`, entry 2: `*` must be a right such as ..."."""


@dataclass(frozen=True, slots=True)
class PolicyEntries:
    """What a policy file says."""

    subjects: Mapping[str, Any]  # the normal form: as `Policy.of` takes it, and as a registry has it
    operator_keys: frozenset[str]  # their SHA-256, as 64 hex digits
    previews: bool  # whether the audit shows what was sent


def read_entries(document: Any) -> PolicyEntries:
    """The policy that a JSON value stands for. Raises PolicyEntryError."""
    members = _object(document, ("subjects", "operator_keys", "audit"), ())
    if "subjects" not in members:
        _fail(
            (), f"it has no {quoted('subjects')}; name those who may do something, even if nobody is: `subjects: {{}}`"
        )
    audit = _object(members.get("audit", {}), ("previews",), ("`audit`",))
    return PolicyEntries(
        {name: _subject(name, rows) for name, rows in _map(members["subjects"], ("`subjects`",)).items()},
        frozenset(_list(members.get("operator_keys", []), ("`operator_keys`",), _key)),
        _truth(audit.get("previews", False), ("`audit`", "`previews`")),
    )


def _subject(name: str, value: Any) -> dict[str, Any]:
    place: _Place = (f"subject {quoted(name)}",)
    if not is_name(name):
        _fail(place, "a subject is a text that can be printed, and not too long")
    rows = _object(value, ("allow", "ask", "deny", "budget"), place)
    budget = rows.get("budget")
    return {
        "allow": _list(rows.get("allow", []), (*place, "`allow`"), _grant),
        "ask": _list(rows.get("ask", []), (*place, "`ask`"), _asked),
        "deny": _list(rows.get("deny", []), (*place, "`deny`"), _grant),
        "budget": None if budget is None else _budget(budget, (*place, "`budget`")),
    }


def _grant(value: Any, place: _Place) -> str:
    if not isinstance(value, str) or not _GRANT.fullmatch(value):
        sentence = (
            "must be a right such as `read job:42` or `execute verb:*`: read, write, execute or admin, then a kind"
            " and an id; `*` can only be all that follows the last colon"
        )
        _fail(place, f"{_told(value)} {sentence}")
    if (problem := form_problem(value)) is not None:
        _fail(place, f"{_told(value)} {problem}")
    return value


def _asked(value: Any, place: _Place) -> dict[str, str]:
    if isinstance(value, str):
        return {"right": _grant(value, place), "approver": "operator"}
    row = _object(value, ("right", "approver"), place)
    approver = row.get("approver", "operator")
    if "right" not in row or approver not in _APPROVERS:
        _fail(place, "it needs a `right`, and an `approver` that is `operator` or `client`")
    return {"right": _grant(row["right"], place), "approver": approver}


def _budget(value: Any, place: _Place) -> dict[str, Any]:
    members = _object(value, ("calls", "bytes", "per"), place)
    if "per" not in members:
        _fail(place, "it has no `per`; say what time it is for, as `per: 1d`")
    calls, size = members.get("calls"), members.get("bytes")
    return {
        "calls": None if calls is None else _count(calls, (*place, "`calls`")),
        "bytes": None if size is None else _size(size, (*place, "`bytes`")),
        "per": _time(members["per"], (*place, "`per`")),
    }


def _count(value: Any, place: _Place) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        _fail(place, f"{_told(value)} must be a whole number, 0 or more")
    if value > MOST_CALLS:
        _fail(place, f"{_told(value)} must be at most {MOST_CALLS}")
    return value


def _size(value: Any, place: _Place) -> int:
    size = int(_amount(_digits(value), _BYTES, "64MiB or 1000000", place))
    if size > MOST_BYTES:
        _fail(place, f"{_told(value)} must be at most {MOST_BYTES}")
    return size


def _time(value: Any, place: _Place) -> float:
    seconds = float(_amount(value, _SECONDS, "1d, 12h or 90s", place))
    if seconds > MOST_SECONDS:
        _fail(place, f"{_told(value)} must be at most {MOST_DAYS}d")
    return seconds


def _digits(value: Any) -> Any:
    """A number of bytes as it would be written."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else value


def _amount(value: Any, units: Mapping[str, float], example: str, place: _Place) -> float:
    parts = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if parts is None or parts[2] not in units:
        _fail(place, f"{_told(value)} must be an amount such as {example}")
    return int(parts[1]) * units[parts[2]]


def _key(value: Any, place: _Place) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        # Somebody may have put the key itself there, so it is not shown.
        _fail(place, "it must be the SHA-256 of a key, 64 lower-case hex digits, as `policy key` prints it")
    return value


def _truth(value: Any, place: _Place) -> bool:
    if not isinstance(value, bool):
        _fail(place, f"{_told(value)} must be true or false")
    return value


def _list(value: Any, place: _Place, read: Callable[[Any, _Place], Any]) -> list[Any]:
    if not isinstance(value, list):
        _fail(place, f"{_told(value)} must be a list")
    return [read(item, (*place, f"entry {number}")) for number, item in enumerate(value, 1)]


def _object(value: Any, names: tuple[str, ...], place: _Place) -> Mapping[str, Any]:
    members = _map(value, place)
    if unknown := [name for name in members if name not in names]:
        _fail(place, f"there is no {_told(unknown[0])} here; there are {listed([*names])}")
    return members


def _map(value: Any, place: _Place) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _fail(place, f"{_told(value)} must be a map")
    return value


def _told(value: Any) -> str:
    """A value in a few words."""
    match value:
        case str() if len(value) > _LONGEST_NAME and " " not in value:
            return f"text of {len(value)} characters"  # it may be a key that got into the wrong place
        case str():
            return quoted(value)
        case bool() | None:
            return {True: "`true`", False: "`false`", None: "`null`"}[value]
        case int() | float():
            return quoted(shown(str(value)))
        case _:
            return "a list" if isinstance(value, list) else "a map"


def _fail(place: _Place, reason: str) -> NoReturn:
    raise PolicyEntryError(f"{', '.join(place)}: {reason}" if place else reason)
