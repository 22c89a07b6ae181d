"""Arguments that nobody would write by hand, with a marker in every place, through lithi-mcp to the service and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from .shapes import TOOLS, UNKNOWN, check_call, output_validators
from .wire import LEGACY, MODERN, REVISIONS, Client, Reply, Request, message_of
from .world import WORKFLOW, World, running_world

MARK = "zqmark"
HEX_MARK = "5ec7e7"
DIGITS_MARK = "731737"
CURRENCY_MARK = "ZQM"
# Letters and digits alone can stand in a signature or an id by chance, so a short mark counts only as a word of its own.
MARKS = re.compile(
    rf"{MARK}|{HEX_MARK * 10}|(?<![\w-])(?:{DIGITS_MARK}|{CURRENCY_MARK})(?![\w-])|acct_zq", re.ASCII | re.IGNORECASE
)

GENERATED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True, slots=True)
class Line:
    """A connection to the server, by ada, and what its answers have to fit."""

    world: World
    client: Client
    outputs: dict[str, Draft202012Validator]

    def call(self, tool: str, arguments: Any, revision: str) -> Reply:
        return self.client.call(tool, arguments, revision)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_world(tmp_path_factory.mktemp("lithi"), works=True) as running:
        yield running


@pytest.fixture(scope="module")
def line(world: World) -> Iterator[Line]:
    client = Client(world.ada.endpoint)
    try:
        yield Line(world, client, output_validators(world.ada.endpoint))
    finally:
        client.close()


def check_answer(line: Line, tool: str, answer: Reply) -> None:
    """An answer of 2xx or 4xx, in one of the forms there are, and without a marker."""
    assert answer.status < 500, answer
    assert not MARKS.search(answer.whole), answer
    if answer.status == 200 and "result" in answer.json:
        content = check_call(answer)
        assert line.outputs[tool].is_valid(content)
        assert content.get("error", {}).get("kind") not in ("internal", "unavailable", "busy"), content


# Arguments that fit, but for what they mean

marked = st.text(max_size=12).map(lambda text: f"{text}{MARK}{text}")
digests = st.text("0123456789abcdef", min_size=4, max_size=4).map(lambda text: f"sha256:{HEX_MARK * 10}{text}")
workflows = st.integers(0, 99).map(lambda number: f"{MARK}-{number}@{DIGITS_MARK}")
prices = st.sampled_from([f"{DIGITS_MARK}.00 EUR", f"0.01 {CURRENCY_MARK}", f"{DIGITS_MARK}.99 {CURRENCY_MARK}"])
unknown_handles = st.tuples(st.sampled_from(["qt", "jb", "bt"]), st.text("zqmark", min_size=20, max_size=20)).map(
    lambda pair: f"{pair[0]}_{MARK}{pair[1]}"
)
idempotency_keys = st.text(min_size=1, max_size=100).map(lambda text: f"{MARK}{text}")


def accounts(own: str) -> st.SearchStrategy[str]:
    return st.sampled_from([own, own, own, "acct_zqmarkzqmark"])


def jobs(own: str) -> st.SearchStrategy[dict[str, Any]]:
    labels = st.dictionaries(marked, marked, max_size=4)
    return st.fixed_dictionaries(
        {"workflow": st.one_of(workflows, st.just(WORKFLOW)), "source_digest": digests},
        optional={
            "evidence": st.lists(digests, max_size=4, unique=True),
            "labels": st.one_of(labels, accounts(own).map(lambda account: {"account_id": account, MARK: MARK})),
            "max_price": prices,
            "account_id": accounts(own),
        },
    )


def fitting(tool: str, own: str, handles: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments that the schema of the tool allows."""
    more: dict[str, st.SearchStrategy[Any]] = {"account_id": accounts(own)}
    keyed = {**more, "idempotency_key": idempotency_keys}
    match tool:
        case "lithi.quote":
            return st.fixed_dictionaries({"job": jobs(own)})
        case "lithi.run":
            return st.fixed_dictionaries({"quote": handles}, optional=keyed)
        case "lithi.batch":
            quotes = st.lists(handles, min_size=1, max_size=4, unique=True)
            return st.fixed_dictionaries({"quotes": quotes}, optional=keyed)
        case _:
            return st.fixed_dictionaries({"handle": handles}, optional=more)


# Arguments that do not fit


def marked_json() -> st.SearchStrategy[Any]:
    """JSON of any form, in which each text, key and number has the marker."""
    numbers = st.one_of(
        st.integers(0, 10**6).map(lambda number: int(f"{DIGITS_MARK}{number}")),
        st.integers(0, 10**6).map(lambda number: float(f"{DIGITS_MARK}.{number}")),
    )
    leaves = st.one_of(st.none(), st.booleans(), marked, numbers, digests, unknown_handles, prices)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(marked, inner, max_size=4), max_leaves=12
    )


