"""A client's user is asked by a form: while the call waits for him, or in the newer era before it is sent again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp.server import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, ClientCapabilities, ElicitResult, RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from . import log
from .consent import Consent, InputRequiredError, Question
from .fingerprint import digest
from .refusal import Refusal
from .registry import Registry
from .request_state import Seal

_KEY: Final = "approval"
# To accept it is the answer, and there is nothing to fill in.
_FORM: Final[dict[str, Any]] = {"type": "object", "properties": {}}
# How long a person may take; the time of the call itself stands still meanwhile.
_PATIENCE_SECONDS: Final = 600.0


class ClientConsents:
    """Asks over stdio, and over HTTP where a request can be answered with a question."""

    def __init__(self, registry: Registry, environ: Mapping[str, str] = os.environ) -> None:
        """Raises StateKeysError."""
        self._seal = Seal.of(registry.server.package, environ)

    def of(self, context: ServerRequestContext[Any], params: CallToolRequestParams, subject: str) -> Consent | None:
        """The way to ask that this client has, if it can show a form."""
        if not _shows_forms(context.session.client_capabilities):
            return None
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return _SentAgain(self._seal, params, subject)
        if context.request is not None or context.request_id is None:
            return None  # over HTTP a question of the older era would have no way back
        return _Waiting(context.session, context.request_id, _PATIENCE_SECONDS)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Asks while the call waits."""

    session: ServerSession
    request_id: RequestId
    seconds: float

    async def ask(self, question: Question) -> bool | None:
        try:
            async with asyncio.timeout(self.seconds):
                return _meant(await self.session.elicit_form(question.message, _FORM, self.request_id))
        except TimeoutError:
            return None
        except (MCPError, ValidationError) as error:
            log.event("warning", "a client could not ask its user", how=type(error).__name__)
            return None


@dataclass(frozen=True, slots=True)
class _SentAgain:
    """Asks by an answer to the call, which the client then sends again."""

    seal: Seal
    params: CallToolRequestParams
    subject: str

    async def ask(self, question: Question) -> bool | None:
        state, responses = self.params.request_state, self.params.input_responses
        if state is None and responses is None:
            raise InputRequiredError(self._form(question))
        if state is None or not self.seal.holds(state, question.approval_id, self._call()):
            raise Refusal(
                "invalid_input",
                "The request state is too old, or of something else; send the call again without it, and without answers.",
            )
        answer = (responses or {}).get(_KEY)
        if not isinstance(answer, ElicitResult):
            raise Refusal("invalid_input", f"The call was sent again without an answer to `{_KEY}`.")
        return _meant(answer)

    def _form(self, question: Question) -> dict[str, Any]:
        form = {"mode": "form", "message": question.message, "requestedSchema": _FORM}
        return {
            "resultType": "input_required",
            "inputRequests": {_KEY: {"method": "elicitation/create", "params": form}},
            "requestState": self.seal.seal(question.approval_id, self._call()),
        }

    def _call(self) -> str:
        """What makes this call the one that was asked about."""
        arguments = self.params.arguments or {}
        return digest({"subject": self.subject, "tool": self.params.name, "arguments": arguments})


def _shows_forms(capabilities: ClientCapabilities | None) -> bool:
    elicitation = None if capabilities is None else capabilities.elicitation
    # One without any mode is of a client that knows no other than forms.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _meant(answer: ElicitResult) -> bool | None:
    """Yes or no; None from a person who has only closed the form."""
    return {"accept": True, "decline": False}.get(answer.action)
