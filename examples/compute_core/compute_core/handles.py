"""Names that the service makes up: handles of quotes, jobs and batches, and ids of accounts."""

import secrets
import string
from typing import Literal

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_HANDLE_LENGTH = 26  # characters of 5 random bits: nobody guesses one
_ACCOUNT_LENGTH = 12


def new_handle(kind: Literal["qt", "jb", "bt"]) -> str:
    """A handle that nothing has yet, such as `jb_…`: of a quote (qt), a job (jb) or a batch (bt)."""
    return f"{kind}_{_text_of(_CROCKFORD, _HANDLE_LENGTH)}"


def new_account_id() -> str:
    """An id that no account has yet, such as `acct_…`."""
    return f"acct_{_text_of(string.digits + string.ascii_lowercase, _ACCOUNT_LENGTH)}"


def _text_of(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))
