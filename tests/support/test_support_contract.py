"""Verbs whose parameters vary with the value of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from verbc.support.admission import Admission, Outcome, Request
from verbc.support.fingerprint import fingerprint
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, Verb
from verbc.support.validation import Validator

from .programs import finish
from .samples import Functions

DEPTH = {"properties": {"depth": {"type": "integer"}}, "required": ["depth"]}
VARIANT = {
    "type": "object",
    "properties": {
        "playbook": {"type": "string", "pattern": "^[a-z]+$"},
        "n": {"type": "integer"},
        "depth": {"type": "integer"},
    },
    "additionalProperties": False,
    "required": ["depth"],
}


def admit(registry: Registry, variants: dict[str, Any], name: str, arguments: Any, sent: Any = None) -> Outcome:
    return finish(Admission(registry, {"local": Functions(variants=variants)}).admit(Request(name, arguments, sent)))


def kind(outcome: Outcome) -> str | None:
    return outcome.refusal.kind if outcome.refusal else None


def test_a_value_gives_a_closed_variant_with_a_fingerprint_of_its_own(registry: Registry) -> None:
    sent = fingerprint(VARIANT)
    variants = {"deep": DEPTH}
    stale = admit(registry, variants, "flow", {"playbook": "deep"})
    assert kind(stale) == "stale_schema"
    assert (stale.schema, stale.schema_fingerprint) == (VARIANT, sent)
    assert stale.refusal is not None
    assert stale.refusal.detail == {"help": {"verb": "flow", "playbook": "deep"}, "schema_fingerprint": sent}
    good = admit(registry, variants, "flow", {"playbook": "deep", "depth": 1.0}, sent)
    assert good.result == {"playbook": "deep", "depth": 1}
    for wrong in ({"playbook": "deep"}, {"playbook": "deep", "depth": "1"}, {"playbook": "deep", "depth": 1, "x": 1}):
        assert kind(admit(registry, variants, "flow", wrong, sent)) == "invalid_input"


def test_without_a_value_the_declared_parameters_are_all_there_are(registry: Registry) -> None:
    verb = registry.verb("flow")
    assert verb is not None
    assert admit(registry, {}, "flow", {"n": 1}, verb.fingerprint).refusal is None
    unknown = admit(registry, {}, "flow", {"depth": 1}, verb.fingerprint)
    assert kind(unknown) == "invalid_input"
    assert (unknown.schema, unknown.schema_fingerprint) == (verb.params, verb.fingerprint)


@pytest.mark.parametrize("value", [7, None, [], "Not-Allowed", "../../secret"])
def test_a_value_that_does_not_fit_never_reaches_the_handlers(registry: Registry, value: Any) -> None:
    verb = registry.verb("flow")
    assert verb is not None
    outcome = admit(registry, {}, "flow", {"playbook": value}, verb.fingerprint)
    assert kind(outcome) == "invalid_input"
    assert outcome.refusal is not None
    assert outcome.refusal.message.startswith("`playbook` must")


@pytest.mark.parametrize("arguments", [{}, {"playbook": 7}])
def test_a_missing_required_value_is_told_before_any_fingerprint(registry: Registry, arguments: Any) -> None:
    outcome = admit(registry, {}, "play", arguments)
    assert kind(outcome) == "invalid_input"
    assert kind(admit(registry, {"a": {}}, "play", {"playbook": "a"})) == "stale_schema"


@pytest.mark.parametrize("told", ["unavailable", "not_found", "invalid_input", "weird"])
def test_a_value_that_stands_for_nothing_is_refused_as_the_handlers_say(registry: Registry, told: str) -> None:
    variants = {"none": Refusal(told, "No such playbook.", {"known": []})}
    outcome = admit(registry, variants, "flow", {"playbook": "none"})
    described = finish(
        Admission(registry, {"local": Functions(variants=variants)}).describe("flow", {"playbook": "none"})
    )
    for refused in (outcome, described):
        assert refused.refusal is not None
        assert refused.refusal.as_error() == {"kind": told, "message": "No such playbook.", "detail": {"known": []}}
        assert refused.schema is None


@pytest.mark.parametrize(
    "variant",
    [
        {"properties": {"n": {"type": "string"}}},
        {"properties": {"playbook": True}},
        {"properties": {"depth": {"type": "strin"}}},
        {"properties": {"depth": {"$ref": "https://example.invalid/x"}}},
        {"properties": {"depth": 7}},
        {"properties": []},
        {"required": "depth"},
        {"required": ["depth"]},
        {"additionalProperties": True},
        "text",
        None,
        ValueError("secret"),
    ],
)
def test_a_variant_that_does_not_fit_its_verb_is_internal(registry: Registry, variant: Any) -> None:
    outcome = admit(registry, {"bad": variant}, "flow", {"playbook": "bad"})
    assert kind(outcome) == "internal"
    assert outcome.schema is None
    assert outcome.refusal is not None
    assert "secret" not in outcome.refusal.message


def test_the_backend_of_a_verb_has_a_say_in_its_variants(registry: Registry) -> None:
    asked: list[tuple[str, Any]] = []

    class Choosy(Functions):
        def objection(self, verb: Verb, further: Mapping[str, Any]) -> str | None:
            asked.append((verb.name, dict(further)))
            return "No." if "deep" in further else None

    variants = {"good": DEPTH, "bad": {"properties": {"deep": {}}}}
    admission = Admission(registry, {"local": Choosy(variants=variants)})
    assert finish(admission.describe("flow", {"playbook": "good"})).schema == VARIANT
    assert kind(finish(admission.describe("flow", {"playbook": "good"}))) is None
    assert asked == [("flow", DEPTH["properties"])]
    assert kind(finish(admission.describe("flow", {"playbook": "bad"}))) == "internal"
    assert kind(finish(admission.admit(Request("flow", {"playbook": "bad"})))) == "internal"


def test_variants_are_compiled_once_and_the_oldest_are_forgotten(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[dict[str, Any]] = []
    compile_one = Validator.compile

    def count(self: Validator) -> None:
        compiled.append(self._schema)
        compile_one(self)

    monkeypatch.setattr(Validator, "compile", count)
    names = [chr(97 + number % 26) * (1 + number // 26) for number in range(80)]
    variants = {name: {"properties": {f"p_{name}": {"type": "integer"}}} for name in names}
    admission = Admission(registry, {"local": Functions(variants=variants)})

    async def scenario() -> None:
        for name in [names[0], names[0], *names]:
            await admission.describe("flow", {"playbook": name})
        before = len(compiled)
        await admission.describe("flow", {"playbook": names[-1]})
        assert len(compiled) == before
        await admission.describe("flow", {"playbook": names[0]})
        assert len(compiled) == before + 1

    finish(scenario())
    assert len(compiled) == 1 + 80 + 1


def test_a_schema_is_described_for_a_value(registry: Registry) -> None:
    admission = Admission(registry, {"local": Functions(variants={"deep": DEPTH})})
    outcome = finish(admission.describe("flow", {"playbook": "deep"}))
    assert (outcome.schema, outcome.schema_fingerprint) == (VARIANT, fingerprint(VARIANT))
    assert kind(finish(admission.describe("flow", {"playbook": "NOT"}))) == "invalid_input"
    assert kind(finish(admission.describe("nope", {}))) == "not_found"
    assert kind(finish(admission.describe("gone", {}))) == "unavailable"
