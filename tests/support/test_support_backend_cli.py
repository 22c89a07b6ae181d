"""Verbs as commands: from a call to the program and back, with every fault on the way told plainly."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from verbc.support.argv import extras, flag, json_flag, positionals, switch
from verbc.support.backend import Plan
from verbc.support.backend_cli import CliBackend
from verbc.support.binding import Binding, Bindings
from verbc.support.call import Call, Caller
from verbc.support.further_flags import declared_flags
from verbc.support.refusal import Refusal
from verbc.support.registry import Limits, Registry, Run, Serve, ServerIdentity, Verb, VerbLimits

from .programs import FOR_EVER, STUB, Watch, assert_reaped, finish, move_clock

PROGRAM = " ".join(STUB)
STUB_LI = Path(__file__).parent.parent / "data" / "stub_li.py"
KINDS = dict.fromkeys(["internal", "unavailable", "invalid_input", "not_found", "conflict"], "")


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    text: str | None = None
    tags: list[str] | None = None
    exit: int | None = None
    port: int | None = None
    signal: int | None = None
    rest: list[str] | None = None


class Made(Bindings):
    """Functions as the compiler writes them, without a package around them."""

    def __init__(self, args: Sequence[str]) -> None:
        super().__init__("none")
        self.args = args
        self.build: Callable[[Verb, Params], list[str]] | None = None

    def of(self, verb: Verb) -> Binding:
        def function(params: Params) -> list[str]:
            return [
                *verb.run.target,
                *self.args,
                *flag("--text", params.text),
                *flag("--tag", params.tags),
                *flag("--exit", params.exit),
                *flag("--port", params.port),
                *flag("--signal", params.signal),
                *positionals(params.rest),
            ]

        build = self.build
        return Binding(function if build is None else lambda params: build(verb, params), Params)


def verb(
    *target: str,
    form: str = "json",
    reply: dict[str, Any] | None = None,
    timeout: float = FOR_EVER,
    output: int = 1_000_000,
) -> Verb:
    return Verb(
        name=".".join(target),
        summary="",
        description=None,
        effect="read",
        hints={},
        params={"type": "object", "properties": {name: {} for name in Params.model_fields}},
        result=None,
        fingerprint="",
        fingerprint_required=False,
        required_unenforced=(),
        varies_with={},
        refused={},
        unavailable=None,
        requires=(),
        plan=None,
        limits=VerbLimits(timeout=timeout, output=output, concurrency=8, pool="li"),
        examples=(),
        run=Run("li", target, reply or {"form": form}, {"3": "not_found"}, "", ""),
        digest="",
        idempotent=None,
    )


def call(verb: Verb, **arguments: Any) -> Call:
    registry = Registry(
        server=ServerIdentity("s", "1", None, "", None, "s_mcp", "s-mcp"),
        surface="tools",
        feedback="names",
        limits=Limits(body=1, ops=1, timeout=1, output=1, concurrency=1),
        kinds=KINDS,
        synonyms={},
        synonyms_removed_after=None,
        backends={},
        verbs=(verb,),
        digest="",
        serve=Serve(("2026-07-28",), stdio=True, http=None),
        access=None,
    )
    deadline = asyncio.get_running_loop().time() + verb.limits.timeout
    return Call(verb, arguments, Caller(), "c", registry, datetime.now(UTC), deadline)


def backend(**options: Any) -> CliBackend:
    entry = {"kind": "cli", "command": PROGRAM, "args": [], "env": ["PATH"], "fenced": [], "version": None, **options}
    return CliBackend(entry, Made(entry["args"]))


async def answer(backend: CliBackend, verb: Verb, **arguments: Any) -> Any:
    """What the caller gets: the result, or the refusal as data."""
    plan = await backend.plan(call(verb, **arguments))
    try:
        if plan.refusal is not None:
            raise plan.refusal
        return await backend.run(plan)
    except Refusal as refusal:
        return refusal.as_error()


def ask(backend: CliBackend, verb: Verb, **arguments: Any) -> Any:
    return finish(answer(backend, verb, **arguments))


def plan(backend: CliBackend, verb: Verb, **arguments: Any) -> Plan:
    async def work() -> Plan:
        return await backend.plan(call(verb, **arguments))

    return finish(work())


def test_a_call_becomes_one_command_line() -> None:
    li = backend(args=["--machine"])
    arguments: dict[str, Any] = {"text": "-x --machine", "tags": ["--from", "*"], "rest": ["$(id)", "--", "\n"]}
    expected = ["echo", "--machine", "--text=-x --machine", "--tag=--from", "--tag=*", "--", "$(id)", "--", "\n"]
    assert plan(li, verb("echo"), **arguments).bound == expected
    assert ask(li, verb("echo"), **arguments) == expected


def test_planning_starts_nothing() -> None:
    assert plan(backend(command="/no/such/program ${NONE}"), verb("echo")).refusal is None


@pytest.mark.parametrize("arguments", [{"text": "a\0"}, {"tags": ["a", "\0"]}, {"rest": ["\0"]}])
def test_a_nul_is_refused_before_anything_starts(arguments: dict[str, Any]) -> None:
    refusal = plan(backend(), verb("echo"), **arguments).refusal
    assert refusal is not None
    assert refusal.as_error() == {
        "kind": "invalid_input",
        "message": f"`{next(iter(arguments))}` holds a NUL character.",
    }


def trespass(built: list[str], target: list[str], fenced: list[str], args: list[str] | None = None) -> Refusal | None:
    made = Made(args or [])
    made.build = lambda _verb, _params: built
    entry = {"kind": "cli", "command": "li", "args": args or [], "env": [], "fenced": fenced, "version": None}
    return plan(CliBackend(entry, made), verb(*target)).refusal


@pytest.mark.parametrize(
    ("built", "target", "args"),
    [
        (["runs"], ["schedule", "list"], []),
        (["--x", "schedule", "list"], ["schedule", "list"], []),
        ([], ["schedule"], []),
        (["schedule", "list"], ["schedule", "list"], ["--machine"]),
        (["plugin", "trust"], ["plugin", "trust"], []),
        (["plugin", "trust", "add"], ["plugin", "trust", "add"], []),
        (["plugin", "--machine", "--", "trust"], ["plugin"], ["--machine"]),
        (["plugin", "-c", "x", "--", "trust", "y"], ["plugin"], ["-c", "x"]),
        (["plugin", "trust", "--machine"], ["plugin"], ["trust", "--machine"]),
    ],
)
def test_a_command_line_that_strays_is_refused(built: list[str], target: list[str], args: list[str]) -> None:
    refusal = trespass(built, target, ["plugin trust", "state migrate"], args)
    assert refusal is not None
    assert refusal.kind == "internal"


@pytest.mark.parametrize(
    ("built", "target"),
    [
        (["plugin", "info", "--", "trust"], ["plugin", "info"]),
        (["plugin", "--name=trust"], ["plugin"]),
        (["log", "--oneline"], ["log", "--oneline"]),
    ],
)
def test_a_command_line_that_stays_where_it_belongs_is_not(built: list[str], target: list[str]) -> None:
    assert trespass(built, target, ["plugin trust", "state migrate"]) is None


def test_the_program_and_its_environment_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_PROGRAM", PROGRAM)
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("SECRET", "s")
    li = backend(command="${STUB_PROGRAM:-none}", env=["PATH", "LC_*", "NO_COLOR=1"])
    seen = ask(li, verb("environment"))
    assert seen["NO_COLOR"] == "1"
    assert seen["LC_TIME"] == "C"
    assert seen.keys() <= {"PATH", "NO_COLOR"} | {name for name in seen if name.startswith("LC_")}


def test_arguments_of_the_installation_are_filled_in_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILE", "p q")
    li = backend(args=["--profile=${PROFILE}"])
    assert plan(li, verb("echo"), text="${PROFILE}").bound == ["echo", "--profile=${PROFILE}", "--text=${PROFILE}"]
    assert ask(li, verb("echo"), text="${PROFILE}") == ["echo", "--profile=p q", "--text=${PROFILE}"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("${NO_SUCH_VARIABLE}", "The environment variable `NO_SUCH_VARIABLE` is not set."),
        ("${NO_SUCH_VARIABLE:- }", "No program is configured for this command."),
        ("no-such-program -v", "`no-such-program -v` cannot be started: No such file or directory."),
        ("/etc/passwd", "`/etc/passwd` cannot be started: Permission denied."),
    ],
)
def test_a_program_that_is_not_there_is_told(command: str, message: str) -> None:
    assert ask(backend(command=command), verb("echo")) == {"kind": "internal", "message": message}


def test_what_the_environment_fills_in_is_never_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hush-secret")
    command = "/nonexistent/tool --token=${TOKEN}"
    error = ask(backend(command=command), verb("echo"))
    assert error["message"] == f"`{command}` cannot be started: No such file or directory."
    monkeypatch.setenv("STUB_PROGRAM", PROGRAM)
    Versioned(tmp_path, monkeypatch, "9")
    version = {"ask": ["version"], "at": "/data/version", "accept": ["0.36"]}
    ask_first = backend(command="${STUB_PROGRAM}", args=["--text=${TOKEN}"], env=["STUB_*"], version=version)
    message = "`${STUB_PROGRAM}` is version 9, and this server needs 0.36."
    assert ask(ask_first, verb("echo"))["message"] == message


def test_arguments_that_are_too_long_are_the_callers() -> None:
    error = ask(backend(), verb("echo"), text="x" * 10_000_000)
    assert error == {"kind": "invalid_input", "message": "The arguments are too long for the command `echo`."}


@pytest.mark.parametrize(("seconds", "words"), [(60.0, "60 seconds"), (1.0, "1 second"), (0.5, "0.5 seconds")])
def test_silence_is_told_with_its_limit_and_its_group_is_killed(seconds: float, words: str) -> None:
    async def work() -> None:
        async with Watch() as watch:
            slow = verb("stubborn", timeout=FOR_EVER + seconds)
            running = asyncio.create_task(answer(backend(), slow, port=watch.port))
            life = await watch.life()
            move_clock(2 * FOR_EVER)
            error = await running
            assert error["kind"] == "unavailable"
            assert error["message"].startswith("`stubborn` did not answer within 1")
            assert_reaped(life.pid)
            await life.end()

        expired = call(verb("echo", timeout=seconds))
        expired.deadline = 0.0
        with pytest.raises(Refusal, match=f"`echo` did not answer within {words}."):
            await backend().run(await backend().plan(expired))

    finish(work())


def test_a_flood_is_told_with_its_limit() -> None:
    async def work() -> None:
        async with Watch() as watch:
            error = await answer(backend(), verb("flood", output=70_000), port=watch.port)
            assert error == {"kind": "internal", "message": "`flood` printed more than 70000 bytes."}
            await (await watch.life()).end()

    finish(work())


def test_a_cancelled_call_ends_its_program() -> None:
    async def work() -> None:
        async with Watch() as watch:
            running = asyncio.create_task(answer(backend(), verb("hang"), port=watch.port))
            life = await watch.life()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert_reaped(life.pid)
            await life.end()

    finish(work())


def test_a_call_is_answered_while_others_hang() -> None:
    async def work() -> None:
        li = backend()
        async with Watch() as watch:
            hanging = [asyncio.create_task(answer(li, verb("hang"), port=watch.port)) for _ in range(2)]
            lives = [await watch.life() for _ in hanging]
            assert await answer(li, verb("echo")) == ["echo"]
            assert not any(task.done() for task in hanging)
            for task in hanging:
                task.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)
            for life in lives:
                await life.end()

    finish(work())


def test_the_reply_is_read_as_the_verb_says() -> None:
    assert ask(backend(), verb("say", form="text"), text="a b") == "a b"
    assert ask(backend(), verb("say"), text="[1]") == [1]
    error = ask(backend(), verb("say"), exit=3)
    assert (error["kind"], error["message"]) == ("not_found", "`say` ended with exit code 3.")


class Versioned:
    """A program that counts how often it is asked for its version."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
        self._asked = folder / "asked"
        monkeypatch.setenv("STUB_ASKED", str(self._asked))
        monkeypatch.setenv("STUB_VERSION", version)
        self.broken = folder / "asked.broken"
        self.backend = backend(
            args=["--machine"],
            env=["STUB_*"],
            version={"ask": ["version"], "at": "/data/version", "accept": ["0.36", "1"]},
        )

    @property
    def asked(self) -> int:
        return self._asked.stat().st_size


