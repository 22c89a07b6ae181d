"""What a keys file holds: for each key its SHA-256, never the key itself, and whom it stands for."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .bearer import Identity
from .identities import UnreadableError, identity
from .strict_json import Unacceptable, parse

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MEMBERS: Final = frozenset({"sha256", "subject", "account", "scopes", "expires", "label"})
_ID_DIGITS = 12


class EntriesError(ValueError):
    """Why a text is no list of keys: a predicate, such as "is not JSON", that holds nothing of the text."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One key."""

    sha256: str = field(repr=False)  # 64 hex digits
    identity: Identity
    expires: str | None = None  # as RFC 3339 has it
    label: str | None = None  # for whoever keeps the file

    @property
    def id(self) -> str:
        """What the key is called where it is listed: too little of its digest to try other keys on."""
        return self.sha256[:_ID_DIGITS]


def key_digest(key: str) -> str:
    """The SHA-256 of a key, as 64 hex digits."""
    return hashlib.sha256(key.encode()).hexdigest()


def read_entries(text: bytes) -> list[KeyEntry]:
    """The keys in the text of a keys file. Raises EntriesError."""
    try:
        document = parse(text)
    except Unacceptable as error:
        raise EntriesError(error.reason) from None
    if not isinstance(document, dict) or document.keys() != {"keys"} or not isinstance(document["keys"], list):
        raise EntriesError("is no object with a list `keys`, and nothing else")
    entries = [_entry(number, value) for number, value in enumerate(document["keys"], 1)]
    if len({entry.sha256 for entry in entries}) < len(entries):
        raise EntriesError("has the same key twice")
    return entries


def written_entries(entries: Sequence[KeyEntry]) -> bytes:
    """The text of a keys file."""
    return (json.dumps({"keys": [_written(entry) for entry in entries]}, indent=2) + "\n").encode()


def _entry(number: int, value: Any) -> KeyEntry:
    if not isinstance(value, dict) or not value.keys() <= _MEMBERS:
        raise EntriesError(f"has no object in entry {number}, or one with members that no entry has")
    digest, expires, label = value.get("sha256"), value.get("expires"), value.get("label")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise EntriesError(f"has no `sha256` of 64 lower-case hex digits in entry {number}")
    if not (expires is None or isinstance(expires, str)):
        raise EntriesError(f"has no time such as 2030-01-31T00:00:00Z in `expires` of entry {number}")
    if not (label is None or isinstance(label, str)) or not isinstance(value.get("scopes", []), list):
        raise EntriesError(f"has a label that is no text, or scopes that are no list, in entry {number}")
    try:
        known = identity(**{name: value.get(name) for name in ("subject", "account", "scopes", "expires")})
    except UnreadableError as error:
        raise EntriesError(f"has an entry {number} that is wrong. {str(error).removesuffix('.')}") from None
    return KeyEntry(digest, known, expires, label)


def _written(entry: KeyEntry) -> dict[str, Any]:
    return {
        "sha256": entry.sha256,
        "subject": entry.identity.subject,
        "account": entry.identity.account,
        "scopes": sorted(entry.identity.scopes),
        "expires": entry.expires,
        "label": entry.label,
    }
