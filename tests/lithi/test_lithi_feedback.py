"""Calls that are refused before anything is asked of the service: by schema, scope and account, in this order.

What is told names only what the schema declares, at most eight times, and never what was sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from .servers import SCOPES, mint
from .shapes import PROBLEM_LENGTH, PROBLEMS, TOOLS, UNKNOWN, check_call, check_refusal
from .wire import LEGACY, MODERN, REVISIONS, Reply, message_of
from .world import SOURCE, WORKFLOW, Caller, World, job_of

MARK = "s3cret"
FOREIGN = "acct_s3crets3cret"
MARKS = (MARK, "731737")
NUMBER = 731737.5


@dataclass(frozen=True, slots=True)
class Bad:
    """Arguments that do not fit, and the paths that the feedback has to name."""

    tool: str
    arguments: Any
    paths: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.tool} {json.dumps(self.arguments)[:60]}"


def bad_job(*paths: str, **job: Any) -> Bad:
    return Bad("lithi.quote", {"job": job_of(**job)}, paths)


BAD = [
    Bad("lithi.quote", {}, ("job",)),
    *(Bad("lithi.quote", {"job": job}, ("job",)) for job in (MARK, NUMBER, None, [MARK], True, json.dumps(job_of()))),
    Bad("lithi.quote", {"job": {}}, ("job.workflow", "job.source_digest")),
    Bad("lithi.quote", {"job": job_of(), MARK: MARK}, ("*",)),
    Bad("lithi.quote", {"job": job_of(), "idempotency_key": MARK}, ("*",)),
    Bad("lithi.quote", {"job": job_of(), "account_id": FOREIGN}, ("*",)),
    Bad("lithi.quote", {"job": {"workflow": WORKFLOW, MARK: {MARK: MARK}}}, ("job.source_digest", "job.*")),
    bad_job("job.workflow", workflow=MARK),
    bad_job("job.workflow", workflow=NUMBER),
    bad_job("job.workflow", workflow=f"{WORKFLOW}\n"),
    bad_job("job.source_digest", source_digest=MARK),
    bad_job("job.source_digest", source_digest=f"{SOURCE}\n"),
    bad_job("job.source_digest", source_digest=[SOURCE]),
    bad_job("job.source_digest", source_digest=None),
    bad_job("job.evidence", evidence=MARK),
    bad_job("job.evidence", evidence={MARK: MARK}),
    bad_job("job.evidence", evidence=[f"sha256:{number:064x}" for number in range(65)]),
    bad_job("job.evidence", evidence=[SOURCE, SOURCE]),
    bad_job("job.evidence[1]", evidence=[SOURCE, MARK]),
    bad_job("job.labels", labels=[MARK]),
    bad_job("job.labels", labels={f"{MARK}{number}": MARK for number in range(17)}),
    bad_job("job.labels.*", labels={MARK: 5}),
    bad_job("job.labels.*", labels={MARK: {MARK: MARK}}),
    bad_job("job.labels.*", labels={MARK: MARK * 40}),
    bad_job("job.labels.*", labels={"account_id": [FOREIGN]}),
    bad_job("job.max_price", max_price=NUMBER),
    bad_job("job.max_price", max_price=f"1.00 {MARK}"),
    bad_job("job.account_id", account_id=MARK),
    bad_job("job.account_id", account_id=None),
    bad_job("job.account_id", account_id=[FOREIGN]),
    Bad("lithi.run", {}, ("quote",)),
    Bad("lithi.run", {"quote": MARK}, ("quote",)),
    Bad("lithi.run", {"quote": [UNKNOWN["qt"]]}, ("quote",)),
    Bad("lithi.run", {"quote": UNKNOWN["qt"] + "\n"}, ("quote",)),
    Bad("lithi.run", {"quote": UNKNOWN["qt"], MARK: True}, ("*",)),
    Bad("lithi.run", {"quote": UNKNOWN["qt"], "account_id": MARK}, ("account_id",)),
    Bad("lithi.run", {"quote": UNKNOWN["qt"], "idempotency_key": ""}, ("idempotency_key",)),
    Bad("lithi.run", {"quote": UNKNOWN["qt"], "idempotency_key": NUMBER}, ("idempotency_key",)),
    Bad("lithi.run", {"quote": UNKNOWN["qt"], "idempotency_key": MARK * 22}, ("idempotency_key",)),
    Bad("lithi.batch", {"quotes": []}, ("quotes",)),
    Bad("lithi.batch", {"quotes": MARK}, ("quotes",)),
    Bad("lithi.batch", {"quotes": json.dumps([UNKNOWN["qt"]])}, ("quotes",)),
    Bad("lithi.batch", {"quotes": [UNKNOWN["qt"]] * 2}, ("quotes",)),
    Bad("lithi.batch", {"quotes": [f"qt_{number:026}" for number in range(101)]}, ("quotes",)),
    Bad("lithi.batch", {"quotes": [UNKNOWN["qt"], MARK]}, ("quotes[1]",)),
    Bad("lithi.batch", {"quote": UNKNOWN["qt"]}, ("quotes", "*")),
    Bad("lithi.status", {}, ("handle",)),
    Bad("lithi.status", {"handle": "../../key"}, ("handle",)),
    Bad("lithi.status", {"handle": f"{UNKNOWN['jb']}/result?{MARK}"}, ("handle",)),
    Bad("lithi.status", {"handle": f"{UNKNOWN['jb']}\n"}, ("handle",)),
    Bad("lithi.status", {"handle": UNKNOWN["jb"].upper()}, ("handle",)),
    Bad("lithi.result", {"handle": NUMBER}, ("handle",)),
    Bad("lithi.result", {"handle": UNKNOWN["jb"], "quote": MARK}, ("*",)),
]


@pytest.fixture(scope="module")
def no_scopes(world: World) -> Caller:
    """Somebody of ada's account whose key is good for nothing."""
    return world.caller(scopes=(), account=world.ada.account, subject="nil")