@pytest.mark.parametrize("version", ["0.36", "0.36.0", "0.36.1.dev2", "1", "1.9"])
def test_a_version_that_fits_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    program = Versioned(tmp_path, monkeypatch, version)

    async def work() -> None:
        calls = [answer(program.backend, verb("echo"), text=str(number)) for number in range(3)]
        assert await asyncio.gather(*calls) == [["echo", "--machine", f"--text={number}"] for number in range(3)]
        assert await answer(program.backend, verb("echo")) == ["echo", "--machine"]

    finish(work())
    assert program.asked == 1


@pytest.mark.parametrize("version", ["0.35.9", "0.361", "0.3", "10", "2.0", "0.36\u202e"])
def test_a_version_that_does_not_fit_stops_every_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    program = Versioned(tmp_path, monkeypatch, version)
    for of in (verb("echo"), verb("version")):
        error = ask(program.backend, of)
        shown = version.replace("\u202e", "\\u202e")
        assert error["kind"] == "unavailable"
        assert error["message"].endswith(f"is version {shown}, and this server needs 0.36 or 1.")
        assert error["detail"] == {"found": shown, "accepted": ["0.36", "1"]}
    assert program.asked == 1


def test_a_question_without_an_answer_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Versioned(tmp_path, monkeypatch, "0.36")
    program.broken.touch()
    error = ask(program.backend, verb("echo"))
    assert (error["kind"], error["message"]) == ("internal", "`version` ended with exit code 1 without a reply.")
    assert "no answer today" in error["detail"]["stderr"]
    program.broken.unlink()
    assert ask(program.backend, verb("echo")) == ["echo", "--machine"]
    assert ask(program.backend, verb("echo")) == ["echo", "--machine"]
    assert program.asked == 2


