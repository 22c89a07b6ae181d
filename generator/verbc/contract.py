"""Spec → registry: the compiled contract, whole, with its fingerprints and digests."""

from collections.abc import Mapping
from typing import Any

from .access_registry import access_of, pins_of, rights_of, serving_of
from .backend_registry import backend_of, reply_of
from .backends import (
    CallLimits,
    CliBackend,
    HttpBackend,
    JobsBackend,
    McpBackend,
    Reply,
    backend_kind,
)
from .names import function_name, module_name
from .operations import KEYS, KINDS, SPAWN, Operation, operations
from .parse import Parsed
from .schemas import Types
from .spec import CONTENT, Example, Verb
from .support.fingerprint import digest, fingerprint
from .support.refusal import BUILT_IN_KINDS

TIMEOUT = 60.0  # seconds
OUTPUT = 1 << 20  # bytes
CONCURRENCY = 32  # calls at one time

HINTS = {  # effect → read-only, destructive, idempotent
    "read": (True, False, True),
    "add": (False, False, False),
    "write": (False, True, False),
    "delete": (False, True, True),
}
# What callers and approvers rely on; the contract digest is over these.
RELIED_ON = [
    "name",
    "summary",
    "description",
    "effect",
    "hints",
    "params",
    "result",
    "refused",
    "requires",
    "plan",
    "fingerprint_required",
    "idempotent",
    "varies_with",
    "unavailable",
]


def registry_of(parsed: Parsed) -> dict[str, Any]:
    """The registry of a spec; its shape is told in `docs/generated-code.md`."""
    spec = parsed.spec
    server, limits, package = spec.server, spec.limits, package_of(parsed)
    backends = {name: backend_of(backend, parsed, package) for name, backend in spec.backends.items()}
    registry: dict[str, Any] = {
        "verbc": 1,
        "server": {
            "name": server.name,
            "version": server.version,
            "title": server.title,
            "summary": server.summary,
            "instructions": server.instructions,
            "package": package,
            "distribution": package.replace("_", "-"),
        },
        "surface": spec.surface,
        "feedback": spec.feedback,
        "serve": serving_of(spec.serve),
        "access": access_of(spec),
        "limits": {
            "body": limits.body,
            "ops": limits.ops,
            "timeout": limits.timeout or TIMEOUT,
            "output": limits.output or OUTPUT,
            "concurrency": limits.concurrency or CONCURRENCY,
        },
        "kinds": {**BUILT_IN_KINDS, **spec.kinds},
        "synonyms": {"removed_after": spec.synonyms.removed_after, "verbs": dict(spec.synonyms.verbs)},
        "backends": backends,
        "verbs": [_verb(name, verb, parsed, backends) for name, verb in _in_order(spec.verbs)],
    }
    return {**registry, "digest": digest(registry)}


def package_of(parsed: Parsed) -> str:
    """The import name of a server's package."""
    server = parsed.spec.server
    return server.package or f"{server.name.replace('-', '_')}_mcp"


def backend_and_target(verb: Verb) -> tuple[str, str]:
    """The backend that runs a whole verb, and what it runs."""
    assert verb.run is not None  # noqa: S101 - the rules saw to it
    return next(iter(verb.run.targets.items()))


def operation_of(verb: Verb, parsed: Parsed) -> Operation | None:
    """The operation that a whole verb runs; None when its backend has none."""
    backend, target = backend_and_target(verb)
    kind = backend_kind(parsed.spec.backends[backend])
    return operations(kind)[target.partition(" ")[0]] if kind in KINDS else None


def is_spawn(verb: Verb, parsed: Parsed) -> bool:
    """Whether a whole verb starts a command line in the background."""
    backend, target = backend_and_target(verb)
    return isinstance(parsed.spec.backends[backend], JobsBackend) and target.partition(" ")[0] == SPAWN


def _in_order(verbs: Mapping[str, Verb]) -> list[tuple[str, Verb]]:
    """As the spec has them, the unavailable ones last."""
    return sorted(verbs.items(), key=lambda item: item[1].unavailable is not None)