@pytest.fixture(scope="module")
def single(world: World) -> dict[str, Caller]:
    """For each scope, somebody of ada's account who has no other."""
    return {scope: world.caller(scopes=[scope], account=world.ada.account, subject=scope) for scope in SCOPES}


def refused(world: World, caller: Caller, tool: str, arguments: Any, revision: str = MODERN) -> Reply:
    """A call that is refused without a word to the service, and without a trace of what was sent."""
    before = world.requests()
    reply = caller.call(tool, arguments, revision)
    assert world.requests() == before
    assert not any(reply.holds(mark) for mark in MARKS), reply
    check_call(reply)
    check_refusal(reply.refusal)
    return reply


def problems_of(reply: Reply) -> list[str]:
    assert reply.refusal["kind"] == "invalid_input", reply
    problems = reply.refusal["detail"]["problems"]
    assert problems
    return list(problems)


# Feedback


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("revision", REVISIONS)
def test_arguments_that_do_not_fit(world: World, bad: Bad, revision: str) -> None:
    problems = problems_of(refused(world, world.ada, bad.tool, bad.arguments, revision))
    assert len(problems) == len(bad.paths), problems
    for path in bad.paths:
        assert any(f"`{path}`" in problem for problem in problems), problems


@pytest.mark.parametrize("revision", REVISIONS)
def test_many_faults_at_once(world: World, revision: str) -> None:
    job = {"source_digest": MARK, "labels": {f"{MARK}key": 5}, "zz": MARK}
    problems = problems_of(refused(world, world.ada, "lithi.quote", {"job": job, MARK: 1}, revision))
    for path in ("*", "job.*", "job.source_digest", "job.labels.*", "job.workflow"):
        assert any(f"`{path}`" in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("lithi.batch", {"quotes": [f"{MARK}{number}" for number in range(100)]}),
        ("lithi.quote", {"job": job_of(evidence=[f"{MARK}{number}" for number in range(64)])}),
        ("lithi.quote", {"job": job_of(labels={f"{MARK}{number}": number for number in range(16)})}),
        ("lithi.quote", {f"{MARK}{number}": MARK for number in range(1000)}),
        ("lithi.quote", {"job": {f"{MARK}{number}": MARK * 100 for number in range(300)}}),
    ],
)
def test_never_more_than_eight_entries(world: World, tool: str, arguments: dict[str, Any]) -> None:
    reply = refused(world, world.ada, tool, arguments)
    problems = problems_of(reply)
    assert len(problems) <= PROBLEMS
    assert all(len(problem) <= PROBLEM_LENGTH for problem in problems)
    assert len(reply.body) < 8 * 1024


