"""Rules of verbs that are requests to a REST service."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..backends import HttpBackend
from ..parse import Parsed
from ..problems import Mark, Problem, quoted
from ..requests import METHODS, WITHOUT_BODY, places_of
from ..spec import Run, Verb
from .lookups import run_of

_TARGET = re.compile(rf"({'|'.join(METHODS)}) (/|(/(?!\.{{1,2}}(/|$))([A-Za-z0-9._~-]+|<[^<>/]+>))+)")
_SCALARS = frozenset({"string", "integer"})
OUR_HEADERS = frozenset(
    {"host", "content-length", "content-type", "idempotency-key", "connection", "transfer-encoding"}
)


@dataclass(frozen=True, slots=True)
class RequestVerb:
    """A verb run by an http backend."""

    name: str
    verb: Verb
    run: Run
    backend: HttpBackend
    target: str
    mark: Mark


def requests(parsed: Parsed) -> Iterator[RequestVerb]:
    """Every verb that is a request."""
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if found and verb.run and isinstance(backend := parsed.spec.backends[found[0]], HttpBackend):
            yield RequestVerb(name, verb, verb.run, backend, found[1], parsed.at("verbs", name, "run", found[0]))


def targets_are_requests(parsed: Parsed) -> Iterator[Problem]:
    for request in requests(parsed):
        if not _TARGET.fullmatch(request.target):
            sentence = f"the target {quoted(request.target)} must be a method and a path, such as GET /jobs/<id>"
            yield Problem(request.mark, sentence)
            continue
        places = places_of(request.target)
        for place in places:
            if place not in request.verb.params:
                yield Problem(request.mark, f"there is no parameter {quoted(place)} for the path")
            elif place not in request.verb.required:
                yield Problem(request.mark, f"{quoted(place)} stands in the path, so it must be required")
            elif not parsed.types.admitted(request.verb.params[place]) <= _SCALARS:
                yield Problem(request.mark, f"{quoted(place)} stands in the path, so it must be text or a whole number")


def services_are_addresses(parsed: Parsed) -> Iterator[Problem]:
    for name, backend in parsed.spec.backends.items():
        if not isinstance(backend, HttpBackend):
            continue
        mark = parsed.at("backends", name, "http")
        if not re.match(r"https?://[^/?#@]+|\$\{", backend.http) or re.search(r"[?#]|//[^/]*@", backend.http):
            yield Problem(mark, f"{quoted(backend.http)} must be an address such as https://api.example.org/v1")
        for header in backend.headers:
            at = parsed.key_at("backends", name, "headers", header)
            if header.lower() in OUR_HEADERS:
                yield Problem(at, f"the header {quoted(header)} is set by the server itself")
            elif header.lower() == "authorization" and backend.credentials:
                yield Problem(at, f"the header {quoted(header)} holds the key of the caller, which is forwarded")
        if backend.credentials and not (parsed.spec.access and parsed.spec.access.verify):
            at = parsed.key_at("backends", name, "credentials")
            yield Problem(at, '"credentials" has no effect without "verify": callers have no keys')


def requests_can_say_it(parsed: Parsed) -> Iterator[Problem]:
    for request in requests(parsed):
        if request.target.split()[0] not in WITHOUT_BODY:
            continue
        for parameter, node in request.verb.params.items():
            resolved = parsed.types.resolved(node)
            items = getattr(resolved, "items", None)
            inner = parsed.types.admitted(items) if "array" in parsed.types.admitted(node) else frozenset[str]()
            if parsed.types.admitted(node) & {"object", "null"} or inner & {"object", "array", "null"}:
                mark = parsed.key_at("verbs", request.name, "params", parameter)
                yield Problem(mark, f"{quoted(parameter)} can hold what no query can say")


def requests_take_what_is_declared(parsed: Parsed) -> Iterator[Problem]:
    for request in requests(parsed):
        if request.verb.varies_with:
            mark = parsed.key_at("verbs", request.name, "varies_with")
            yield Problem(mark, '"varies_with" has no effect on an http backend, which sends what is declared')


def members_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    for request in requests(parsed):
        owners: dict[str, str] = {}
        for parameter in request.verb.params:
            if parameter in places_of(request.target):
                continue
            member = request.run.as_.get(parameter, parameter)
            if member in owners:
                mark = parsed.key_at("verbs", request.name, "params", parameter)
                yield Problem(
                    mark, f"{quoted(parameter)} is sent as {quoted(member)}, and so is {quoted(owners[member])}"
                )
            owners.setdefault(member, parameter)


def renamings_have_an_effect(parsed: Parsed) -> Iterator[Problem]:
    for request in requests(parsed):
        for parameter, member in request.run.as_.items():
            mark = parsed.at("verbs", request.name, "run", "as", parameter)
            if parameter in places_of(request.target):
                yield Problem(mark, f'{quoted(parameter)} stands in the path, so "as" has no effect')
            elif member == parameter:
                yield Problem(mark, f'{quoted(parameter)} has that name already, so "as" has no effect')