def _verb(name: str, verb: Verb, parsed: Parsed, backends: Mapping[str, Any]) -> dict[str, Any]:
    backend_name, target = backend_and_target(verb)
    backend, types, operation = parsed.spec.backends[backend_name], parsed.types, operation_of(verb, parsed)
    params = types.params(verb.params, verb.required, opened=bool(verb.varies_with))
    effect = verb.effect or "write"
    entry: dict[str, Any] = {
        "name": name,
        "summary": verb.summary,
        "description": verb.description.strip() if verb.description else None,
        "effect": effect,
        "hints": _hints(
            effect,
            verb,
            open_world=operation.open if operation else isinstance(backend, CliBackend | HttpBackend | McpBackend),
        ),
        "params": params,
        "result": None if verb.declared is None else types.advertised(verb.declared),
        "fingerprint": fingerprint(params),
        "fingerprint_required": verb.fingerprint == "required",
        "idempotent": verb.idempotent if verb.idempotent in KEYS else None,
        "required_unenforced": _unenforced(verb, types),
        "varies_with": dict(verb.varies_with),
        "refused": dict(verb.refused),
        "unavailable": verb.unavailable,
        "requires": rights_of(name, verb, parsed.spec),
        "plan": operation.plan if operation else None,
        "limits": _limits(name, verb, backend_name, parsed, waits=operation is not None and operation.waits),
        "examples": [_example(example, verb, types) for example in verb.examples],
        "run": _run(name, verb, backend_name, target, parsed),
    }
    relied_on = {key: entry[key] for key in RELIED_ON}
    run: dict[str, Any] = {"pin": pins_of(parsed.spec), "backend": backend_kind(backend), "target": target.split()}
    if isinstance(backend, McpBackend):
        run["registration"] = digest(backends[backend_name]["manifest"])
    return {**entry, "digest": digest({**relied_on, **run})}


def _hints(effect: str, verb: Verb, *, open_world: bool) -> dict[str, bool]:
    read_only, destructive, idempotent = HINTS[effect]
    return {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent or verb.idempotent in (True, "derived"),
        "openWorldHint": open_world,
    }


def _unenforced(verb: Verb, types: Types) -> list[str]:
    positional = verb.run.positional if verb.run else ()
    return [name for name in positional if name not in verb.required and types.admitted(verb.params[name]) == {"array"}]


def _limits(name: str, verb: Verb, backend: str, parsed: Parsed, *, waits: bool) -> dict[str, Any]:
    spec = parsed.spec
    scopes: list[tuple[str, CallLimits]] = [
        (name, verb.limits),
        (f"<{backend}>", spec.backends[backend].limits),
        ("", spec.limits),
    ]
    timeout = next((limits.timeout for _, limits in scopes if limits.timeout), TIMEOUT)
    output = next((limits.output for _, limits in scopes if limits.output), OUTPUT)
    pool, concurrency = next(
        ((scope, limits.concurrency) for scope, limits in scopes if limits.concurrency), ("", CONCURRENCY)
    )
    # A call that only waits holds no place that one that works could have.
    return {"timeout": timeout, "output": output, "concurrency": None if waits else concurrency, "pool": pool}


def _example(example: Example, verb: Verb, types: Types) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "args": {name: types.data(value, verb.params.get(name)) for name, value in example.args.items()}
    }
    if "result" in example.model_fields_set:
        entry["result"] = types.data(example.result, verb.declared)
    if example.refusal:
        entry["refusal"] = example.refusal
    return entry


def _run(name: str, verb: Verb, backend_name: str, target: str, parsed: Parsed) -> dict[str, Any]:
    backend = parsed.spec.backends[backend_name]
    reply: Reply | str = CONTENT if verb.result == CONTENT else "json"
    refusals: dict[str, str] = {}
    if isinstance(backend, CliBackend | HttpBackend) and verb.run:
        reply = verb.run.reply or backend.reply
        refusals = dict(sorted({**backend.refusals, **verb.run.refusals}.items(), key=lambda item: int(item[0])))
    return {
        "backend": backend_name,
        "target": target.split(),
        "reply": reply_of(reply),
        "refusals": refusals,
        "module": module_name(name),
        "function": function_name(name),
    }