@st.composite
def spoilt(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """The same arguments with one to three places filled with something else, left out, or added."""
    copy: dict[str, Any] = json.loads(json.dumps(whole))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = copy
        while True:
            inside = [key for key, value in items_of(place) if isinstance(value, dict | list) and value]
            if not inside or draw(st.booleans()):
                break
            place = place[draw(st.sampled_from(inside))]
        spoil(draw, place)
    return copy


def items_of(place: Any) -> list[tuple[Any, Any]]:
    return list(place.items()) if isinstance(place, dict) else list(enumerate(place))


def spoil(draw: st.DrawFn, place: Any) -> None:
    keys = [key for key, _ in items_of(place)]
    what = draw(st.sampled_from(["replace", "remove", "add"] if keys else ["add"]))
    if what == "add" and isinstance(place, dict):
        place[draw(st.one_of(marked, st.sampled_from(["account_id", "idempotency_key", "handle"])))] = draw(
            marked_json()
        )
    elif what == "add":
        place.append(draw(marked_json()))
    elif what == "remove":
        del place[draw(st.sampled_from(keys))]
    else:
        place[draw(st.sampled_from(keys))] = draw(marked_json())


@pytest.mark.parametrize("tool", TOOLS)
def test_arguments_that_fit(line: Line, tool: str) -> None:
    """Among the handles are some that there are, so that much of this is done."""
    known = [line.world.ada.quote() for _ in range(6)]
    known += [line.world.ada.run() for _ in range(2)]
    done = []

    @GENERATED
    @given(fitting(tool, line.world.ada.account, st.sampled_from(known) | unknown_handles), st.sampled_from(REVISIONS))
    def check(arguments: dict[str, Any], revision: str) -> None:
        before = line.world.requests()
        answer = line.call(tool, arguments, revision)
        check_answer(line, tool, answer)
        assert answer.status == 200
        kind = check_call(answer).get("error", {}).get("kind")
        assert (kind == "invalid_input") <= (CURRENCY_MARK in json.dumps(arguments))  # the service takes one currency
        assert line.world.requests() - before == (0 if kind == "denied" else 1)
        done.append(kind)

    check()
    assert None in done
    assert len(set(done)) > 1


@pytest.mark.parametrize("tool", TOOLS)
def test_arguments_that_are_spoilt(line: Line, tool: str) -> None:
    known = st.sampled_from([line.world.ada.quote(), line.world.ada.run()])
    kinds = set()

    @GENERATED
    @given(st.data(), st.sampled_from(REVISIONS))
    def check(data: st.DataObject, revision: str) -> None:
        whole = data.draw(fitting(tool, line.world.ada.account, known | unknown_handles))
        answer = line.call(tool, data.draw(spoilt(whole)), revision)
        check_answer(line, tool, answer)
        kinds.add(check_call(answer).get("error", {}).get("kind"))

    check()
    assert "invalid_input" in kinds


@GENERATED
@given(st.sampled_from(TOOLS), marked_json(), st.sampled_from(REVISIONS))
def test_arguments_of_any_form(line: Line, tool: str, arguments: Any, revision: str) -> None:
    before = line.world.requests()
    answer = line.call(tool, arguments, revision)
    check_answer(line, tool, answer)
    assert line.world.requests() == before
    if isinstance(arguments, dict):
        assert answer.refusal["kind"] == "invalid_input"
    elif arguments is not None:
        assert answer.error["code"] == -32602


# Envelopes


@GENERATED
@given(st.data(), st.sampled_from(REVISIONS))
def test_envelopes_that_are_spoilt(line: Line, data: st.DataObject, revision: str) -> None:
    message = message_of(revision, "tools/call", {"name": "lithi.status", "arguments": {"handle": UNKNOWN["jb"]}})
    changed = data.draw(spoilt(message))
    assume(not MARKS.search(json.dumps(changed.get("id", 1))))  # which an answer has to repeat
    request = line.world.ada.endpoint.request(revision, message).with_json(changed)
    answer = line.client.send(request)
    assert answer.status < 500, answer
    assert not MARKS.search(answer.whole), answer


header_values = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=20).map(
    lambda text: f"{text}{MARK}{text}"
)
header_names = st.sampled_from(
    ["Accept", "Content-Type", "Host", "Origin", "Authorization", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"]
)


@GENERATED
@given(header_names, st.lists(header_values, min_size=1, max_size=2), st.sampled_from(REVISIONS))
def test_headers_with_anything_in_them(line: Line, name: str, values: list[str], revision: str) -> None:
    endpoint = line.world.ada.endpoint
    request = endpoint.call_request(revision, "lithi.status", {"handle": UNKNOWN["jb"]}).with_header(name, *values)
    answer = endpoint.send(request)
    ignored = revision == LEGACY and name.startswith("Mcp-")
    assert (200 if ignored else 400) <= answer.status < 500, answer
    assert not answer.holds(MARK), answer


@GENERATED
@given(st.binary(max_size=60), st.sampled_from([LEGACY, MODERN]), st.integers(0, 400))
def test_bodies_with_anything_in_them(line: Line, junk: bytes, revision: str, place: int) -> None:
    request = line.world.ada.endpoint.call_request(revision, "lithi.status", {"handle": UNKNOWN["jb"]})
    at = min(place, len(request.body))
    spoilt_request: Request = request.with_body(request.body[:at] + MARK.encode() + junk + request.body[at:])
    answer = line.client.send(spoilt_request)
    assert answer.status < 500, answer
    assert not answer.holds(MARK), answer


def test_no_log_has_a_marker(line: Line) -> None:
    for text in (line.world.server.output.text, "\n".join(line.world.heard.lines)):
        assert not MARKS.search(text)
