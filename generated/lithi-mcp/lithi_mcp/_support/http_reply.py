"""How the reply of a service becomes a result or a refusal: by its status, and by the `reply` and `refusals` of its verb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from . import reply_form
from .outbound import Received
from .quoting import quoted
from .registry import Run
from .reply_form import Reply

# What a status means where the spec does not say it; any other failure is `internal`.
NATURAL_KINDS: Final[Mapping[int, str]] = {
    400: "invalid_input",
    401: "denied",
    403: "denied",
    404: "not_found",
    409: "conflict",
    410: "not_found",
    412: "conflict",
    413: "invalid_input",
    414: "invalid_input",
    422: "invalid_input",
    429: "busy",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}


def read_http_reply(received: Received, run: Run, kinds: Mapping[str, str], *, feedback: str = "names") -> Any:
    """The result in a reply. `kinds` are those that a refusal may have, and what each means.

    With the `feedback` "shapes", what a service says of a failure is told only where the spec points at it, because it
    may repeat what was sent. Raises Refusal: what the service refused, or `internal` when its reply is not what was
    agreed.
    """
    # That something went wrong is all that `internal` means, and the status says more.
    sentences = {kind: sentence for kind, sentence in kinds.items() if kind != "internal"}
    reply = _reply(received, run, sentences, told=feedback == "names")
    if reply.went_well and received.problem is not None:
        raise reply.fault(f"The reply of {reply.source} {received.problem}.", kind="internal")
    return reply_form.read(reply, run.reply, kinds, sentences)


def _reply(received: Received, run: Run, sentences: Mapping[str, str], *, told: bool) -> Reply:
    status = received.status
    declared = run.refusals.get(str(status))
    kind = declared or NATURAL_KINDS.get(status)
    waiting = {} if received.retry_after is None else {"retry_after": received.retry_after}
    went_well = 200 <= status < 300 and declared is None
    return Reply(
        source=quoted(" ".join(run.target)),
        ending=_ending(status),
        went_well=went_well,
        output=b"null" if went_well and _may_be_empty(run) and not received.body.strip() else received.body,
        circumstances={"status": status, **waiting},
        kind=kind or "internal",
        kind_is_told=kind is not None,
        meaning=None if declared is None else sentences.get(declared),
        output_is_told=told and not _is_page(received.body),
    )


def _may_be_empty(run: Run) -> bool:
    """Whether a success without a body says enough: nothing came back. The declared result has the last word."""
    return run.reply["form"] in {"json", "pointers"} and run.reply.get("ok") is None


def _is_page(body: bytes) -> bool:
    """Whether it is made for a browser: that says little here, and a page for developers shows too much."""
    return body.lstrip().startswith(b"<")


def _ending(status: int) -> str:
    ending = f"ended with status {status}"
    return f"{ending}, and redirects are not followed" if 300 <= status < 400 else ending
