"""The policy in force: read from a file that only an operator can change, and read again when it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final

from .policy import Policy
from .policy_entries import PolicyEntryError, read_entries
from .quoting import shown_path
from .strict_yaml import YamlError, load_yaml
from .trusted_file import Stamp, TrustedFile, TrustedFileError, stamp

_MOST_BYTES: Final = 1 << 20


class PolicyFileError(Exception):
    """A policy file cannot be used; the text is a sentence that says why, and where in it."""


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy, and what stands beside it in its file."""

    policy: Policy
    operator_keys: frozenset[str] = field(repr=False)  # their SHA-256, as 64 hex digits
    previews: bool  # whether the audit shows what was sent
    subjects: Mapping[str, Any]  # what `policy` was made of


def read_policy(path: Path) -> PolicyFile:
    """The policy in a file of YAML or JSON. Raises PolicyFileError: also when others may change it."""
    try:
        text = TrustedFile(path, "policy file", _MOST_BYTES, private=False).read().decode("utf-8")
        entries = read_entries(load_yaml(text))
    except TrustedFileError as error:
        raise PolicyFileError(str(error)) from None
    except UnicodeDecodeError:
        raise PolicyFileError(f"The policy file {shown_path(path)} is not UTF-8.") from None
    except YamlError as error:
        raise PolicyFileError(f"The policy file {shown_path(path)} cannot be read, {error}.") from None
    except PolicyEntryError as error:
        raise PolicyFileError(f"The policy file {shown_path(path)} cannot be used, {error}.") from None
    return PolicyFile(Policy.of(entries.subjects), entries.operator_keys, entries.previews, entries.subjects)


@dataclass(frozen=True, slots=True)
class _Content:
    """What was read, and which file it was. With a problem, nothing in it counts."""

    stamp: Stamp
    read: PolicyFile | None
    problem: str = ""


class PolicySource:
    """The policy in force, for any thread: that of a file, or the one that a server is built with."""

    def __init__(self, starter: Mapping[str, Any], path: Path | None) -> None:
        """`starter` is the policy that counts without a file, as `Policy.of` takes it."""
        self._starter = PolicyFile(Policy.of(starter), frozenset(), False, starter)
        self._path = None if path is None else path.absolute()
        self._content: _Content | None = None
        self._reading = Lock()

    def current(self) -> PolicyFile:
        """The policy by the file as it is now. Raises PolicyFileError while that cannot be used."""
        if self._path is None:
            return self._starter
        content = self._content
        if content is None or content.stamp != stamp(self._path):
            content = self._read_again(self._path)
        if content.read is None:
            raise PolicyFileError(content.problem)
        return content.read

    def _read_again(self, path: Path) -> _Content:
        with self._reading:
            # The stamp first: what changes meanwhile is read once more.
            taken = stamp(path)
            if self._content is None or self._content.stamp != taken:
                self._content = _read(path, taken)
            return self._content


def _read(path: Path, taken: Stamp) -> _Content:
    try:
        return _Content(taken, read_policy(path))
    except PolicyFileError as error:
        return _Content(taken, None, str(error))
