"""What a key stands for: told to whoever holds it, and, as RFC 7662 has it, to services that were shown it."""

from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from .access import authenticated, check_scope
from .accounts import Caller, caller_of
from .core import Core, Reply
from .endpoints import Answer, body_of
from .refusal import Refusal

_FORM_LIMIT = 4096  # bytes
_FORM_FIELDS = 8


def read_key(_core: Core, caller: Caller, _handle: str) -> Reply:
    """Subject, account, scopes and end (seconds since 1970, or null) of the key that asks."""
    members = {"subject": caller.subject, "account": caller.account, "scopes": sorted(caller.scopes)}
    return Reply({**members, "exp": caller.expires_at})


def introspecting(core: Core) -> Answer:
    """Answers to POST /introspect, for keys with the scope compute:introspect, about keys of any account."""

    async def answer(request: Request) -> Reply:
        caller = await run_in_threadpool(authenticated, core, request.headers)
        content = await body_of(request, "application/x-www-form-urlencoded", _FORM_LIMIT)
        token = _token(content)
        check_scope(caller, ["compute:introspect"])
        return await run_in_threadpool(_introspect, core, token)

    return answer


def _introspect(core: Core, token: str) -> Reply:
    with core.store.read() as db:
        caller = caller_of(db, token, core.now())
    return Reply({"active": False} if caller is None else _active(caller))


def _active(caller: Caller) -> dict[str, Any]:
    members: dict[str, Any] = {
        "active": True,
        "token_type": "Bearer",
        "sub": caller.subject,
        "account": caller.account,
        "scope": " ".join(sorted(caller.scopes)),
    }
    return members if caller.expires_at is None else {**members, "exp": caller.expires_at}


def _token(form: bytes) -> str:
    """The field `token`, which there has to be once; others are for other kinds of tokens. Raises Refusal 400."""
    try:
        fields = parse_qsl(form.decode("ascii"), strict_parsing=True, errors="strict", max_num_fields=_FORM_FIELDS)
    except ValueError:
        raise Refusal(400, "invalid_input") from None
    tokens = [value for name, value in fields if name == "token"]
    if len(tokens) != 1:
        raise Refusal(400, "invalid_input")
    return tokens[0]