@pytest.mark.parametrize("version", [{"ask": ["echo"], "at": "/data"}, {"ask": ["echo"], "at": "/0/x"}])
def test_an_answer_without_a_version_is_told(version: dict[str, Any]) -> None:
    error = ask(backend(version={**version, "accept": ["1"]}), verb("echo"))
    assert (error["kind"], error["message"]) == ("internal", "`echo` does not tell the version.")


def test_whoever_waits_for_the_version_has_its_own_deadline() -> None:
    async def work() -> None:
        async with Watch() as watch:
            asking = ["hang", f"--port={watch.port}"]
            li = backend(version={"ask": asking, "at": "", "accept": ["1"]})
            first = asyncio.create_task(answer(li, verb("echo", timeout=10 * FOR_EVER)))
            life = await watch.life()
            second = asyncio.create_task(answer(li, verb("echo", timeout=FOR_EVER)))
            await asyncio.sleep(0)
            move_clock(2 * FOR_EVER)
            assert "did not answer" in (await second)["message"]
            assert not first.done()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            await life.end()

    finish(work())


def test_when_the_one_that_asks_is_cancelled_the_next_one_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with Watch() as watch:
            li = backend(version={"ask": ["hang", f"--port={watch.port}"], "at": "", "accept": ["1"]})
            first = asyncio.create_task(answer(li, verb("echo")))
            second = asyncio.create_task(answer(li, verb("echo")))
            life = await watch.life()
            first.cancel()
            await life.end()
            successor = await watch.life()
            assert not second.done()
            second.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
            await successor.end()

    finish(work())


