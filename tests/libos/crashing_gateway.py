"""libos-mcp that is killed at one write of its store: `crashing_gateway.py "before end" FILE WORDS...`.

Points are named `before <write>`, which is the last moment before a commit, and `after <write>`, the first one after it.
All that are reached are noted in the file, one a line. Runs under PYTHONPATH with the package in it, and is `libos-mcp`
with these words until the point is reached.
"""

from __future__ import annotations

import importlib
import os
import runpy
import signal
import sys


def main() -> None:
    _, point, noted, *words = sys.argv
    store = importlib.import_module("libos_mcp._support.store")
    assert store.fault is None

    def fault(reached: str) -> None:
        with open(noted, "a", encoding="utf-8") as file:
            file.write(reached + "\n")
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    store.fault = fault  # type: ignore[attr-defined]
    sys.argv[1:] = words
    runpy.run_module("libos_mcp", run_name="__main__")


if __name__ == "__main__":
    main()
