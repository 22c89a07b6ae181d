"""What a client's user can be asked while a call waits: whether it may go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp_types import CallToolRequestParams


@dataclass(frozen=True, slots=True)
class Question:
    """An approval that a client's user may give."""

    approval_id: str
    message: str
    detail: Mapping[str, Any]


class InputRequiredError(Exception):
    """The call is to be sent again, with an answer of the client's user. `result` says so, in its wire form."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


class Consent(Protocol):
    """A way to ask the client's user."""

    async def ask(self, question: Question) -> bool | None:
        """His answer; None where he cannot be asked. Raises InputRequiredError, and Refusal for a forged answer."""


class Consents(Protocol):
    """The ways to ask that the clients of a server have."""

    def of(self, context: ServerRequestContext[Any], params: CallToolRequestParams, subject: str) -> Consent | None:
        """The way to ask whoever is behind a call of `subject`; None where there is none."""