ENVELOPE = {
    "form": "pointers",
    "expect": {"/contract_version": [1]},
    "ok": "/ok",
    "result": {"data": "/data"},
    "error": "/error",
}


def ask_li(monkeypatch: pytest.MonkeyPatch, **settings: str) -> Any:
    for name, value in settings.items():
        monkeypatch.setenv("LIONAGI_STUB_" + name, value)
    li = backend(
        command=f"{sys.executable} -I {STUB_LI}",
        args=["--machine"],
        env=["LIONAGI_*"],
        version={"ask": ["handshake"], "at": "/data/implementation_version", "accept": ["0.36"]},
    )
    return ask(li, verb("state", "ls", reply=ENVELOPE, output=100_000), rest=["-x"])


def test_a_machine_contract_is_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = ask_li(monkeypatch, ARGV=str(tmp_path / "argv"), STDERR="noise")
    assert result == {"data": {"argv": ["state", "ls", "--machine", "--", "-x"]}}
    asked = [json.loads(line) for line in (tmp_path / "argv").read_text().splitlines()]
    assert asked == [["handshake", "--machine"], ["state", "ls", "--machine", "--", "-x"]]


@pytest.mark.parametrize(
    ("settings", "kind", "told"),
    [
        ({"MODE": "refuse"}, "conflict", "told to refuse"),
        ({"MODE": "refuse", "KIND": "not_found", "EXIT": "4"}, "not_found", "told to refuse"),
        ({"MODE": "bogus-kind"}, "internal", "kind that is not declared"),
        ({"MODE": "no-error"}, "internal", "without saying why"),
        ({"MODE": "no-data"}, "internal", "lacks its result"),
        ({"MODE": "no-ok"}, "internal", "whether it went well"),
        ({"MODE": "no-contract"}, "internal", "form that this server does not know"),
        ({"CONTRACT": "2"}, "internal", "form that this server does not know"),
        ({"MODE": "no-object"}, "internal", "form that this server does not know"),
        ({"MODE": "not-json"}, "internal", "is not JSON"),
        ({"MODE": "two-lines"}, "internal", "more than one JSON document"),
        ({"MODE": "nan"}, "internal", "not finite"),
        ({"MODE": "infinity"}, "internal", "not finite"),
        ({"MODE": "twice"}, "internal", "same key twice"),
        ({"MODE": "surrogate"}, "internal", "not valid Unicode"),
        ({"MODE": "deep"}, "internal", "printed more than 100000 bytes"),
        ({"MODE": "empty"}, "internal", "without a reply"),
        ({"EXIT": "3"}, "internal", "exit code 3"),
        ({"MODE": "flood"}, "internal", "printed more than"),
        ({"MODE": "die"}, "internal", "signal 9"),
        ({"VERSION": "0.37.0"}, "unavailable", "0.37.0"),
        ({"HANDSHAKE": "not-json"}, "internal", "`handshake` is not JSON"),
        ({"HANDSHAKE": "refuse"}, "internal", "`handshake` does not tell the version"),
    ],
)
def test_a_machine_that_breaks_its_contract_is_told(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], kind: str, told: str
) -> None:
    error = ask_li(monkeypatch, **settings)
    assert error["kind"] == kind
    assert told in error["message"]


