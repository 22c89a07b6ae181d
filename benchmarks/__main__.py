"""Runs all benchmarks."""

import sys

from . import calls, generate, http, jobs, start
from .command import main

sys.exit(main({module.measure: module.ROUNDS for module in (generate, start, calls, http, jobs)}))
