"""Judges that others wrote, before the generated servers as they are installed."""

import sys
from pathlib import Path

# The service behind lithi is no installed package; it is imported as it lies there.
sys.path.append(str(Path(__file__).parents[2] / "examples" / "compute_core"))
