"""Runs verbs as commands of a program: one argv per call, built by the verb's function, and never a shell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import process
from .backend import Plan
from .binding import Bindings
from .call import Call
from .environment import MissingVariableError, child_environment, expand
from .foreign_text import short_text
from .further_flags import declared_flags, flags_among, objection
from .pointer import look_up
from .process import Finished
from .projection import projected
from .quoting import quoted
from .refusal import Refusal
from .registry import Run, Verb
from .reply import parse_output, read_reply

_VERSION_CHARACTERS = 64
# The most that the program may print in answer to a question of the server's own.
_ANSWER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Installation:
    """How the program is started here. What the environment fills in may be a secret: it is for starting only."""

    program: tuple[str, ...]
    args: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What one command may take."""

    deadline: float  # a time of the running loop
    output: int  # bytes
    patience: str  # the time it has, in words


class CliBackend:
    """The verbs of one command line. `backend` is its entry in the registry."""

    def __init__(self, backend: Mapping[str, Any], bindings: Bindings) -> None:
        self._backend = backend
        self._bindings = bindings
        self._args = tuple(backend["args"])
        self._fenced = tuple(tuple(path.split()) for path in backend["fenced"])
        self._found_version: str | None = None
        self._asking = asyncio.Lock()

    async def plan(self, call: Call) -> Plan:
        """The command line of a call, without the program, and what speaks against it."""
        binding = self._bindings.of(call.verb)
        known = () if binding.params is None else (binding.params.model_validate(call.arguments),)
        argv: list[str] = binding.function(*known)
        return Plan(call, argv, self.refusal(call, argv, call.verb.run.target, self._args))

    async def run(self, plan: Plan) -> Any:
        """Run the command and read its reply. Raises Refusal."""
        call, argv = plan.call, plan.bound
        await self.check_version(call)
        rest = argv[len(call.verb.run.target) + len(self._args) :]
        finished = await self._finish(_bounds(call), call.verb.run.target, rest)
        result = read_reply(finished, call.verb.run, call.registry.kinds)
        return result if call.verb.result is None else projected(result, call.verb.result)

    async def ask(self, words: Sequence[str], *, seconds: float, kinds: Collection[str]) -> Any:
        """What the program says to a command that is no verb's.

        The first of `words` that is an option, or `--`, ends the command's own words. Raises Refusal.
        """
        end = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
        command, rest = tuple(words[:end]), words[end:]
        if self._strays((*command, *rest), command, ()) or any("\0" in word for word in words):
            raise Refusal("internal", "The server asked for a command that it may not use.")
        bounds = _Bounds(asyncio.get_running_loop().time() + seconds, _ANSWER_BYTES, f"{seconds:g} seconds")
        await self._check_version(bounds, command)
        finished = await self._finish(bounds, command, rest)
        return read_reply(finished, Run("", command[:1], self._backend["reply"], {}, "", ""), kinds)

    def refusal(self, call: Call, argv: Sequence[str], target: Sequence[str], args: Sequence[str]) -> Refusal | None:
        """What speaks against a command line, without the program, that has to begin with `target` and `args`."""
        if self._strays(argv, target, args):
            return Refusal("internal", "The command line of this verb leads somewhere else.")
        return _unpassable(call, argv)

    def objection(self, verb: Verb, further: Mapping[str, Any], *, args: Sequence[str] | None = None) -> str | None:
        """Why these parameters cannot be flags of the verb's command, beside those that it has; None when they can.

        `args` are what stands in every command line of that kind; by default the arguments of the backend.
        """
        taken = declared_flags(self._bindings.of(verb)).union(flags_among(self._args if args is None else args))
        return objection(further, verb.params.get("$defs", {}), taken)

    def installation(self) -> Installation:
        """How the program is started here. Raises Refusal `internal` when the environment lacks something."""
        try:
            return self._installation
        except MissingVariableError as error:
            raise Refusal("internal", str(error)) from None

    @cached_property
    def _installation(self) -> Installation:
        program = tuple(expand(self._backend["command"], os.environ).split())
        if not program:
            raise Refusal("internal", "No program is configured for this command.")
        return Installation(
            program,
            tuple(expand(word, os.environ) for word in self._args),
            child_environment(self._backend["env"], os.environ),
        )

    @property
    def written(self) -> str:
        """The command as the spec has it, with nothing of the environment in it."""
        command: str = self._backend["command"]
        return command

    @property
    def _program(self) -> str:
        return quoted(self.written)

    def _strays(self, argv: Sequence[str], target: Sequence[str], args: Sequence[str]) -> bool:
        """What is compiled never strays from its command; should it, nothing runs."""
        command = (*target, *args)
        if tuple(argv[: len(command)]) != command:
            return True
        # Whether the words among `args` are commands or values only the program knows: with them, and without.
        reached = _command_words(argv), _command_words([*target, *argv[len(command) :]])
        return any(words[: len(path)] == path for words in reached for path in self._fenced)

    async def _finish(self, bounds: _Bounds, command: Sequence[str], rest: Sequence[str]) -> Finished:
        """Run `command` to its end, with the arguments that every command gets, then the rest."""
        name, installation = quoted(" ".join(command)), self.installation()
        words = (*installation.program, *command, *installation.args, *rest)
        try:
            return await process.run(words, installation.environment, deadline=bounds.deadline, output=bounds.output)
        except process.DeadlineError:
            raise _too_late(command, bounds) from None
        except process.OutputLimitError:
            raise Refusal("internal", f"{name} printed more than {bounds.output} bytes.") from None
        except process.ArgumentsTooLongError:
            raise Refusal("invalid_input", f"The arguments are too long for the command {name}.") from None
        except process.NotLaunchableError as error:
            raise Refusal("internal", f"{self._program} cannot be started: {error}.") from None

    async def check_version(self, call: Call) -> None:
        """Ask the program once which version it is. Raises Refusal `unavailable` when that does not fit."""
        await self._check_version(_bounds(call), call.verb.run.target)

    async def _check_version(self, bounds: _Bounds, command: Sequence[str]) -> None:
        wanted = self._backend["version"]
        if wanted is None:
            return
        if self._found_version is None:
            await self._learn_version(bounds, command, wanted)
        found = self._found_version or ""
        if not any(found == accepted or found.startswith(accepted + ".") for accepted in wanted["accept"]):
            accepted = list(wanted["accept"])
            message = f"{self._program} is version {found}, and this server needs {' or '.join(accepted)}."
            raise Refusal("unavailable", message, {"found": found, "accepted": accepted})

    async def _learn_version(self, bounds: _Bounds, command: Sequence[str], wanted: Mapping[str, Any]) -> None:
        """One call asks while the others wait; when it gets no answer the fault is its own, and the next one asks."""
        try:
            async with asyncio.timeout_at(bounds.deadline):
                await self._asking.acquire()
        except TimeoutError:
            raise _too_late(command, bounds) from None
        try:
            if self._found_version is None:
                self._found_version = await self._ask_version(bounds, wanted)
        finally:
            self._asking.release()

    async def _ask_version(self, bounds: _Bounds, wanted: Mapping[str, Any]) -> str:
        name = quoted(" ".join(wanted["ask"]))
        finished = await self._finish(bounds, wanted["ask"], ())
        version = look_up(parse_output(finished, name), wanted["at"])
        if finished.code != 0 or not isinstance(version, str) or not version:
            raise Refusal("internal", f"{name} does not tell the version.", {"stderr": finished.stderr})
        return short_text(version, _VERSION_CHARACTERS)


def _bounds(call: Call) -> _Bounds:
    return _Bounds(call.last_end, call.verb.limits.output, call.verb.limits.patience)


def _too_late(command: Sequence[str], bounds: _Bounds) -> Refusal:
    return Refusal("unavailable", f"{quoted(' '.join(command))} did not answer within {bounds.patience}.")


def _unpassable(call: Call, argv: Sequence[str]) -> Refusal | None:
    """The one character that no command line can carry."""
    if not any("\0" in token for token in argv):
        return None
    names = [
        name for name, value in call.arguments.items() if name in call.verb.params["properties"] and _has_nul(value)
    ]
    return Refusal("invalid_input", f"{quoted(names[0]) if names else 'A parameter'} holds a NUL character.")


def _has_nul(value: Any) -> bool:
    return "\0" in value if isinstance(value, str) else isinstance(value, list) and any(map(_has_nul, value))


def _command_words(argv: Sequence[str]) -> tuple[str, ...]:
    """The words that a program could take for a command: no options, but what stands behind `--`."""
    end = argv.index("--") if "--" in argv else len(argv)
    return (*(token for token in argv[:end] if not token.startswith("-")), *argv[end + 1 :])
