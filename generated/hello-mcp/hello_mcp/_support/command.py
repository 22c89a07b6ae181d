"""The command line of a generated server: serve over stdio or HTTP, print the catalog, or say which version this is."""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from .call import LOCAL, Caller
from .registry import HttpServe, Registry, load

_SUPPORT = Path(__file__).parent
_PACKAGE = _SUPPORT.parent
# Backends that keep something which outlives the server.
_KEEPING_STATE = frozenset({"jobs"})
# Options that say nothing about a server over stdio.
_OF_HTTP = ("host", "port", "workers", "verify")
# What a shell gives for a program that SIGPIPE has ended.
_BROKEN_PIPE = 128 + 13


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server that this package is, and return its exit code.

    The package has the registry in `registry.json`, and `create_server(surface=..., caller=...)` in its module `server`,
    which takes `state=...` as well when the server keeps something.
    """
    registry = load(_PACKAGE / "registry.json")
    parser = _parser(registry)
    options = parser.parse_args(arguments)
    if problem := _misused(registry, options):
        parser.error(problem)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not know every character
    if options.version:
        return _printed(_version(registry), registry)
    if options.command == "verbs":
        return _printed(_verbs(registry), registry)
    if _over_http(registry, options):
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


def _parser(registry: Registry) -> ArgumentParser:
    identity = registry.server
    parser = ArgumentParser(
        prog=identity.distribution,
        description=f"{_escaped(identity.summary)} Without a command: {_what_it_serves(registry)}.",
        allow_abbrev=False,
    )
    parser.add_argument("command", nargs="?", choices=["verbs"], help="verbs: print the catalog")
    parser.add_argument("--surface", choices=["tools", "request"], help=f"default: {registry.surface}")
    if any(backend["kind"] in _KEEPING_STATE for backend in registry.backends.values()):
        place = f"by default {identity.distribution} in $XDG_STATE_HOME"
        parser.add_argument("--state", type=Path, metavar="DIR", help=f"folder that the server keeps; {place}")
    parser.add_argument(
        "--as", dest="subject", metavar="NAME", help="who calls, where nothing checks it; default: local"
    )
    if registry.serve.http is not None:
        _add_http_options(parser, registry.serve.http)
    parser.add_argument("--version", action="store_true", help="print the version and the digests, and exit")
    return parser


def _what_it_serves(registry: Registry) -> str:
    if not registry.serve.stdio:
        return "serve MCP clients over HTTP"
    over_http = "; with --http, any number of them over HTTP" if registry.serve.http is not None else ""
    return f"serve one MCP client over stdin and stdout{over_http}"


def _add_http_options(parser: ArgumentParser, http: HttpServe) -> None:
    options = parser.add_argument_group("over HTTP")
    options.add_argument("--http", action="store_true", help="serve over HTTP")
    options.add_argument("--host", help=f"name or address to listen on; default: {_escaped(http.host)}")
    options.add_argument("--port", type=_port, help=f"default: {http.port}; 0: one that is free, which the log tells")
    options.add_argument("--workers", type=_workers, metavar="N", help="processes that serve; default: 1")
    options.add_argument(
        "--verify", metavar="WAY", help="how it is checked who calls, instead of the way that is built in"
    )


def _port(text: str) -> int:
    return _number(text, 0, 65535)


def _workers(text: str) -> int:
    return _number(text, 1, 64)


def _number(text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"it has to be a number from {least} to {most}")
    return int(text)


def _over_http(registry: Registry, options: Namespace) -> bool:
    """Whether clients come over HTTP: where nothing else is offered, that need not be said."""
    return registry.serve.http is not None and (options.http or not registry.serve.stdio)


def _misused(registry: Registry, options: Namespace) -> str | None:
    """What is wrong with options that are right each for itself."""
    if options.subject is not None and not (options.subject.isprintable() and options.subject.strip()):
        return "--as needs a name that can be printed."
    if _over_http(registry, options):
        verified = options.verify is not None or bool((registry.access or {}).get("verify"))
        return "--as is for servers that don't check who calls." if verified and options.subject is not None else None
    of_http = [name for name in _OF_HTTP if getattr(options, name, None) is not None]
    return f"--{of_http[0]} goes with --http." if of_http else None


def _escaped(text: str) -> str:
    """`text` in a form that argparse, which fills in percent signs, shows as it is."""
    return text.replace("%", "%%")


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

    from .serve_stdio import serve

    server = _builder(registry, options)()
    gc.enable()
    gc.freeze()
    with asyncio.Runner() as runner:
        runner.run(serve(server, claimed, registry.limits.body))
        _leave()


def _serve_http(registry: Registry, options: Namespace) -> int:
    from . import log

    log.configure()
    gc.disable()
    # By its name, so that a package which is not served over HTTP can do without it.
    serve_http, http_callers, http_sockets = (
        import_module(f"{__package__}.{name}") for name in ("serve_http", "http_callers", "http_sockets")
    )
    http = registry.serve.http
    assert http is not None  # noqa: S101
    told = {name: getattr(options, name) for name in ("host", "port") if getattr(options, name) is not None}
    serving = serve_http.Serving(
        registry=registry,
        http=replace(http, **told),
        server=_builder(registry, options),
        callers=http_callers.anybody(_caller(options)),
        workers=options.workers or 1,
    )
    gc.enable()
    gc.freeze()
    try:
        code: int = serve_http.serve(serving)
    except http_sockets.StartError as error:
        print(f"{registry.server.distribution}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    _leave(code)
    return code


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


def _leave(code: int = 0) -> None:
    """End the process at once if threads are left: a handler's thread cannot be cancelled, and the client is gone."""
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
