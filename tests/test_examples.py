"""The demonstrations run to their end, where they check what they show."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_quote_is_worked_through_before_a_real_service() -> None:
    paths = os.pathsep.join(str(ROOT / path) for path in ("examples/compute_core", "generated/lithi-mcp"))
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "lithi" / "demo.py")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "lithi.run (refused)" in done.stdout
    assert "approval_required" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("  the bytes of the result have the digest that was told: sha256:")
