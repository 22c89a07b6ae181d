"""The generated servers over HTTP, as installed, in front of independent clients and probes; lithi's with a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .answers import ERAS, MODES, answer_of, called, check, refusal_of
from .http_serving import Lithi, running_lithi, serving
from .peers import INSPECTOR, MCPCHECK, PROBE, Endpoint, inspected, inspected_call, peer, ran, through_typescript
from .samples import SAMPLES, Sample

SERVERS = ("hello", "lithi")

# What the Python SDK's client settles on in each of its modes.
REVISIONS = {
    "hello": dict(zip(MODES, ("2025-11-25", "2026-07-28", "2026-07-28"), strict=True)),
    "lithi": dict(zip(MODES, ("2025-06-18", "2026-07-28", "2026-07-28"), strict=True)),
}

REPORT = ("--json", "--timeout", "60")  # of mcpcheck; seconds for each request, which a busy machine may need

# Parameters that travel in headers too; the first as base64, as no header can hold it as it is.
IN_HEADERS = {"region": "Zürich, 日本", "count": -3, "dry": False, "plain": "ü"}


@pytest.fixture(scope="module")
def lithi(servers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lithi]:
    with running_lithi(servers / "lithi", tmp_path_factory.mktemp("lithi")) as running:
        yield running


@pytest.fixture(scope="module")
def endpoints(servers: Path, lithi: Lithi) -> Iterator[dict[str, Endpoint]]:
    """Where the servers are."""
    with serving(servers / "hello") as hello, serving(servers / "suite") as suite:
        yield {"hello": hello, "suite": suite, "lithi": lithi.endpoint}


@pytest.fixture(scope="module")
def samples(lithi: Lithi) -> dict[str, Sample]:
    return {"hello": SAMPLES["hello"], "lithi": lithi.sample}


# --- the Inspector


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("era", ERAS)
def test_inspector(endpoints: dict[str, Endpoint], samples: dict[str, Sample], name: str, era: str) -> None:
    endpoint, sample = endpoints[name], samples[name]
    code, result = inspected(endpoint, era, "--method", "tools/list", "--strict")
    assert code == 0
    assert tuple(tool["name"] for tool in result["tools"]) == sample.tools
    code, result = inspected_call(endpoint, era, *sample.success)
    assert (code, result.get("isError", False)) == (0, False)
    assert answer_of(result) == sample.result
    code, result = inspected_call(endpoint, era, *sample.refusal)
    assert code == 5
    assert refusal_of(result)["kind"] == sample.kind


@pytest.mark.parametrize("era", ERAS)
def test_inspector_without_a_key_is_sent_away(lithi: Lithi, era: str) -> None:
    options = ["--cli", lithi.endpoint.url, "--transport", "http", "--stored-auth-only", "--protocol-era", era]
    done = ran([peer(INSPECTOR), *options, "--method", "tools/list", "--format", "json", "-q"])
    assert done.returncode != 0
    assert done.stdout == ""
    assert "auth_required" in done.stderr


def test_inspector_repeats_parameters_in_headers(endpoints: dict[str, Endpoint]) -> None:
    code, result = inspected_call(endpoints["suite"], "modern", "test_custom_headers", IN_HEADERS)
    assert (code, answer_of(result)) == (0, IN_HEADERS)


# --- the client of the TypeScript SDK


@pytest.mark.parametrize("name", SERVERS)
def test_typescript_client(endpoints: dict[str, Endpoint], samples: dict[str, Sample], name: str) -> None:
    sample = samples[name]
    seen = through_typescript(endpoints[name], [sample.success, sample.refusal])
    assert seen["server"]["name"] == name
    assert tuple(tool["name"] for tool in seen["tools"]) == sample.tools
    success, refusal = seen["answers"]
    assert answer_of(success) == sample.result
    assert refusal_of(refusal)["kind"] == sample.kind


def test_typescript_client_gets_what_each_tool_gives(lithi: Lithi) -> None:
    answers = through_typescript(lithi.endpoint, list(lithi.calls.items()))["answers"]
    states = ["quoted", "succeeded", "accepted", "succeeded", "succeeded"]
    assert [answer_of(answer)["state"] for answer in answers] == states


# --- the Python SDK's client


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("mode", MODES)
def test_python_client(endpoints: dict[str, Endpoint], samples: dict[str, Sample], name: str, mode: str) -> None:
    sample = samples[name]
    seen = called(endpoints[name], mode, [sample.success, sample.refusal])
    assert seen.revision == REVISIONS[name][mode]
    check(sample, seen)


@pytest.mark.parametrize("mode", MODES)
def test_python_client_gets_blocks_and_repeats_parameters(endpoints: dict[str, Endpoint], mode: str) -> None:
    calls = [("test_multiple_content_types", dict[str, Any]()), ("test_custom_headers", IN_HEADERS)]
    blocks, repeated = called(endpoints["suite"], mode, calls).answers
    assert [block["type"] for block in blocks["content"]] == ["text", "image", "resource"]
    assert answer_of(repeated) == IN_HEADERS


# --- the probes


@pytest.mark.parametrize("name", SERVERS)
def test_mcpcheck_has_nothing_to_say(endpoints: dict[str, Endpoint], name: str) -> None:
    endpoint = endpoints[name]
    options = ["--probe", "all", "--strict", "--legacy-probes", *endpoint.header_options()]
    done = ran([peer(MCPCHECK), *options, *REPORT, endpoint.url])
    report = json.loads(done.stdout)
    assert [remark for found in report["checks"] for remark in (*found["failures"], *found["warnings"])] == []
    assert [found["name"] for found in report["checks"] if not found["passed"]] == []
    assert (report["era"], report["summary"]["skipped"]) == ("dual-era", [])
    assert done.returncode == 0, done.stderr


def test_mcpcheck_sees_that_headers_repeat_parameters(endpoints: dict[str, Endpoint]) -> None:
    done = ran([peer(MCPCHECK), "--strict", "--check", "protocol", *REPORT, endpoints["suite"].url])
    (found,) = json.loads(done.stdout)["checks"]
    assert (done.returncode, found["status"]) == (0, "pass"), found
    assert "test_custom_headers without Mcp-Param-Region → HTTP 400 with JSON-RPC -32020" in found["details"]


@pytest.mark.parametrize("name", SERVERS)
def test_probe_has_nothing_to_say(
    endpoints: dict[str, Endpoint], lithi: Lithi, samples: dict[str, Sample], tmp_path: Path, name: str
) -> None:
    endpoint = endpoints[name]
    (tmp_path / "calls.json").write_text(json.dumps(lithi.calls if name == "lithi" else {}), encoding="utf-8")
    options = ["--strict", "--allow-destructive", "--include-optional", "--format", "json"]
    given: list[str | Path] = ["--args", tmp_path / "calls.json", *endpoint.header_options()]
    done = ran([peer(PROBE), *options, *given, "--url", endpoint.url])
    (report,) = json.loads(done.stdout)["servers"]
    assert [*report["findings"], *(finding for tool in report["tools"] for finding in tool["findings"])] == []
    assert [(tool["name"], tool["status"]) for tool in report["tools"]] == [
        (tool, "pass") for tool in samples[name].tools
    ]
    assert done.returncode == 0
