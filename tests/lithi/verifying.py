"""What tests of verifiers share: what a service says, well or badly, and what it is to be turned away."""

from __future__ import annotations

from itertools import count
from typing import Any

from .shapes import UNKNOWN
from .stub import Cut, reply
from .tokens import ACCOUNT, ALGORITHM, AUDIENCE, ISSUER
from .wire import MODERN, Endpoint, Reply
from .world import job_of

QUOTE = {"handle": UNKNOWN["qt"], "digest": f"sha256:{'0' * 64}", "state": "quoted", "p_next_action": "run"}
ACTIVE = {"active": True, "sub": "ada", "account": ACCOUNT, "scope": "compute:quote compute:run compute:read"}

FAILURES: dict[str, bytes | None] = {
    "hangs up": None,
    "hangs up in the middle": Cut(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
    "is no HTTP": Cut(b"zqmark\r\n\r\n"),
    **{f"status {status}": reply(status, ACTIVE) for status in (201, 400, 401, 403, 404, 429, 500, 502, 503)},
    "status 204": reply(204, b""),
    "redirects": reply(307, ACTIVE, Location="/elsewhere"),
    "redirects with 302": reply(302, ACTIVE, Location="/elsewhere"),
    "no JSON": reply(200, b"active"),
    "nothing": reply(200, b""),
    "half of it": reply(200, b'{"active": true, "sub": "ada"'),
    "a list": reply(200, [ACTIVE]),
    "text": reply(200, "active"),
    "true": reply(200, True),
    "null": reply(200, None),
    "an empty object": reply(200, {}),
    "active twice": reply(200, b'{"active": false, "active": true, "sub": "ada", "scope": "compute:quote"}'),
    "a very long answer": reply(200, {**ACTIVE, "padding": "x" * 8_000_000}),
    **{f"active as {value!r}": reply(200, {**ACTIVE, "active": value}) for value in ("true", 1, "yes", [True], None)},
}

UNTELLING = ("hangs up", "is no HTTP", "status 500", "redirects", "no JSON", "a list", "an empty object")

_NUMBERS = count()


def fresh_key() -> str:
    """A key that nobody has seen before, nor one that begins so."""
    return f"s3cret-key-{next(_NUMBERS):06}-s3cret"


def quoted(endpoint: Endpoint, revision: str = MODERN) -> Reply:
    return endpoint.call("lithi.quote", {"job": job_of()}, revision)


def turned_away(answer: Reply, key: str, *statuses: int) -> None:
    """That a call was stopped at the door, in one of these ways, and its key not repeated."""
    assert answer.status in statuses, answer
    assert not answer.holds(key)
    if answer.status == 401:
        assert answer.json["error"] == "invalid_token"
        assert str(answer.header("www-authenticate")).startswith("Bearer")


def jwt_way(url: str) -> dict[str, Any]:
    return {"jwt": url, "algorithms": [ALGORITHM], "issuer": ISSUER, "audience": AUDIENCE, "account": "account"}
