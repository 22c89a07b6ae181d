"""The part of a registry that says how a server is served, who may call, and what they may do."""

from collections.abc import Mapping
from typing import Any

from .access import Asked, SubjectPolicy, Verify
from .spec import Http, Serve, Spec, Verb


def serving_of(serve: Serve | None) -> dict[str, Any]:
    """Protocols and transports; by default all protocols, over stdio, and over HTTP on loopback."""
    serve = serve or Serve()
    offers_all = serve.stdio is None and serve.http is None
    http = Http() if offers_all else serve.http
    return {
        "protocols": [*sorted(serve.protocols, reverse=True)],
        "stdio": offers_all or serve.stdio is not None,
        "http": None
        if http is None
        else {
            "host": http.host,
            "port": http.port,
            "path": http.path,
            "origins": list(http.origins),
            "hosts": list(http.hosts),
            "replies": http.replies,
        },
    }


def authority_of(http: Mapping[str, Any]) -> str:
    """Host and port as a URL has them."""
    host = f"[{http['host']}]" if ":" in http["host"] else http["host"]
    return f"{host}:{http['port']}"


def access_of(spec: Spec) -> dict[str, Any] | None:
    """Who may do what; None when everybody who can reach the server may do everything."""
    access = spec.access
    if access is None:
        return None
    return {
        "verify": None if access.verify is None else _verify(access.verify),
        "scopes": {scope: list(rights) for scope, rights in access.scopes.items()},
        "pin": pins_of(spec),
        "policy": None if access.policy is None else {name: _subject(rows) for name, rows in access.policy.items()},
    }


def pins_of(spec: Spec) -> dict[str, str]:
    """Arguments, at any depth, that must be what is known of the caller."""
    return {} if spec.access is None else dict(spec.access.pin)


def rights_of(name: str, verb: Verb, spec: Spec) -> list[str]:
    """The rights that a call of a verb needs; where rights are granted, one that names none needs its own."""
    granted = is_governed(spec) or (spec.access is not None and bool(spec.access.scopes))
    return list(verb.requires) if verb.requires is not None else [f"execute verb:{name}"] if granted else []


def is_governed(spec: Spec) -> bool:
    """Whether a policy decides what callers may do."""
    return spec.access is not None and spec.access.policy is not None


def _subject(policy: SubjectPolicy) -> dict[str, Any]:
    """The policy of one subject in the form that servers read, with nothing left out."""
    return {
        "allow": list(policy.allow),
        "ask": [
            {"right": row, "approver": "operator"} if isinstance(row, str) else row.model_dump() for row in policy.ask
        ],
        "deny": list(policy.deny),
        "budget": None if policy.budget is None else policy.budget.model_dump(),
    }


def _verify(verify: Verify) -> dict[str, Any]:
    if not isinstance(verify, Asked):
        return verify.model_dump(mode="json")
    (backend, target), *_ = verify.targets.items()
    pointers = {name: getattr(verify, name) for name in type(verify).model_fields}
    return {"backend": backend, "target": target.split(), **pointers}
