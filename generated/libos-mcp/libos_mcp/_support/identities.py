"""What others say of a key, read as an identity: services, tokens and files put it in the same few forms."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any

from .bearer import Identity

_NAME_CHARACTERS = 512
# RFC 3339; Python reads more than that.
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,6})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


class UnreadableError(ValueError):
    """Why something is no identity: a sentence that holds nothing of what was said."""


def identity(*, subject: Any, account: Any = None, scopes: Any = None, expires: Any = None) -> Identity:
    """The identity that these JSON values make; None stands for what is not said, and only a subject has to be.

    Scopes are a list, or a text with spaces between them. Raises UnreadableError.
    """
    if not is_name(subject):
        raise UnreadableError("The subject is no text that can be printed, or too long.")
    if account is not None and not is_name(account):
        raise UnreadableError("The account is no text that can be printed, or too long.")
    return Identity(subject, account, _scopes(scopes), instant(expires))


def is_name(value: Any) -> bool:
    """Whether a value can name a subject or an account: a text that is not empty, and has nothing invisible in it."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= _NAME_CHARACTERS


def instant(value: Any) -> float | None:
    """A time as seconds since 1970, from that number or as RFC 3339 has it; None for None. Raises UnreadableError."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return _moment(value).timestamp()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except (ValueError, OverflowError):
        pass  # said below
    raise UnreadableError("A time is neither a number of seconds nor of the form 2030-01-31T00:00:00Z.")


def _scopes(value: Any) -> frozenset[str]:
    names = [] if value is None else value.split() if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnreadableError("The scopes are neither a text nor a list of texts.")
    return frozenset(names)


def _moment(text: str) -> datetime:
    if not _TIME.fullmatch(text):
        raise ValueError
    return datetime.fromisoformat(text.upper())
