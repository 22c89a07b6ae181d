"""The command line of a generated server: serve over stdio or HTTP, print the catalog, or say which version this is."""

from __future__ import annotations

import gc
import hashlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .call import LOCAL, Caller
from .command_options import KEYS, is_governed, is_over_http, is_verified, misused, operating, parser_of, served
from .printing import failed, prepare_stdout, printed, table
from .registry import Registry, load

_SUPPORT = Path(__file__).parent
_PACKAGE = _SUPPORT.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server that this package is, and return its exit code.

    The package has the registry in `registry.json`, and `create_server(surface=..., caller=...)` in its module `server`,
    which takes `state=...` as well when the server keeps something, `store=...` and `policy=...` when a policy governs it.
    """
    registry = load(_PACKAGE / "registry.json")
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == [KEYS] and registry.serve.http is not None:
        return int(_support("keys_command").main(words[1:], registry))
    operator = bool(words) and words[0] in operating(registry)
    if is_governed(registry) and (operator or not _runs_jobs(registry)):
        _support("own_memory").keep_to_itself()  # with the keys in it
    if operator:
        return int(_support("operator_command").main(words, registry))
    parser = parser_of(registry)
    options = parser.parse_args(words)
    if problem := misused(registry, options):
        parser.error(problem)
    prepare_stdout()
    if options.version:
        return printed(_version(registry), registry.server.distribution)
    if options.command == "verbs":
        return printed(_verbs(registry), registry.server.distribution)
    if is_governed(registry) and (problem := _misgoverned(registry, options)):
        return failed(registry.server.distribution, problem)
    if is_over_http(registry, options):
        return _serve_http(registry, options)
    _serve_stdio(registry, options)
    return 0


def _runs_jobs(registry: Registry) -> bool:
    """Whether other servers of this user look for the processes of runs, among which this one then may not hide."""
    return any(backend["kind"] == "jobs" for backend in registry.backends.values())


def support_digest(folder: Path = _SUPPORT) -> str:
    """SHA-256 over the names and bytes of the modules in `folder`, sorted by name."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _version(registry: Registry) -> list[str]:
    identity = registry.server
    return [
        f"{identity.distribution} {identity.version}",
        f"registry {registry.digest}",
        f"support {support_digest()}",
    ]


def _verbs(registry: Registry) -> list[str]:
    """The catalog as a table: name, effect, summary; then what is unavailable, and why."""
    available = [(verb.name, verb.effect, verb.summary) for verb in registry.available]
    unavailable = [(verb.name, "unavailable", verb.unavailable or "") for verb in registry.unavailable]
    return table([("verb", "effect", "summary"), *available, *unavailable])


def _misgoverned(registry: Registry, options: Namespace) -> str | None:
    """What is wrong with the policy, or with the keys that seal what clients carry; told before anything is served."""
    policy_file, request_state = _support("policy_file"), _support("request_state")
    try:
        if options.policy is not None:
            policy_file.read_policy(options.policy)
        request_state.state_keys(registry.server.package, os.environ)
    except (policy_file.PolicyFileError, request_state.StateKeysError) as error:
        return str(error)
    return None


def _serve_stdio(registry: Registry, options: Namespace) -> None:
    from . import log, wire

    log.configure()
    claimed = wire.claim()
    # Nothing that is imported here goes away again, so looking for garbage in it is only lost time.
    gc.disable()
    import asyncio

    from .leaving import leave
    from .serve_stdio import serve

    server = _builder(registry, options)()
    gc.enable()
    gc.freeze()
    with asyncio.Runner() as runner:
        runner.run(serve(server, claimed, registry.limits.body))
        leave()


def _serve_http(registry: Registry, options: Namespace) -> int:
    from . import log

    log.configure()
    gc.disable()
    serve_http, http_sockets = _support("serve_http"), _support("http_sockets")
    http = registry.serve.http
    assert http is not None  # noqa: S101
    try:
        serving = serve_http.Serving(
            registry=registry,
            http=served(http, options),
            server=_builder(registry, options),
            callers=_callers(registry, options),
            workers=options.workers or 1,
        )
        gc.enable()
        gc.freeze()
        code: int = serve_http.serve(serving)
    except http_sockets.StartError as error:
        return failed(registry.server.distribution, str(error))
    return code


def _callers(registry: Registry, options: Namespace) -> Any:
    """How it is told who calls over HTTP. Raises StartError."""
    http_callers = _support("http_callers")
    if not is_verified(registry, options):
        return http_callers.anybody(_caller(options))
    return http_callers.with_keys(_support("verifying").verifier_of(registry, options.verify))


def _support(name: str) -> Any:
    """A module beside this one, by its name: packages that have no use for it, of HTTP or of a policy, do without it."""
    return import_module(f"{__package__}.{name}")


def _builder(registry: Registry, options: Namespace) -> Callable[[], Any]:
    """What builds the server of this package. Its modules are imported now, and whatever it opens is opened then."""
    create_server = import_module(f"{registry.server.package}.server").create_server
    given = {name: value for name, value in vars(options).items() if name in ("surface", "state", "store", "policy")}
    if options.subject is not None:
        given["caller"] = _caller(options)
    return lambda: create_server(**given)


def _caller(options: Namespace) -> Caller:
    """Who calls where nobody else tells."""
    return LOCAL if options.subject is None else Caller(options.subject)


if __name__ == "__main__":
    sys.exit(main())
