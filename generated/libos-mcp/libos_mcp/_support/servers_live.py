"""What a registered server offers now, asked for once on behalf of an operator."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .live_tools import LiveToolsError, by_name
from .manifest import Manifest
from .operator_access import CommandError
from .quoting import quoted
from .refusal import Refusal
from .upstream_errors import UpstreamError
from .upstream_problems import told
from .upstream_secrets import secrets_of
from .upstreams import Upstreams

# No caller has this name, so no session of one is taken.
_SUBJECT = ""


async def live_tools(
    manifest: Manifest, generation: int, environ: Mapping[str, str]
) -> Mapping[str, Mapping[str, Any]]:
    """The tools by the names that the server has for them. Raises CommandError, also when it is told to end."""
    try:
        with _ended_by_signals():
            return await _live_tools(manifest, generation, environ)
    except asyncio.CancelledError:
        raise CommandError(f"The look at {quoted(manifest.server_id)} was broken off.") from None


async def _live_tools(
    manifest: Manifest, generation: int, environ: Mapping[str, str]
) -> Mapping[str, Mapping[str, Any]]:
    name = quoted(manifest.server_id)
    upstreams = Upstreams()
    try:
        deadline = asyncio.get_running_loop().time() + manifest.timeout_s
        async with upstreams.session(
            manifest,
            generation=generation,
            secrets=secrets_of(manifest, environ),
            subject=_SUBJECT,
            deadline=deadline,
            warm=False,
            contacted=lambda: None,
        ) as session:
            listed = await session.list_tools(deadline=deadline, page_limit=manifest.page_limit)
            return by_name(listed.tools)
    except Refusal as refusal:
        raise CommandError(refusal.message) from None
    except LiveToolsError:
        raise CommandError(f"The list of tools that {name} gives is malformed.") from None
    except UpstreamError as error:
        raise CommandError(f"The tools of {name} could not be listed: {told(manifest, error)}.") from None
    finally:
        await upstreams.close()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let the first signal that ends programs cancel this task, which then ends what it has started; others wait."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    told: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if not told and task is not None:
            task.cancel()
        told.append(number)

    heard = [
        number
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN  # which is what `nohup` is for
    ]
    for number in heard:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
