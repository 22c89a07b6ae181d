"""The schema that one call is checked against: the verb's own, or a variant of it that a parameter's value makes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .backend import Backend, Chooser, Resolver
from .call import Call
from .feedback import ARGUMENTS
from .fingerprint import fingerprint
from .registry import Registry, Verb
from .validation import Validator

_VARIANTS = 64


class ContractError(Exception):
    """A variant that does not fit its verb: the server's fault, not the caller's."""


@dataclass(frozen=True, slots=True)
class Contract:
    """A schema as the caller sees it, its fingerprint, and the validator that enforces it."""

    schema: dict[str, Any]
    fingerprint: str
    validator: Validator
    varied_by: Mapping[str, str]  # the parameters whose values made this variant
    gated: bool = True  # whether a fingerprint can be asked for


class Contracts:
    """The contracts of all verbs of a server, made when they are first needed."""

    def __init__(self, registry: Registry, backends: Mapping[str, Backend]) -> None:
        self._registry = registry
        self._backends = backends
        self._own: dict[str, Contract] = {}
        self._variants: OrderedDict[tuple[str, str], Validator] = OrderedDict()

    async def of(self, call: Call) -> Contract:
        """The contract of a call whose arguments are within the generic limits.

        Raises Refusal as the backend does for a value that stands for nothing, ContractError when what it stands for
        cannot be added to the verb.
        """
        own = self._own_contract(call.verb)
        values = self._varying_values(call, own)
        if not values:
            return own
        schema = _closed(call.verb.params)
        for param, value in values.items():
            _add(schema, await self._resolved(call, param, value))
        return self._variant(call.verb, schema, values)

    def _own_contract(self, verb: Verb) -> Contract:
        if (contract := self._own.get(verb.name)) is None:
            enforced = _closed(verb.params) if verb.varies_with else verb.params
            contract = Contract(
                schema=verb.params,
                fingerprint=verb.fingerprint,
                validator=self._validator(verb, enforced),
                varied_by={},
                gated=verb.quotes_fingerprint,
            )
            self._own[verb.name] = contract
        return contract

    def _varying_values(self, call: Call, own: Contract) -> dict[str, str]:
        """The values that change the schema; one that does not fit its own parameter is left to validation."""
        values = {param: call.arguments.get(param) for param in call.verb.varies_with}
        return {
            param: value
            for param, value in values.items()
            if isinstance(value, str) and own.validator.fits({param: value}, param)
        }

    async def _resolved(self, call: Call, param: str, value: str) -> dict[str, Any]:
        backend = self._backends[call.verb.varies_with[param]]
        if not isinstance(backend, Resolver):
            raise ContractError(f"The backend for {param} of {call.verb.name} does not resolve values.")
        return await backend.params_for(param, value, call)

    def _variant(self, verb: Verb, schema: dict[str, Any], values: dict[str, str]) -> Contract:
        digits = fingerprint(schema)
        key = (verb.name, digits)
        validator = self._variants.get(key)
        if validator is None:
            validator = self._validator(verb, schema)
            self._check_variant(verb, schema, validator)
            self._variants[key] = validator
        self._variants.move_to_end(key)
        if len(self._variants) > _VARIANTS:
            self._variants.popitem(last=False)
        return Contract(schema, digits, validator, values)

    def _check_variant(self, verb: Verb, schema: dict[str, Any], validator: Validator) -> None:
        try:
            validator.compile()
        except ValueError:
            raise ContractError(f"A variant of {verb.name} is not a JSON Schema.") from None
        declared = verb.params.get("properties", {})
        further = {name: param for name, param in schema.get("properties", {}).items() if name not in declared}
        backend = self._backends[verb.run.backend]
        if isinstance(backend, Chooser) and (reason := backend.objection(verb, further)):
            raise ContractError(reason)

    def _validator(self, verb: Verb, schema: dict[str, Any]) -> Validator:
        names = self._registry.feedback == "names"
        return Validator(schema, names=names, refused=verb.refused, subject=ARGUMENTS, verb=verb.name)


def _closed(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "additionalProperties": False}


def _add(schema: dict[str, Any], more: Any) -> None:
    """Add parameters to a closed schema. Raises ContractError for whatever is more than that."""
    if not isinstance(more, dict) or not more.keys() <= {"properties", "required"}:
        raise ContractError("Further parameters are not an object with properties and required.")
    properties, required = more.get("properties", {}), more.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise ContractError("Further parameters have properties that are no object, or required that is no list.")
    declared = schema.get("properties", {})
    if not declared.keys().isdisjoint(properties):
        raise ContractError("Further parameters redefine a declared one.")
    schema["properties"] = {**declared, **properties}
    if not all(isinstance(name, str) and name in schema["properties"] for name in required):
        raise ContractError("Further parameters require what is not among them.")
    if names := list(dict.fromkeys([*schema.get("required", []), *required])):
        schema["required"] = names