@pytest.mark.parametrize("tool", TOOLS)
def test_a_large_call_has_a_small_answer(world: World, tool: str) -> None:
    reply = refused(world, world.ada, tool, {MARK * 1000: MARK * 20_000, "handle": MARK * 10_000})
    assert len(reply.body) < 8 * 1024


def test_names_that_look_like_paths_or_patterns_are_not_repeated(world: World) -> None:
    names = ("job.s3cret", "job", "`s3cret`", "*", "\u202es3cret", "\x00s3cret", "__proto__", "$ref")
    labels = dict.fromkeys(names, 5)
    problems = problems_of(refused(world, world.ada, "lithi.quote", {"job": job_of(labels=labels)}))
    assert {problem.split("`")[1] for problem in problems} == {"job.labels.*"}


@pytest.mark.parametrize("arguments", [None, {}])
def test_no_arguments_at_all(world: World, arguments: Any) -> None:
    for revision in REVISIONS:
        assert problems_of(refused(world, world.ada, "lithi.status", arguments, revision))
        message = message_of(revision, "tools/call", {"name": "lithi.status"})
        reply = world.ada.endpoint.send(world.ada.endpoint.request(revision, message))
        assert problems_of(reply)


# The order: schema, scope, account


@pytest.mark.parametrize("bad", [BAD[0], BAD[30], BAD[39], BAD[46], BAD[-1]], ids=str)
def test_the_schema_is_looked_at_before_the_scope(world: World, no_scopes: Caller, bad: Bad) -> None:
    assert problems_of(refused(world, no_scopes, bad.tool, bad.arguments))


def good_arguments() -> dict[str, dict[str, Any]]:
    return {
        "lithi.quote": {"job": job_of(labels={MARK: MARK})},
        "lithi.run": {"quote": UNKNOWN["qt"], "idempotency_key": MARK},
        "lithi.batch": {"quotes": [UNKNOWN["qt"]], "idempotency_key": MARK},
        "lithi.status": {"handle": UNKNOWN["jb"]},
        "lithi.result": {"handle": UNKNOWN["jb"]},
    }


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tool", TOOLS)
def test_without_its_scope_no_tool_asks_the_service(world: World, no_scopes: Caller, tool: str, revision: str) -> None:
    reply = refused(world, no_scopes, tool, good_arguments()[tool], revision)
    assert reply.refusal["kind"] == "insufficient_scope"


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_is_good_for_its_own_tools(world: World, single: dict[str, Caller], scope: str) -> None:
    granted = {
        "compute:quote": {"lithi.quote"},
        "compute:run": {"lithi.run", "lithi.batch"},
        "compute:read": {"lithi.status", "lithi.result"},
    }[scope]
    for tool, arguments in good_arguments().items():
        if tool in granted:
            before = world.requests()
            single[scope].call(tool, arguments)
            assert world.requests() == before + 1
        else:
            assert refused(world, single[scope], tool, arguments).refusal["kind"] == "insufficient_scope"


def test_a_scope_cannot_be_brought_along(world: World, no_scopes: Caller) -> None:
    scopes = " ".join(SCOPES)
    params = {
        "name": "lithi.status",
        "arguments": {"handle": UNKNOWN["jb"]},
        "scope": scopes,
        "_meta": {"scope": scopes, "scopes": list(SCOPES), "account": world.ada.account, "subject": "ada"},
    }
    request = no_scopes.endpoint.request(MODERN, message_of(MODERN, "tools/call", params))
    for name in ("X-Scope", "X-Scopes", "X-Forwarded-User", "X-Account-Id"):
        request = request.with_header(name, scopes)
    before = world.requests()
    assert no_scopes.endpoint.send(request).refusal["kind"] == "insufficient_scope"
    assert world.requests() == before


def test_the_scope_is_looked_at_before_the_account(world: World, no_scopes: Caller) -> None:
    for tool, arguments in with_account(FOREIGN).items():
        assert refused(world, no_scopes, tool, arguments).refusal["kind"] == "insufficient_scope"


# The account


