"""lithi-mcp from outside: HTTP in front, the service of `examples/compute_core` or a made-up one behind."""

import sys
from pathlib import Path

# The service is no installed package; it is imported as it lies there.
sys.path.append(str(Path(__file__).parents[2] / "examples" / "compute_core"))