def test_messages_hold_no_argument_values() -> None:
    for arguments in ({"exit": 9}, {"text": "s3cret"}, {"rest": ["s3cret"], "exit": 4}):
        error = ask(backend(), verb("say"), **arguments)
        assert "s3cret" not in error["message"]


STRING = {"type": "string"}


def refused_further(
    further: dict[str, Any], args: Sequence[str] = (), definitions: dict[str, Any] | None = None
) -> str | None:
    of = verb("echo")
    of.params["$defs"] = definitions or {}
    return backend(args=list(args)).objection(of, further)


@pytest.mark.parametrize(
    "schema",
    [
        STRING,
        {"type": "integer", "minimum": 1},
        {"type": ["number", "null"]},
        {"type": "boolean", "default": False},
        {"enum": ["a", 1, True, None]},
        {"const": "a"},
        {"type": "array", "items": STRING},
        {"type": "array", "items": {"enum": ["a", 1]}},
        {"anyOf": [STRING, {"type": "array", "items": {"type": "integer"}}]},
        {"$ref": "#/$defs/Text"},
    ],
)
def test_what_a_flag_can_say_can_be_added(schema: Any) -> None:
    assert refused_further({"max_ops": schema}, definitions={"Text": STRING}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "object"},
        {"type": "array"},
        {"type": "array", "items": {"type": "array", "items": STRING}},
        {"type": "array", "items": {"type": "boolean"}},
        {"type": "array", "items": {"type": ["string", "null"]}},
        {"type": ["string", "object"]},
        {"enum": [{}]},
        {"enum": [[True]]},
        {"anyOf": [STRING, {"type": "object"}]},
        {"$ref": "#/$defs/None"},
        {"$ref": "#/$defs/Round"},
    ],
)
def test_what_no_flag_can_say_cannot_be_added(schema: Any) -> None:
    reason = refused_further({"a": schema}, definitions={"Round": {"$ref": "#/$defs/Round"}})
    assert reason == "A parameter of this variant has values that no flag can say."


@pytest.mark.parametrize("name", ["", "-x", "a=b", "a b", "_a", "--"])
def test_a_name_that_cannot_be_a_flag_cannot_be_added(name: str) -> None:
    assert refused_further({name: STRING}) == "A parameter of this variant has a name that cannot be a flag."


@pytest.mark.parametrize("names", [["machine"], ["profile"], ["text"], ["tag"], ["max_ops", "max-ops"]])
def test_a_flag_that_is_taken_cannot_be_added(names: list[str]) -> None:
    reason = refused_further(dict.fromkeys(names, STRING), ["--machine", "--profile=${PROFILE}"])
    assert reason == "A parameter of this variant has a flag that is taken."


def test_a_flag_that_no_parameter_has_can_be_added() -> None:
    assert refused_further({"tags": STRING, "rest": STRING, "echo": STRING}) is None


def test_every_flag_of_a_verb_is_known_whatever_its_type() -> None:
    class Typed(BaseModel):
        model_config = ConfigDict(extra="allow", strict=True, frozen=True)

        due_on: str | None = None
        wet: bool | None = None
        dry: bool | None = None
        rows: list[dict[str, int]] | None = None
        class_: int = Field(alias="class")
        path: str

    def function(params: Typed) -> list[str]:
        return [
            "go",
            "--machine",
            *flag("--due", params.due_on),
            *switch("--wet", params.wet),
            *switch("--no-dry", params.dry, default=True),
            *json_flag("--rows", params.rows),
            *flag("--class", params.class_),
            *extras(params),
            *positionals(params.path),
        ]

    flags = {"--machine", "--due", "--wet", "--no-dry", "--rows", "--class"}
    assert declared_flags(Binding(function, Typed)) == flags
    assert declared_flags(Binding(lambda: ["go", "--machine"])) == {"--machine"}
