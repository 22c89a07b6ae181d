"""Where `python -m compute_core` and the command `compute-core` begin."""

import sys

from .command import run


def main() -> None:
    """Run the command line of this process, and end it."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
