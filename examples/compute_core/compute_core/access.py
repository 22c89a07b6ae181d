"""Who asks, and whether they may: bearer keys, scopes, and account ids that have to be the caller's own."""

from collections.abc import Collection
from typing import Any

from starlette.datastructures import Headers

from .accounts import Caller, caller_of
from .core import Core
from .refusal import Refusal

_REALM = 'Bearer realm="compute-core"'
_LONGEST_KEY = 512  # characters


def authenticated(core: Core, headers: Headers) -> Caller:
    """Who the bearer key of a request stands for. Raises Refusal 401."""
    given = headers.getlist("authorization")
    if not given:
        raise Refusal(401, "unauthorized", headers={"WWW-Authenticate": _REALM})
    scheme, _, key = given[0].partition(" ")
    caller = None
    if len(given) == 1 and scheme.lower() == "bearer" and len(key) <= _LONGEST_KEY:
        with core.store.read() as db:
            caller = caller_of(db, key.strip(" "), core.now())
    if caller is None:
        raise Refusal(401, "unauthorized", headers={"WWW-Authenticate": f'{_REALM}, error="invalid_token"'})
    return caller


def check_scope(caller: Caller, scopes: Collection[str]) -> None:
    """Raises Refusal 403 when the caller has none of these scopes, and there are any."""
    if scopes and caller.scopes.isdisjoint(scopes):
        wanted = " ".join(sorted(scopes))
        challenge = f'{_REALM}, error="insufficient_scope", scope="{wanted}"'
        raise Refusal(403, "insufficient_scope", headers={"WWW-Authenticate": challenge})


def check_account(caller: Caller, value: Any) -> None:
    """Raises Refusal 403 when an `account_id`, at any depth of `value`, is not the caller's account."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if item.get("account_id", caller.account) != caller.account:
                raise Refusal(403, "denied")
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
