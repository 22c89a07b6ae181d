"""The part of a registry that says what its backends are, and how their replies are read."""

from typing import Any

from .backends import (
    CliBackend,
    GatewayBackend,
    HttpBackend,
    JobsBackend,
    McpBackend,
    PythonBackend,
    ReplyPointers,
    VersionQuestion,
    backend_kind,
)
from .parse import Parsed
from .source import native
from .upstreams import manifest_of

LOG = 256 << 20  # bytes of what one run prints
KEEP = 30 * 86400.0  # seconds that a run is kept after its end
GRACE = 10.0  # seconds between asking a run to stop and forcing it
SERVERS = 100  # upstream servers in one list


def backend_of(backend: object, parsed: Parsed, package: str) -> dict[str, Any]:
    """The entry of a backend; `package` is the import name of the server's package."""
    return {"kind": backend_kind(backend), **_settings(backend, parsed, package)}


def reply_of(reply: str | ReplyPointers) -> dict[str, Any]:
    """How replies are read: the name of a form, or pointers into JSON."""
    if isinstance(reply, str):
        return {"form": reply}
    error = reply.error
    return {
        "form": "pointers",
        "expect": {pointer: [native(value) for value in values] for pointer, values in reply.expect.items()},
        "ok": reply.ok,
        "result": reply.result,
        "error": error if error is None or isinstance(error, str) else error.model_dump(exclude_none=True),
    }


def _settings(backend: object, parsed: Parsed, package: str) -> dict[str, Any]:
    match backend:
        case PythonBackend():
            return {"handlers": backend.python.removesuffix(".py")}
        case JobsBackend():
            return _of_jobs(backend)
        case HttpBackend():
            return {"url": backend.http, "credentials": backend.credentials, "headers": dict(backend.headers)}
        case McpBackend():
            manifest = manifest_of(parsed, backend, backend.mcp, package)
            return {"env": list(backend.env), "manifest": manifest.data, "warm": backend.warm}
        case GatewayBackend():
            manifests = [manifest_of(parsed, backend, name, package).data for name in backend.gateway]
            return {"env": list(backend.env), "list": backend.limits.list or SERVERS, "manifests": manifests}
    assert isinstance(backend, CliBackend)  # noqa: S101 - no other kind is built
    return _of_command_line(backend)


def _of_jobs(backend: JobsBackend) -> dict[str, Any]:
    limits = backend.limits
    return {
        "command_line": backend.jobs,
        "hooks": backend.hooks,
        "limits": {"log": limits.log or LOG, "keep": limits.keep or KEEP, "grace": limits.grace or GRACE},
    }


def _of_command_line(backend: CliBackend) -> dict[str, Any]:
    return {
        "command": backend.cli,
        "args": list(backend.args),
        "env": list(backend.env),
        "fenced": list(backend.fenced),
        "version": _version(backend.version),
        "reply": reply_of(backend.reply),
    }


def _version(question: VersionQuestion | None) -> dict[str, Any] | None:
    if question is None:
        return None
    return {"ask": question.ask.split(), "at": question.at, "accept": list(question.accept)}
