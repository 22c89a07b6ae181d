"""The command line of a generated server: serve over stdio, print the catalog, or say which version this is."""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import sys
import threading
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from .registry import Registry, load

_SUPPORT = Path(__file__).parent
_PACKAGE = _SUPPORT.parent
# Backends that keep something which outlives the server.
_KEEPING_STATE = frozenset({"jobs"})
# What a shell gives for a program that SIGPIPE has ended.
_BROKEN_PIPE = 128 + 13


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server that this package is, and return its exit code.

    The package has the registry in `registry.json`, and `create_server(surface=...)` in its module `server`, which takes
    `state=...` as well when the server keeps something.
    """
    registry = load(_PACKAGE / "registry.json")
    options = _parser(registry).parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not know every character
    if options.version:
        return _printed(_version(registry), registry)
    if options.command == "verbs":
        return _printed(_verbs(registry), registry)
    _serve(registry, {name: value for name, value in vars(options).items() if name in ("surface", "state")})
    return 0


def support_digest(folder: Path = _SUPPORT) -> str:
    """SHA-256 over the names and bytes of the modules in `folder`, sorted by name."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _parser(registry: Registry) -> argparse.ArgumentParser:
    identity = registry.server
    parser = argparse.ArgumentParser(
        prog=identity.distribution,
        description=f"{_escaped(identity.summary)} Without a command: serve one MCP client over stdin and stdout.",
        allow_abbrev=False,
    )
    parser.add_argument("command", nargs="?", choices=["verbs"], help="verbs: print the catalog")
    parser.add_argument("--surface", choices=["tools", "request"], help=f"default: {registry.surface}")
    if any(backend["kind"] in _KEEPING_STATE for backend in registry.backends.values()):
        place = f"by default {identity.distribution} in $XDG_STATE_HOME"
        parser.add_argument("--state", type=Path, metavar="DIR", help=f"folder that the server keeps; {place}")
    parser.add_argument("--version", action="store_true", help="print the version and the digests, and exit")
    return parser


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


def _serve(registry: Registry, options: dict[str, Any]) -> None:
    from . import log, wire

    log.configure()
    claimed = wire.claim()
    # Nothing that is imported here goes away again, so looking for garbage in it is only lost time.
    gc.disable()
    import asyncio
    from importlib import import_module

    from .serve_stdio import serve

    server = import_module(f"{registry.server.package}.server").create_server(**options)
    gc.enable()
    gc.freeze()
    with asyncio.Runner() as runner:
        runner.run(serve(server, claimed, registry.limits.body))
        _leave()


def _leave() -> None:
    """End the process at once if threads are left: a handler's thread cannot be cancelled, and the client is gone."""
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
