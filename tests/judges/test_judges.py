"""The generated servers, as installed, in front of independent clients: every answer has the form that these expect."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

from .answers import ERAS, MODES, answer_of, called, check, refusal_of
from .peers import PROBE, inspected, inspected_call, peer, ran, through_typescript
from .samples import REFUSALS, RESULTS, SAMPLES, Call
from .workshop import distribution, module

SERVERS = tuple(SAMPLES)  # that speak over stdio


def expected(call: Call, answer: Any) -> Any:
    """What a call of the fixture has to bring; an ellipsis stands for its own arguments."""
    return call[1] if answer is ... else answer


# --- the Inspector


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("era", ERAS)
def test_inspector_lists_the_tools(servers: Path, name: str, era: str) -> None:
    code, result = inspected(servers / name, era, "--method", "tools/list", "--strict")
    assert code == 0
    assert tuple(tool["name"] for tool in result["tools"]) == SAMPLES[name].tools


@pytest.mark.parametrize(
    ("name", "era"), [("hello", "modern"), ("lion", "legacy"), ("everything", "legacy"), ("everything", "modern")]
)
def test_inspector_calls_with_success(servers: Path, name: str, era: str) -> None:
    sample = SAMPLES[name]
    code, result = inspected_call(servers / name, era, *sample.success)
    assert (code, result.get("isError", False)) == (0, False)
    assert answer_of(result) == sample.result


@pytest.mark.parametrize(
    ("name", "era"), [("hello", "legacy"), ("lion", "modern"), ("everything", "legacy"), ("everything", "modern")]
)
def test_inspector_sees_the_refusal(servers: Path, name: str, era: str) -> None:
    sample = SAMPLES[name]
    code, result = inspected_call(servers / name, era, *sample.refusal)
    assert code == 5
    error = refusal_of(result)
    assert error["kind"] == sample.kind
    assert sample.message in error["message"]


# --- the client of the TypeScript SDK, which checks results with the output schemas, refusals included


@pytest.mark.parametrize("name", SERVERS)
def test_typescript_client_calls(servers: Path, name: str) -> None:
    sample = SAMPLES[name]
    seen = through_typescript(servers / name, [sample.success, sample.refusal])
    assert seen["server"]["name"] == {"everything": "every-thing"}.get(name, name)
    assert tuple(tool["name"] for tool in seen["tools"]) == sample.tools
    success, refusal = seen["answers"]
    assert answer_of(success) == sample.result
    assert refusal_of(refusal)["kind"] == sample.kind


def test_typescript_client_accepts_every_form_of_answer(servers: Path) -> None:
    calls = [call for call, _ in RESULTS] + [call for call, _ in REFUSALS]
    answers = through_typescript(servers / "everything", calls)["answers"]
    for (call, answer), seen in zip(RESULTS, answers[: len(RESULTS)], strict=True):
        assert answer_of(seen) == expected(call, answer), call
    for (call, kind), seen in zip(REFUSALS, answers[len(RESULTS) :], strict=True):
        assert refusal_of(seen)["kind"] == kind, call


def test_typescript_client_without_li(servers: Path) -> None:
    call = ("request", {"ops": [{"op": "runs"}, {"op": "profile.list"}]})
    (answer,) = through_typescript(servers / "lion-without-li", [call])["answers"]
    first, second = answer_of(answer)["ops"]
    assert (first["ok"], first["error"]["kind"]) == (False, "internal")
    assert second["ok"] is True


# --- the probe


# Tools that refuse what the probe makes up for them; it calls every refusal a warning.
REFUSING = {
    "everything": {"deny", "say.refused", "say.wrong", "no.luck", "flow"},
    # It makes up fields and folders that do not exist, and a place to work in that is no absolute path.
    "lion-tools": {"profile.list", "profile.show", "agent.submit", "flow.submit", "play.submit", "fanout.submit"},
}


@pytest.mark.parametrize("server", [*SERVERS, "lion-without-li", "lion-tools"])
def test_probe_has_nothing_to_say(servers: Path, server: str) -> None:
    refusing = REFUSING.get(server, set())
    options = ["--strict", "--allow-destructive", "--include-optional", "--format", "json"]
    done = ran([peer(PROBE), *options, "--", servers / server])
    (report,) = json.loads(done.stdout)["servers"]
    findings = [*report["findings"], *(finding for tool in report["tools"] for finding in tool["findings"])]
    assert {(finding["tool"], finding["check"]) for finding in findings} == {(tool, "tool-error") for tool in refusing}
    assert done.returncode == (1 if refusing else 0)
    assert {tool["name"] for tool in report["tools"] if tool["status"] != "pass"} == refusing


# --- the Python SDK's client


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("mode", MODES)
def test_python_client_over_stdio(servers: Path, name: str, mode: str) -> None:
    sample = SAMPLES[name]
    server = StdioServerParameters(command=str(servers / name))
    check(sample, called(server, mode, [sample.success, sample.refusal]))


@pytest.fixture
def imported(
    packages: Path, servers: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """The module `server` of a package, imported from where it was generated, and forgotten afterwards."""
    name = module(request.param)
    _forget(name)
    monkeypatch.syspath_prepend(packages / distribution(request.param))
    monkeypatch.setenv("LIONAGI_MCP_LI_BIN", str(servers / "li"))
    monkeypatch.chdir(servers / "repository")
    yield import_module(f"{name}.server")
    _forget(name)


def _forget(package: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


@pytest.mark.parametrize(("name", "imported"), [(name, name) for name in SERVERS], indirect=["imported"])
@pytest.mark.parametrize("mode", MODES)
def test_python_client_in_memory(imported: Any, name: str, mode: str) -> None:
    sample = SAMPLES[name]
    check(sample, called(imported.create_server(), mode, [sample.success, sample.refusal]))


@pytest.mark.parametrize("imported", ["everything"], indirect=True)
def test_python_client_accepts_every_form_of_answer(imported: Any) -> None:
    calls = [call for call, _ in RESULTS] + [call for call, _ in REFUSALS]
    answers = called(imported.create_server(), "legacy", calls).answers
    for (call, answer), seen in zip(RESULTS, answers[: len(RESULTS)], strict=True):
        assert answer_of(seen) == expected(call, answer), call
    for (call, kind), seen in zip(REFUSALS, answers[len(RESULTS) :], strict=True):
        assert refusal_of(seen)["kind"] == kind, call
