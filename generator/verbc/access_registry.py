"""The part of a registry that says how a server is served, who may call, and what they may do."""

from collections.abc import Mapping
from typing import Any

from .access import Asked, Verify
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
    }


def pins_of(spec: Spec) -> dict[str, str]:
    """Arguments, at any depth, that must be what is known of the caller."""
    return {} if spec.access is None else dict(spec.access.pin)


def rights_of(name: str, verb: Verb, spec: Spec) -> list[str]:
    """The rights that a call of a verb needs; where rights are granted, one that names none needs its own."""
    granted = spec.access is not None and bool(spec.access.scopes or spec.access.policy)
    return list(verb.requires) if verb.requires is not None else [f"execute verb:{name}"] if granted else []


def _verify(verify: Verify) -> dict[str, Any]:
    if not isinstance(verify, Asked):
        return verify.model_dump(mode="json")
    (backend, target), *_ = verify.targets.items()
    pointers = {name: getattr(verify, name) for name in type(verify).model_fields}
    return {"backend": backend, "target": target.split(), **pointers}