def with_account(account: str) -> dict[str, dict[str, Any]]:
    """Arguments of each tool with an account in the place that is declared for it."""
    return {
        "lithi.quote": {"job": job_of(account_id=account)},
        **{
            tool: {**arguments, "account_id": account}
            for tool, arguments in good_arguments().items()
            if tool != "lithi.quote"
        },
    }


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tool", TOOLS)
def test_another_account_than_that_of_the_key(world: World, tool: str, revision: str) -> None:
    reply = refused(world, world.ada, tool, with_account(FOREIGN)[tool], revision)
    assert reply.refusal["kind"] == "denied"
    assert not reply.holds(world.ada.account)


def test_an_account_that_there_is_and_one_that_there_is_not_are_refused_alike(world: World) -> None:
    for tool in TOOLS:
        there_is = refused(world, world.ada, tool, with_account(world.bob.account)[tool])
        there_is_not = refused(world, world.ada, tool, with_account(FOREIGN)[tool])
        assert there_is.body == there_is_not.body


@pytest.mark.parametrize("account", [FOREIGN, MARK, ""])
def test_another_account_in_a_place_where_any_name_is_allowed(world: World, account: str) -> None:
    reply = refused(world, world.ada, "lithi.quote", {"job": job_of(labels={"a": "b", "account_id": account})})
    assert reply.refusal["kind"] == "denied"


def test_one_of_several_places_is_enough(world: World) -> None:
    own = world.ada.account
    for job in (
        job_of(account_id=own, labels={"account_id": FOREIGN}),
        job_of(account_id=FOREIGN, labels={"account_id": own}),
    ):
        assert refused(world, world.ada, "lithi.quote", {"job": job}).refusal["kind"] == "denied"


def test_the_own_account_is_as_good_as_none(world: World) -> None:
    own = world.ada.account
    for job in (job_of(account_id=own), job_of(labels={"account_id": own}), job_of()):
        quote = world.ada.call("lithi.quote", {"job": job}).work["handle"]
        named = {"quote": quote, "account_id": own}
        assert world.ada.call("lithi.run", named).work["state"] == "accepted"


def test_a_key_without_an_account_may_name_none(world: World) -> None:
    key = mint(world.keys, "homeless")
    homeless = Caller("", key, world.ada.endpoint.with_key(key))
    for tool in TOOLS:
        assert refused(world, homeless, tool, with_account(world.ada.account)[tool]).refusal["kind"] == "denied"


# Handles of others


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_foreign_handle_and_an_unknown_one_are_refused_alike(world: World, revision: str) -> None:
    foreign_quote, foreign_job, own_quote = world.bob.quote(), cleo_job(world), world.ada.quote()
    pairs = [
        ("lithi.run", {"quote": foreign_quote}, {"quote": UNKNOWN["qt"]}),
        ("lithi.run", {"quote": foreign_job}, {"quote": UNKNOWN["jb"]}),
        ("lithi.batch", {"quotes": [foreign_quote]}, {"quotes": [UNKNOWN["qt"]]}),
        ("lithi.batch", {"quotes": [own_quote, foreign_quote]}, {"quotes": [own_quote, UNKNOWN["qt"]]}),
        ("lithi.status", {"handle": foreign_job}, {"handle": UNKNOWN["jb"]}),
        ("lithi.status", {"handle": foreign_quote}, {"handle": UNKNOWN["qt"]}),
        ("lithi.result", {"handle": foreign_job}, {"handle": UNKNOWN["jb"]}),
    ]
    for tool, foreign, unknown in pairs:
        replies = [world.ada.call(tool, arguments, revision) for arguments in (foreign, unknown)]
        assert replies[0].refusal["kind"] == "not_found"
        assert replies[0].body == replies[1].body
        assert not replies[0].holds(foreign_quote)
        assert not replies[0].holds(foreign_job)
        check_call(replies[0])


def cleo_job(world: World) -> str:
    """The handle of a job of somebody else whose account needs no approval."""
    return world.caller("open", subject="cleo").run()


def test_nothing_was_started_by_what_was_refused(world: World) -> None:
    own, foreign = world.ada.quote(), world.bob.quote()
    started = world.heard.count("POST /batches 201")
    assert world.ada.call("lithi.batch", {"quotes": [own, foreign]}, LEGACY).refusal["kind"] == "not_found"
    assert world.heard.count("POST /batches 201") == started
    assert world.ada.call("lithi.run", {"quote": own}).work["state"] == "accepted"
