"""Rules of how a server is served, who may call, and what they may do."""

import re
from collections.abc import Iterator

from ..access import Asked, Budget
from ..access_registry import rights_of, serving_of
from ..backends import HttpBackend, backend_kind
from ..operations import SPAWN
from ..parse import Parsed
from ..problems import Problem, nearest, quoted
from ..support.policy_entries import MOST_BYTES, MOST_CALLS, MOST_DAYS, MOST_SECONDS
from ..support.right_forms import form_problem
from .lookups import operation_verbs, run_of

_PLACE = re.compile(r"<([^<>]*)>")
_RIGHT = re.compile(r"(read|write|execute|admin) [a-z][a-z0-9_]*:\S+")


def revisions_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    serve = parsed.spec.serve
    for index, protocol in enumerate(serve.protocols if serve else ()):
        if serve and protocol in serve.protocols[:index]:
            mark = parsed.at("serve", "protocols", index)
            yield Problem(mark, f"{quoted(protocol)} stands in the list already")


def access_has_an_effect(parsed: Parsed) -> Iterator[Problem]:
    access = parsed.spec.access
    if access is None:
        return
    if not access.model_fields_set:
        yield Problem(parsed.key_at("access"), '"access" says nothing; take it out')
    if access.verify is None:
        for key in ("scopes", "pin"):
            if getattr(access, key):
                sentence = f'{quoted(key)} has no effect without "verify": nobody is known'
                yield Problem(parsed.key_at("access", key), sentence)
    elif serving_of(parsed.spec.serve)["http"] is None:
        yield Problem(parsed.key_at("access", "verify"), '"verify" has no effect, as nothing is served over HTTP')


def keys_are_asked_of_a_service(parsed: Parsed) -> Iterator[Problem]:
    verify = parsed.spec.access.verify if parsed.spec.access else None
    if not isinstance(verify, Asked):
        return
    backends = parsed.spec.backends
    services = [name for name, backend in backends.items() if isinstance(backend, HttpBackend)]
    mark = parsed.key_at("access", "verify")
    if len(verify.targets) != 1:
        yield Problem(mark, '"verify" must name one way: keys, introspect, jwt, or an http backend')
    for name, target in verify.targets.items():
        at = parsed.key_at("access", "verify", name)
        if name not in services:
            yield Problem(at, f"there is no http backend {quoted(name)}{nearest(name, services)}")
        elif not isinstance(target, str) or not re.fullmatch(r"GET (/[A-Za-z0-9._~-]+)+", target):
            yield Problem(at, f"{quoted(name)} must be asked with GET and a path, such as GET /key")


def rights_are_rights(parsed: Parsed) -> Iterator[Problem]:
    operating = {name for name, _, _ in operation_verbs(parsed)}
    for name, verb in parsed.spec.verbs.items():
        if verb.requires == () and name not in operating:
            sentence = '"requires" must not be empty; only an operation can leave the rights to its plan'
            yield Problem(parsed.key_at("verbs", name, "requires"), sentence)
        for index, right in enumerate(verb.requires or ()):
            mark = parsed.at("verbs", name, "requires", index)
            if not _RIGHT.fullmatch(right):
                sentence = f"{quoted(right)} is no right; write read, write, execute or admin, then a kind and an id"
                yield Problem(mark, f"{sentence}, such as read job:42")
                continue
            for parameter in _PLACE.findall(right):
                if parameter not in verb.required or parsed.types.admitted(verb.params[parameter]) != {"string"}:
                    yield Problem(mark, f"{quoted(f'<{parameter}>')} must be a required string parameter")


def policies_are_sound(parsed: Parsed) -> Iterator[Problem]:
    policy = (parsed.spec.access.policy if parsed.spec.access else None) or {}
    for subject, rows in policy.items():
        path = ("access", "policy", subject)
        asked = [row if isinstance(row, str) else row.right for row in rows.ask]
        for key, rights in (("allow", list(rows.allow)), ("ask", asked), ("deny", list(rows.deny))):
            for index, right in enumerate(rights):
                mark = parsed.at(*path, key, index)
                if right in rights[:index]:
                    yield Problem(mark, f"{quoted(right)} stands in the list already")
                elif "*" in right.removesuffix(":*"):
                    yield Problem(mark, f'{quoted(right)} must have its "*" at the end, after a colon')
                elif (problem := form_problem(right)) is not None:
                    yield Problem(mark, f"{quoted(right)} {problem}")
        if rows.budget:
            yield from _budget_is_sound(parsed, (*path, "budget"), rows.budget)


def _budget_is_sound(parsed: Parsed, path: tuple[str, ...], budget: Budget) -> Iterator[Problem]:
    if budget.calls is None and budget.bytes is None:
        yield Problem(parsed.key_at(*path), '"budget" limits nothing; give it "calls" or "bytes"')
    for key, value, most, told in (
        ("calls", budget.calls, MOST_CALLS, str(MOST_CALLS)),
        ("bytes", budget.bytes, MOST_BYTES, str(MOST_BYTES)),
        ("per", budget.per, MOST_SECONDS, f"{MOST_DAYS}d"),
    ):
        if value is not None and value > most:
            yield Problem(parsed.at(*path, key), f'"{key}" must be at most {told}')


def scopes_grant_something(parsed: Parsed) -> Iterator[Problem]:
    spec = parsed.spec
    # What only plans know cannot be compared.
    if any(operation.plan for _, _, operation in operation_verbs(parsed)):
        return
    wanted = [right for name, verb in spec.verbs.items() for right in rights_of(name, verb, spec)]
    for scope, rights in (spec.access.scopes if spec.access else {}).items():
        for index, right in enumerate(rights):
            mark = parsed.at("access", "scopes", scope, index)
            if right in rights[:index]:
                yield Problem(mark, f"{quoted(right)} stands in the list already")
            elif not any(_reaches(right, need) for need in wanted):
                yield Problem(mark, f"no verb needs {quoted(right)}")


def _reaches(granted: str, needed: str) -> bool:
    """Whether a grant could be what a verb needs, for some values of its parameters."""
    if granted.endswith(":*"):
        return needed.startswith(granted[:-1])
    literal = [re.escape(part) for part in _PLACE.split(needed)[::2]]
    return re.fullmatch(".+".join(literal), granted) is not None


def something_is_served(parsed: Parsed) -> Iterator[Problem]:
    serve = parsed.spec.serve
    if serve is not None and not serve.model_fields_set:
        yield Problem(parsed.key_at("serve"), '"serve" offers nothing; write `stdio: {}` in it, or take it out')


def idempotency_has_an_effect(parsed: Parsed) -> Iterator[Problem]:
    """Keys are for what starts something: a run in the background, or a request that changes a service."""
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if not found or verb.idempotent not in ("key", "derived"):
            continue
        backend = parsed.spec.backends[found[0]]
        mark = parsed.at("verbs", name, "idempotent")
        changes = isinstance(backend, HttpBackend) and not found[1].startswith("GET ")
        if not changes and not _spawns(parsed, found):
            yield Problem(mark, f"{quoted(str(verb.idempotent))} has no effect here; nothing takes an idempotency key")
        elif verb.idempotent == "derived" and not changes:
            yield Problem(mark, '"derived" is for http verbs; a run in the background has its key anyway')


def _spawns(parsed: Parsed, found: tuple[str, str]) -> bool:
    return backend_kind(parsed.spec.backends[found[0]]) == "jobs" and found[1].startswith(f"{SPAWN} ")
