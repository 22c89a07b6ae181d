"""Fingerprints on a compiled server: who must send one, what is refused, and what varies with a parameter."""

import asyncio
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from verbc.pipeline import compile_spec
from verbc.tree import write

SPEC = Path(__file__).parent / "data" / "fingerprints"
WRONG: Any = {"schema_fingerprint": "0" * 16}
ECHO = """\
import json, sys
print(json.dumps(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("submits")
    spec = folder / "specs" / "submits"
    shutil.copytree(SPEC, spec)
    name, texts = compile_spec(spec, "specs/submits")
    write(texts, folder / name)
    tool = folder / "tool.py"
    tool.write_text(ECHO)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder / name))
        patch.setenv("SUBMITS_TOOL", f"{sys.executable} {tool}")
        from submits_mcp.server import create_server  # type: ignore[import-not-found]

        yield create_server
        for module in [module for module in sys.modules if module.startswith("submits_mcp")]:
            del sys.modules[module]


def request(server: Any, arguments: dict[str, Any]) -> Any:
    async def called() -> Any:
        async with Client(server("request")) as client:
            return (await client.call_tool("request", arguments)).structured_content

    return asyncio.run(called())


def op(server: Any, name: str, args: Any = None, **more: Any) -> Any:
    return request(server, {"ops": [{"op": name, "args": args, **more}]})["ops"][0]


def described(server: Any, verb: str, **values: str) -> Any:
    return request(server, {"help": {"verb": verb, **values} if values else verb})


def recomputed(schema: Any) -> str:
    """As a caller would: the first 16 hex digits of SHA-256 over compact, sorted ASCII JSON."""
    return hashlib.sha256(json.dumps(schema, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def test_catalog_quotes_fingerprints_where_they_are_required(server: Any) -> None:
    entries = {entry["verb"]: entry for entry in request(server, {"help": True})["verbs"]}
    for verb in ("agent.submit", "flow.submit", "command.submit"):
        assert entries[verb]["schema_fingerprint"] == described(server, verb)["schema_fingerprint"]
    assert entries["flow.submit"]["schema_fingerprint_varies_with"] == ["playbook"]
    assert entries["play.submit"]["schema_fingerprint_varies_with"] == ["playbook"]
    assert entries["play.submit"]["required"] == ["playbook"]
    assert "schema_fingerprint" not in entries["play.submit"]
    assert entries["job.status"].keys() == {"verb", "summary"}


@pytest.mark.parametrize("verb", ["submit_agent", "agent.submit", "flow.submit"])
def test_callers_can_recompute_it(server: Any, verb: str) -> None:
    reply = described(server, verb)
    assert reply["schema_fingerprint"] == recomputed(reply["schema"])
    assert reply["verb"] == verb.replace("submit_agent", "agent.submit")


def test_bare_help_of_a_verb_that_needs_a_playbook_quotes_none(server: Any) -> None:
    assert "schema_fingerprint" not in described(server, "play.submit")


@pytest.mark.parametrize("wrong", [None, "", "0123456789abcdef", 7, True, [], {}])
def test_missing_or_wrong_is_stale(server: Any, wrong: Any) -> None:
    more = {} if wrong is None else {"schema_fingerprint": wrong}
    reply = op(server, "agent.submit", {"prompt": "x"}, **more)
    assert not reply["ok"]
    assert reply["error"]["kind"] == "stale_schema"
    assert reply["error"]["detail"]["help"] == "agent.submit"
    current = described(server, "agent.submit")
    assert reply["error"]["detail"]["schema_fingerprint"] == current["schema_fingerprint"]
    assert reply["error"]["schema"] == current["schema"]


def test_current_one_is_let_through(server: Any) -> None:
    current = described(server, "agent.submit")["schema_fingerprint"]
    reply = op(server, "submit_agent", {"prompt": "x"}, schema_fingerprint=current)
    assert reply == {"ok": True, "op": "agent.submit", "result": {"prompt": "x"}}


def test_among_the_arguments_it_counts_for_nothing(server: Any) -> None:
    current = described(server, "agent.submit")["schema_fingerprint"]
    alone = op(server, "agent.submit", {"schema_fingerprint": current})
    assert alone["error"]["kind"] == "stale_schema"
    twice = op(server, "agent.submit", {"schema_fingerprint": current}, schema_fingerprint=current)
    assert twice["error"]["kind"] == "invalid_input"
    assert "schema_fingerprint" in twice["error"]["message"]


@pytest.mark.parametrize("value", ["0123456789abcdef", 7, None])
def test_verb_without_one_ignores_it(server: Any, value: Any) -> None:
    assert op(server, "job.status", schema_fingerprint=value) == {"ok": True, "op": "job.status", "result": "running"}


def test_variant_has_a_schema_and_a_fingerprint_of_its_own(server: Any) -> None:
    bare, variant = described(server, "flow.submit"), described(server, "flow.submit", playbook="nightly")
    assert variant["schema"]["properties"].keys() == {"prompt", "playbook", "depth", "max_ops"}
    assert variant["schema"]["required"] == ["depth"]
    assert variant["schema"]["additionalProperties"] is False
    assert variant["schema_fingerprint"] == recomputed(variant["schema"]) != bare["schema_fingerprint"]
    assert bare["schema"].get("additionalProperties", True) is True


def test_call_is_checked_against_its_variant(server: Any) -> None:
    bare = described(server, "flow.submit")["schema_fingerprint"]
    own = described(server, "flow.submit", playbook="nightly")["schema_fingerprint"]
    args = {"playbook": "nightly", "depth": 2}
    assert op(server, "flow.submit", args, schema_fingerprint=bare)["error"]["kind"] == "stale_schema"
    assert op(server, "flow.submit", args, schema_fingerprint=own)["result"] == {
        "prompt": None,
        "further": {"depth": 2},
    }
    wrong = op(server, "flow.submit", {**args, "depth": "2"}, schema_fingerprint=own)
    assert wrong["error"]["kind"] == "invalid_input"
    missing = op(server, "flow.submit", {"playbook": "nightly"}, schema_fingerprint=own)
    assert missing["error"]["kind"] == "invalid_input"
    unknown = op(server, "flow.submit", {"prompt": "x", "depth": 2}, schema_fingerprint=bare)
    assert unknown["error"]["kind"] == "invalid_input"


def test_stale_variant_says_how_to_read_it(server: Any) -> None:
    detail = op(server, "play.submit", {"playbook": "nightly", "depth": 1})["error"]["detail"]
    assert request(server, {"help": detail["help"]})["schema_fingerprint"] == detail["schema_fingerprint"]


def test_missing_playbook_is_told_before_any_fingerprint(server: Any) -> None:
    error = op(server, "play.submit")["error"]
    assert error["kind"] == "invalid_input"
    assert "playbook" in error["message"]


def test_playbook_that_does_not_resolve(server: Any) -> None:
    error = op(server, "flow.submit", {"playbook": "none"})["error"]
    assert error["kind"] == "not_found"  # as its handlers say
    assert "schema" not in error
    assert "error" in described(server, "flow.submit", playbook="none")


def test_further_parameters_become_flags_of_a_command(server: Any) -> None:
    own = described(server, "command.submit", playbook="nightly")["schema_fingerprint"]
    args = {"playbook": "nightly", "depth": 2, "max_ops": 7, "prompt": "--depth=9"}
    argv = op(server, "command.submit", args, schema_fingerprint=own)["result"]
    assert argv == ["orchestrate", "flow", "--playbook=nightly", "--depth=2", "--max-ops=7", "--", "--depth=9"]


def test_tools_surface_carries_it_in_meta_and_refuses_only_a_wrong_one(server: Any) -> None:
    async def called() -> tuple[Any, Any, Any]:
        async with Client(server("tools")) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            without = await client.call_tool("agent.submit", {"prompt": "x"})
            wrong = await client.call_tool("agent.submit", {"prompt": "x"}, meta=WRONG)
            return tools, without, wrong

    tools, without, wrong = asyncio.run(called())
    tool = tools["agent.submit"]
    assert tool.meta["schema_fingerprint"] == recomputed(tool.input_schema)
    assert tools["job.status"].meta is None
    assert not without.is_error
    assert wrong.structured_content["error"]["kind"] == "stale_schema"
