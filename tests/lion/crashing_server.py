"""lion-mcp that is killed at one write of its store: `crashing_server.py "before end"`.

Points are named `before <write>`, which is the last moment before a commit, and `after <write>`, the first one after it.
Runs under PYTHONPATH with the package in it, and serves like `python -m lion_mcp` until the point is reached.
"""

from __future__ import annotations

import importlib
import os
import runpy
import signal
import sys


def main() -> None:
    _, point = sys.argv
    store = importlib.import_module("lion_mcp._support.store")

    def fault(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    assert store.fault is None
    store.fault = fault  # type: ignore[attr-defined]
    sys.argv[1:] = []
    runpy.run_module("lion_mcp", run_name="__main__")


if __name__ == "__main__":
    main()
