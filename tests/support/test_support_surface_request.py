"""The surface `request` as a client sees it: the tool, help, and every way that a request or an op can go wrong."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from mcp import Client, MCPError

from verbc.support.call import Call
from verbc.support.fingerprint import fingerprint
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data

from .clients import ERAS, call, structured, text, with_client
from .samples import Work


def request(registry: Registry, arguments: dict[str, Any], **how: Any) -> Any:
    return structured(call(registry, "request", arguments, surface="request", **how))


def ops(registry: Registry, *entries: Any, **how: Any) -> list[Any]:
    reply = request(registry, {"ops": list(entries)}, **how)
    assert reply["status"] == ("success" if all(entry["ok"] for entry in reply["ops"]) else "partial")
    answers: list[Any] = reply["ops"]
    return answers


def whole_call_error(registry: Registry, arguments: dict[str, Any], **how: Any) -> dict[str, Any]:
    result = call(registry, "request", arguments, surface="request", **how)
    assert result.is_error
    reply = structured(result)
    assert reply.keys() == {"error"}
    error: dict[str, Any] = reply["error"]
    return error


@pytest.mark.parametrize("era", ERAS)
def test_there_is_one_small_tool(registry: Registry, era: str) -> None:
    async def use(client: Client) -> Any:
        return await client.list_tools()

    listed = with_client(registry, use, surface="request", era=era)
    (tool,) = listed.tools
    assert tool.name == "request"
    assert tool.description.startswith("Shows items.\n\n")
    assert tool.input_schema["properties"].keys() == {"ops", "help"}
    assert tool.input_schema["properties"]["ops"]["items"] == {}
    assert tool.input_schema["additionalProperties"] is False
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) < 4096


def test_every_reply_fits_the_output_schema(registry: Registry) -> None:
    async def use(client: Client) -> Any:
        (tool,) = (await client.list_tools()).tools
        requests: list[dict[str, Any]] = [{"help": True}, {"help": "flow"}, {}, {"ops": [{"op": "free"}, {"op": 1}]}]
        return tool.output_schema, [await client.call_tool("request", arguments) for arguments in requests]

    schema, results = with_client(registry, use, surface="request")
    for result in results:
        jsonschema.validate(result.structured_content, schema)


# Requests as a whole


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({}, "invalid_input", "Pass ops, or help: true."),
        ({"ops": None}, "invalid_input", "Pass ops, or help: true."),
        ({"help": None}, "invalid_input", "Pass ops, or help: true."),
        ({"help": False}, "invalid_input", "Pass ops, or help: true."),
        ({"ops": []}, "invalid_input", "ops is empty."),
        ({"ops": [], "help": False}, "invalid_input", "ops is empty."),
        ({"ops": [{"op": "free"}], "help": True}, "invalid_input", "cannot be combined"),
        ({"ops": [{"op": "free"}], "help": "free"}, "invalid_input", "cannot be combined"),
        ({"ops": [{"op": "free"}], "help": {}}, "invalid_input", "cannot be combined"),
        ({"ops": [{"op": "free"}] * 4}, "invalid_input", "There are 4 ops, and at most 3 are taken."),
        ({"ops": {"op": "free"}}, "invalid_input", "ops must be an array."),
        ({"ops": '[{"op":"free"}]'}, "invalid_input", "ops must be an array."),
        ({"ops": [{"op": "free"}], "zz": 1, "yy": 1}, "invalid_input", "`yy`, `zz` are not keys of a request"),
        ({"help": 1}, "invalid_input", "help must be true, the name of a verb, or an object of strings"),
        ({"help": []}, "invalid_input", "help must be true"),
        ({"help": {"verb": 1}}, "invalid_input", "help must be true"),
        ({"help": {"verb": "flow", "playbook": 1}}, "invalid_input", "help must be true"),
        ({"help": {"verb": "nope", "zz": 1}}, "invalid_input", "help must be true"),
        ({"help": {"verb": "free", "zz": 1, "yy": 2}}, "invalid_input", "does not vary with `yy`, `zz`."),
        ({"help": "true"}, "not_found", "There is no verb `true`. Verbs available: 6, unavailable: 2."),
        ({"help": ""}, "not_found", "Verbs available: 6, unavailable: 2."),
        ({"help": {}}, "invalid_input", "help needs a verb."),
        ({"help": {"playbook": "a"}}, "invalid_input", "help needs a verb."),
        ({"help": {"verb": "nope", "playbook": "a"}}, "not_found", "There is no verb `nope`"),
        ({"help": {"verb": "free", "zz": "1", "yy": "2"}}, "invalid_input", "does not vary with `yy`, `zz`."),
        ({"help": {"verb": "free", "playbook": "p"}}, "invalid_input", "`free` does not vary with `playbook`."),
        ({"help": {"verb": "flow", "playbook": "none"}}, "not_found", "No such playbook."),
        ({"help": {"verb": "flow", "playbook": "NOT"}}, "invalid_input", "`playbook` has a value that does not fit"),
    ],
)
def test_what_is_wrong_with_a_request_is_told_and_nothing_runs(
    registry: Registry, arguments: dict[str, Any], kind: str, words: str
) -> None:
    ran: list[str] = []

    async def work(call: Call) -> Any:
        ran.append(call.verb.name)

    variants = {"none": Refusal("not_found", "No such playbook.")}
    error = whole_call_error(registry, arguments, works={"free": work}, variants=variants)
    assert error["kind"] == kind
    assert words in error["message"]
    assert ran == []


def test_ops_run_beside_a_help_that_is_off(registry: Registry) -> None:
    for off in (False, None):
        reply = request(registry, {"ops": [{"op": "free"}], "help": off})
        assert reply == {"status": "success", "ops": [{"ok": True, "op": "free", "result": {}}]}


@pytest.mark.parametrize("empty", [[], None])
def test_help_beside_no_ops_is_help(registry: Registry, empty: Any) -> None:
    assert request(registry, {"ops": empty, "help": True})["verb_count"] == 8


def test_another_tool_is_unknown(data: dict[str, Any]) -> None:
    for feedback, message in (("names", "Unknown tool `item.show`."), ("shapes", "Unknown tool.")):
        with pytest.raises(MCPError) as caught:
            call(from_data({**data, "feedback": feedback}), "item.show", {"id": "a"}, surface="request")
        assert (caught.value.error.code, caught.value.error.message) == (-32602, message)


# Ops


@pytest.mark.parametrize("element", [None, 7, "free", [], True])
def test_an_element_that_is_no_object_fails_alone(registry: Registry, element: Any) -> None:
    bad, good = ops(registry, element, {"op": "free"})
    assert bad == {"ok": False, "op": "?", "error": {"kind": "invalid_input", "message": "An op must be an object."}}
    assert good["ok"]


@pytest.mark.parametrize("op", [{}, {"args": {}}, {"op": None}, {"op": 7}, {"op": ["free"]}])
def test_an_op_without_a_name_is_refused(registry: Registry, op: Any) -> None:
    (answer,) = ops(registry, op)
    assert answer["op"] == "?"
    assert answer["error"] == {"kind": "invalid_input", "message": "op must be the name of a verb."}


@pytest.mark.parametrize(("name", "shown"), [("nope", "nope"), ("show_item", "item.show"), ("gone", "gone")])
def test_further_keys_are_refused_before_the_verb_is_looked_at(registry: Registry, name: str, shown: str) -> None:
    (answer,) = ops(registry, {"op": name, "zz": 1, "arg": {}})
    assert answer["op"] == shown
    message = "`arg`, `zz` are not keys of an op; it has op, args and schema_fingerprint."
    assert answer["error"] == {"kind": "invalid_input", "message": message}


@pytest.mark.parametrize("name", ["nope", "", "item_show", "help"])
def test_an_unknown_verb_is_not_found(registry: Registry, name: str) -> None:
    (answer,) = ops(registry, {"op": name})
    assert (answer["op"], answer["error"]["kind"]) == (name, "not_found")
    assert answer["error"]["message"].endswith("Verbs available: 6, unavailable: 2.")
    assert answer["error"].keys() == {"kind", "message"}


def test_a_hostile_name_is_echoed_cut_and_escaped(registry: Registry) -> None:
    (answer,) = ops(registry, {"op": "\u202e\n" + "x" * 500})
    assert answer["op"] == "\\u202e\\u000a" + "x" * 61 + "…"


def test_shapes_echoes_no_name(data: dict[str, Any]) -> None:
    unknown, further = ops(from_data({**data, "feedback": "shapes"}), {"op": "s3cr3t"}, {"op": "free", "s3cr3t": 1})
    assert "s3cr3t" not in json.dumps([unknown, further])
    assert (unknown["op"], further["op"]) == ("*", "free")


def test_an_unavailable_verb_is_refused_with_its_reason(registry: Registry) -> None:
    (answer,) = ops(registry, {"op": "gone", "args": {"x": 1}})
    detail = {"summary": "Summary of gone."}
    assert answer["error"] == {"kind": "unavailable", "message": "Nobody needs it.", "detail": detail}


@pytest.mark.parametrize("args", [[], "x", False, 7])
def test_args_that_are_no_object_are_refused(registry: Registry, args: Any) -> None:
    (answer,) = ops(registry, {"op": "item.show", "args": args})
    assert answer["error"] == {"kind": "invalid_input", "message": "The arguments must be an object."}


@pytest.mark.parametrize("op", [{"op": "free"}, {"op": "free", "args": None}, {"op": "free", "args": {}}])
def test_no_args_are_empty_args(registry: Registry, op: Any) -> None:
    assert ops(registry, op) == [{"ok": True, "op": "free", "result": {}}]


def test_a_synonym_is_answered_by_the_verbs_own_name(registry: Registry) -> None:
    assert ops(registry, {"op": "show_item", "args": {"id": "a"}}) == [
        {"ok": True, "op": "item.show", "result": {"id": "a"}}
    ]


def test_argument_problems_come_with_the_schema(registry: Registry, data: dict[str, Any]) -> None:
    (answer,) = ops(registry, {"op": "item.show", "args": {"id": None, "force": True}})
    problems = ["`id` must not be null", "`force` is not accepted: It would stop a run in the middle."]
    assert answer["error"] == {
        "kind": "invalid_input",
        "message": "; ".join(problems),
        "detail": {"problems": problems},
        "schema": data["verbs"][0]["params"],
    }


def test_a_stale_fingerprint_comes_with_the_schema_and_what_to_ask(registry: Registry, data: dict[str, Any]) -> None:
    verb = data["verbs"][3]
    absent, wrong, inside = ops(
        registry,
        {"op": "spawn"},
        {"op": "spawn", "schema_fingerprint": 7},
        {"op": "spawn", "args": {"schema_fingerprint": verb["fingerprint"]}},
    )
    detail = {"help": "spawn", "schema_fingerprint": verb["fingerprint"]}
    assert [answer["error"]["kind"] for answer in (absent, wrong, inside)] == ["stale_schema"] * 3
    assert [answer["error"]["detail"] for answer in (absent, wrong, inside)] == [detail] * 3
    assert absent["error"]["schema"] == verb["params"]
    good, ignored = ops(
        registry,
        {"op": "spawn", "schema_fingerprint": verb["fingerprint"]},
        {"op": "free", "schema_fingerprint": ["anything"]},
    )
    assert good["ok"]
    assert ignored["ok"]


def test_a_schema_is_sent_once(registry: Registry, data: dict[str, Any]) -> None:
    wrong = {"op": "item.show", "args": {}}
    first, other, second = ops(registry, wrong, {"op": "spawn"}, wrong)
    assert first["error"]["schema"] == data["verbs"][0]["params"]
    assert other["error"]["schema"] == data["verbs"][3]["params"]
    assert "schema" not in second["error"]
    assert second["error"]["schema_ref"] == {"op_index": 0, "schema_fingerprint": data["verbs"][0]["fingerprint"]}


def test_one_ops_bad_result_is_its_own(registry: Registry) -> None:
    async def not_finite(call: Call) -> Any:
        return {"a": [float("nan")]}

    async def failing(call: Call) -> Any:
        raise RuntimeError("secret")

    works: dict[str, Work] = {"free": not_finite, "spawn": failing}
    how: dict[str, Any] = {"works": works}
    sent = next(verb for verb in registry.verbs if verb.name == "spawn").fingerprint
    spawn = {"op": "spawn", "schema_fingerprint": sent}
    first, second, third = ops(registry, {"op": "free"}, spawn, {"op": "item.names"}, **how)
    assert first["error"]["message"] == "The result cannot be sent: it holds a number that is not finite."
    assert second["error"]["kind"] == "internal"
    assert "secret" not in json.dumps(second)
    assert third["error"]["kind"] == "internal"  # its backend gave an object where a list is declared


def test_ops_run_in_order_and_requests_side_by_side(registry: Registry) -> None:
    seen: list[str] = []
    started, both = asyncio.Event(), asyncio.Event()

    async def work(call: Call) -> Any:
        seen.append(call.arguments.get("id", "free"))
        if call.verb.name == "free":
            started.set()
            await both.wait()
        return {"id": "a"}

    async def use(client: Client) -> None:
        waiting = asyncio.create_task(
            client.call_tool("request", {"ops": [{"op": "free"}, {"op": "item.show", "args": {"id": "a"}}]})
        )
        await started.wait()
        other = await client.call_tool("request", {"ops": [{"op": "item.show", "args": {"id": "b"}}]})
        assert structured(other)["status"] == "success"
        assert seen == ["free", "b"]
        both.set()
        assert structured(await waiting)["status"] == "success"

    with_client(registry, use, surface="request", works={"free": work, "item.show": work})
    assert seen == ["free", "b", "a"]


# Help


def test_the_catalog_lists_every_verb(registry: Registry, data: dict[str, Any]) -> None:
    known = request(registry, {"help": True})
    prints = {verb["name"]: verb["fingerprint"] for verb in data["verbs"]}
    assert known.pop("help_usage")
    assert known == {
        "verbs": [
            {"verb": "item.show", "summary": "Summary of item.show.", "required": ["id"]},
            {"verb": "item.names", "summary": "Summary of item.names."},
            {"verb": "free", "summary": "Summary of free."},
            {
                "verb": "spawn",
                "summary": "Summary of spawn.",
                "required_unenforced": ["query"],
                "schema_fingerprint": prints["spawn"],
            },
            {
                "verb": "flow",
                "summary": "Summary of flow.",
                "schema_fingerprint_varies_with": ["playbook"],
                "schema_fingerprint": prints["flow"],
            },
            {
                "verb": "play",
                "summary": "Summary of play.",
                "required": ["playbook"],
                "schema_fingerprint_varies_with": ["playbook"],
            },
            {"verb": "gone", "available": False, "summary": "Summary of gone."},
            {"verb": "wiped", "available": False, "summary": "Summary of wiped.", "cli_path": "state wipe"},
        ],
        "verb_count": 8,
        "available_count": 6,
        "max_ops": 3,
        "synonyms_removed_after": "2031-01-31",
    }


def test_a_date_that_nobody_set_is_not_told(data: dict[str, Any]) -> None:
    data["synonyms"]["removed_after"] = None
    assert "synonyms_removed_after" not in request(from_data(data), {"help": True})


def test_help_on_a_verb_gives_its_schema(registry: Registry, data: dict[str, Any]) -> None:
    show, _, _, spawn, flow, play, *_ = data["verbs"]
    expected = {"verb": "item.show", "schema": show["params"], "refused": show["refused"]}
    for topic in ("item.show", "show_item", {"verb": "item.show"}):
        assert request(registry, {"help": topic}) == expected
    assert request(registry, {"help": "spawn"}) == {
        "verb": "spawn",
        "schema": spawn["params"],
        "schema_fingerprint": fingerprint(spawn["params"]),
    }
    assert request(registry, {"help": "flow"})["schema_fingerprint"] == flow["fingerprint"]
    assert request(registry, {"help": "play"}) == {
        "verb": "play",
        "schema": play["params"],
        "schema_fingerprint_varies_with": ["playbook"],
    }


def test_help_on_an_unavailable_verb_gives_the_reason(registry: Registry) -> None:
    reason = {"verb": "gone", "available": False, "summary": "Summary of gone.", "reason": "Nobody needs it."}
    assert request(registry, {"help": "gone"}) == reason


@pytest.mark.parametrize("name", ["flow", "play"])
def test_help_with_a_value_gives_the_variant(registry: Registry, name: str) -> None:
    variants = {"deep": {"properties": {"depth": {"type": "integer"}}}}
    told = request(registry, {"help": {"verb": name, "playbook": "deep"}}, variants=variants)
    assert told["schema"]["properties"]["depth"] == {"type": "integer"}
    assert told["schema"]["additionalProperties"] is False
    assert told["schema_fingerprint"] == fingerprint(told["schema"])
    op = {"op": name, "args": {"playbook": "deep"}, "schema_fingerprint": told["schema_fingerprint"]}
    assert ops(registry, op, variants=variants)[0]["ok"]


def test_the_text_is_compact(registry: Registry) -> None:
    result = call(registry, "request", {"ops": [{"op": "free"}]}, surface="request")
    assert text(result) == '{"status":"success","ops":[{"ok":true,"op":"free","result":{}}]}'
