"""How the end of a command becomes a result or a refusal, as the `reply` and `refusals` of its verb say."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from . import reply_form
from .process import Finished
from .quoting import quoted
from .registry import Run
from .reply_form import Reply


def read_reply(finished: Finished, run: Run, kinds: Collection[str]) -> Any:
    """The result of a command that has ended. `kinds` are those that a refusal may have.

    Raises Refusal: what the command refused, in its own words, or `internal` when its reply is not what was agreed.
    """
    kind = run.refusals.get(str(finished.code))
    return reply_form.read(_reply(finished, quoted(" ".join(run.target)), kind), run.reply, kinds)


def parse_output(finished: Finished, command: str) -> Any:
    """The one JSON document that a command printed; `command` names it in messages. Raises Refusal `internal`."""
    return _reply(finished, command, None).document()


def _reply(finished: Finished, command: str, kind: str | None) -> Reply:
    failed = finished.code != 0
    return Reply(
        source=command,
        ending=_ending(finished.code),
        went_well=not failed,
        output=finished.stdout,
        circumstances={**({"exit_code": finished.code} if failed else {}), "stderr": finished.stderr},
        kind=kind or "internal",
        kind_is_told=kind is not None,
    )


def _ending(code: int) -> str:
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
