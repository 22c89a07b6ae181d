"""The command line of a generated server: serve over stdio or HTTP, print the catalog, or say which version this is."""

from __future__ import annotations

import gc
import hashlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from .call import LOCAL, Caller
from .command_options import KEYS, is_over_http, is_verified, misused, parser_of, served
from .registry import Registry, load

_SUPPORT = Path(__file__).parent
_PACKAGE = _SUPPORT.parent
# What a shell gives for a program that SIGPIPE has ended.
_BROKEN_PIPE = 128 + 13


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server that this package is, and return its exit code.

    The package has the registry in `registry.json`, and `create_server(surface=..., caller=...)` in its module `server`,
    which takes `state=...` as well when the server keeps something.
    """
    registry = load(_PACKAGE / "registry.json")
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == [KEYS] and registry.serve.http is not None:
        return int(_support("keys_command").main(words[1:], registry))
    parser = parser_of(registry)
    options = parser.parse_args(words)
    if problem := misused(registry, options):
        parser.error(problem)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not know every character
    if options.version:
        return _printed(_version(registry), registry)
    if options.command == "verbs":
        return _printed(_verbs(registry), registry)
    if is_over_http(registry, options):
        return _serve_http(registry, options)
    _serve_stdio(registry, options)
    return 0


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
    rows = [("verb", "effect", "summary"), *available, *unavailable]
    name_width, effect_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [f"{name:{name_width}}  {effect:{effect_width}}  {text}".rstrip() for name, effect, text in rows]


def _printed(lines: Sequence[str], registry: Registry) -> int:
    """Print lines, and return the exit code: that of a broken pipe where the reader has gone, 1 where nothing fits."""
    try:
        print("\n".join(lines), flush=True)  # noqa: T201
    except OSError as error:
        # What is left in the buffer would fail once more at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return _BROKEN_PIPE
        print(f"{registry.server.distribution}: cannot print: {error.strerror}.", file=sys.stderr)  # noqa: T201
        return 1
    return 0


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
        print(f"{registry.server.distribution}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return code


def _callers(registry: Registry, options: Namespace) -> Any:
    """How it is told who calls over HTTP. Raises StartError."""
    http_callers = _support("http_callers")
    if not is_verified(registry, options):
        return http_callers.anybody(_caller(options))
    return http_callers.with_keys(_support("verifying").verifier_of(registry, options.verify))


def _support(name: str) -> Any:
    """A module beside this one. A package that is not served over HTTP can do without those that are named this way."""
    return import_module(f"{__package__}.{name}")


def _builder(registry: Registry, options: Namespace) -> Callable[[], Any]:
    """What builds the server of this package. Its modules are imported now, and whatever it opens is opened then."""
    create_server = import_module(f"{registry.server.package}.server").create_server
    given = {name: value for name, value in vars(options).items() if name in ("surface", "state")}
    if options.subject is not None:
        given["caller"] = _caller(options)
    return lambda: create_server(**given)


def _caller(options: Namespace) -> Caller:
    """Who calls where nobody else tells."""
    return LOCAL if options.subject is None else Caller(options.subject)


if __name__ == "__main__":
    sys.exit(main())
