"""Runs all benchmarks."""

import sys

from . import calls, gateway, generate, http, jobs, start
from .command import main

sys.exit(main({module.measure: module.ROUNDS for module in (generate, start, calls, http, jobs, gateway)}))
