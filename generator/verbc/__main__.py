"""The command `verbc`, which is also `python -m verbc`."""

import gc
import sys


def main() -> int:
    """Run the command line. A spec becomes many small objects that all live to the end, so no garbage is looked for."""
    gc.disable()
    from .command import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
