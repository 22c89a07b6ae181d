"""The package `sample_mcp`, served over HTTP by processes of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.warm_starts import start

from .http_servers import RawConnection, Reply, post
from .raw_server import PATIENCE

HANDLERS = '''
import asyncio
import os
from pathlib import Path


class Handlers:
    async def item_names(self, call):
        return [call.caller.subject, str(os.getpid())]

    async def free(self, call):
        """Runs until somebody lets it go on."""
        gate = Path(os.environ["GATE"])
        gate.with_suffix(".started").write_text("")
        await asyncio.to_thread(gate.read_text)  # of a pipe, which has an end once it has been opened and closed
        return {}

    async def spawn(self, params, call):
        """Blocks a thread, which nothing can cancel."""
        Path(os.environ["GATE"]).with_suffix(".started").write_text("")
        await asyncio.to_thread(Path(os.environ["GATE"]).read_text)
'''


def varied(package: Path, folder: Path, data: dict[str, Any], handlers: str = HANDLERS) -> Path:
    """A folder with the package, with another registry and other handlers."""
    shutil.copytree(package / "sample_mcp", folder / "sample_mcp", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "sample_mcp" / "registry.json").write_text(json.dumps(data), encoding="utf-8")
    (folder / "sample_mcp" / "handlers.py").write_text(handlers, encoding="utf-8")
    return folder


class HttpProcess:
    """A server that has started; its log, and what it prints, are read by whoever wants them."""

    def __init__(self, package: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = start(
            ["-m", "sample_mcp", "--port", "0", *arguments],
            cwd=package,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert self.process.stderr is not None
        self.log = self.process.stderr
        self.started = json.loads(self.log.readline())

    @property
    def url(self) -> str:
        (url,) = self.started["urls"]
        return str(url)

    @property
    def port(self) -> int:
        return int(self.url.removesuffix("/mcp").rpartition(":")[2])

    def connect(self) -> RawConnection:
        return RawConnection(self.port)

    def post(self, message: Any, *lines: str, **how: Any) -> Reply:
        with self.connect() as connection:
            return connection.exchange(post(message, *lines, **how))

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def tell_all(self, number: signal.Signals) -> None:
        """Tell all of its processes, as a terminal or a supervisor does."""
        os.killpg(self.process.pid, number)

    def ended(self) -> tuple[int, str, str]:
        """The exit code, all that is on stdout, and what is left of the log, once every process of it is gone."""
        out, log = self.process.communicate(timeout=PATIENCE)
        return self.process.wait(), out, log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)
