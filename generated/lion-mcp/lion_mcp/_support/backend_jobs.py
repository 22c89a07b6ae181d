"""Runs a command line in the background: starts runs of it, and has them looked after by its operations."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .backend import Plan
from .backend_cli import CliBackend
from .binding import Bindings
from .call import Call
from .fingerprint import digest
from .foreign_text import cut
from .job_hooks import JobHooks
from .job_operations import JobOperations
from .launch import Launch, is_too_long
from .process_identity import own_identity
from .refusal import Refusal
from .registry import Registry, Verb
from .rights import Right
from .run_record import LONGEST_LABEL, RunRecord, new_run_id
from .run_view import started
from .worker_threads import WorkerThreads

if TYPE_CHECKING:
    from .run_keeper import RunKeeper
    from .run_look import Seen
    from .run_store import Key

_SPAWN: Final = "spawn"
_KEY: Final = "idempotency_key"
_KEY_BYTES = 16
_ASK_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a call stands for: its params, and for a start the command line without the program."""

    params: Any
    argv: tuple[str, ...] = ()


class JobsBackend:
    """The background runs of `command_line`, as the entry `name` of the registry says.

    `hooks` gives the handlers that know the command line, `state` is the folder to keep runs in; by default it is one
    of the user's own. Nothing is opened before the first call that needs it.
    """

    def __init__(
        self,
        registry: Registry,
        name: str,
        command_line: CliBackend,
        bindings: Bindings,
        *,
        hooks: Callable[[], object] | None = None,
        state: Path | None = None,
    ) -> None:
        self._registry = registry
        self._name = name
        self._entry = registry.backends[name]
        self._command_line = command_line
        self._bindings = bindings
        self._state = state
        self._hooks = JobHooks(name, hooks)
        self._threads = WorkerThreads(name)
        self._opening = asyncio.Lock()
        self._opened: RunKeeper | None = None
        self._operations = JobOperations(self._keeper, self._hooks)

    async def plan(self, call: Call) -> Plan:
        """The command line of a start, without the program; for an operation only the typed view of its arguments."""
        binding = self._bindings.of(call.verb)
        params = None if binding.params is None else binding.params.model_validate(call.arguments)
        if not _starts(call.verb):
            return Plan(call, _Bound(params), rights=_rights(call))
        argv = tuple(binding.function(*_given(params)))
        return Plan(call, _Bound(params, argv), self._refusal(call, argv))

    async def run(self, plan: Plan) -> Any:
        """Start a run, or do what an operation says. Raises Refusal."""
        call, bound = plan.call, plan.bound
        if _starts(call.verb):
            return await self._spawn(call, bound)
        function = self._bindings.of(call.verb).function
        return await function(self._operations, *_given(bound.params), call)

    def objection(self, verb: Verb, further: Mapping[str, Any]) -> str | None:
        """Why these parameters cannot be flags of the verb's command, beside those that it has; None when they can."""
        return self._command_line.objection(verb, further, args=())

    async def close(self) -> None:
        """Let go of everything but the runs."""
        if self._opened is None:
            await self._threads.close()
        else:
            await self._opened.close()

    async def _spawn(self, call: Call, bound: _Bound) -> dict[str, Any]:
        keeper = await self._keeper()
        minted = call.arguments.get(_KEY) is None
        name = secrets.token_hex(_KEY_BYTES) if minted else call.arguments[_KEY]
        key = _key(call, name)
        found = None if minted else await keeper.standing(key)
        if found is None:
            found = await self._start(call, bound, key, keeper)
        quoted = {_KEY: name} if _KEY in call.verb.params["properties"] else {}
        return {**started(found), **quoted}

    async def _start(self, call: Call, bound: _Bound, key: Key, keeper: RunKeeper) -> Seen:
        from .run_start import Order  # it needs what the keeper has imported by now

        await self._command_line.check_version(call)
        installation = self._command_line.installation()
        now = datetime.now(UTC)
        run_id = new_run_id(now)
        label = call.arguments.get("label")
        launch = Launch(
            run_id, keeper.folder(run_id), list(bound.argv), label=label if isinstance(label, str) else None
        )
        await self._hooks.prepare(launch, bound.params, call)
        command = (self._command_line.written, *launch.argv)
        environment = {**installation.environment, **launch.environment, self._variable: run_id}
        if refusal := self._refusal(call, launch.argv) or _unsayable(launch):
            raise refusal
        if is_too_long([*installation.program, *launch.argv], environment):
            raise Refusal("invalid_input", "The arguments are too long for a command line.")
        record = RunRecord(
            run_id=run_id,
            verb=call.verb.name,
            label=cut(launch.label, LONGEST_LABEL),
            command=command,  # as the spec has it: what the environment fills in may be a secret
            cwd=_folder(launch),
            folder=launch.folder,
            owner=own_identity(),
            submitted_at=now,  # as the id says
            details=launch.details,
        )
        return await keeper.start(Order(record, launch, installation.program, environment, key))

    def _refusal(self, call: Call, argv: Sequence[str]) -> Refusal | None:
        return self._command_line.refusal(call, argv, call.verb.run.target[1:], ())

    @property
    def _variable(self) -> str:
        """The variable that marks what a run has started."""
        return f"{self._registry.server.package.upper()}_RUN_ID"

    async def _keeper(self) -> RunKeeper:
        async with self._opening:
            if self._opened is None:
                self._opened = await self._open()
            return self._opened

    async def _open(self) -> RunKeeper:
        place, keeper, limits = await self._threads.write(self._load)
        return keeper(place, limits, self._variable, self._hooks, self._ask, self._threads)

    def _load(self) -> tuple[Any, Callable[..., RunKeeper], Any]:
        """What is slow to load, and the place where runs are kept. Raises Refusal."""
        from .run_keeper import Limits, RunKeeper
        from .run_place import open_place

        place = open_place(self._registry.server.distribution, self._name, self._state)
        return place, RunKeeper, Limits(**self._entry["limits"])

    async def _ask(self, words: Sequence[str], *, timeout: float = _ASK_SECONDS) -> Any:  # noqa: ASYNC109
        return await self._command_line.ask(words, seconds=timeout, kinds=self._registry.kinds)


def _rights(call: Call) -> tuple[Right, ...]:
    """The right to read each of the runs that are waited for."""
    return tuple(Right.of("read job:<run_id>", {"run_id": run_id}) for run_id in call.arguments.get("run_ids", ()))


def _starts(verb: Verb) -> bool:
    return verb.run.target[0] == _SPAWN


def _given(params: Any) -> tuple[Any, ...]:
    return () if params is None else (params,)


def _key(call: Call, name: str) -> Key:
    from .run_store import Key

    arguments = {param: value for param, value in call.arguments.items() if param != _KEY}
    return Key(call.caller.account or call.caller.subject, call.verb.name, name, digest(arguments))


def _folder(launch: Launch) -> str:
    try:
        return str((launch.cwd or Path()).absolute())
    except OSError:
        raise Refusal("unavailable", "The folder that the server works in is gone.") from None


def _unsayable(launch: Launch) -> Refusal | None:
    """What no environment, no path and no database can hold."""
    texts = [*launch.environment, *launch.environment.values(), str(launch.cwd or ""), launch.label or ""]
    if any("\0" in text for text in texts):
        return Refusal("invalid_input", "A parameter holds a NUL character.")
    return None
