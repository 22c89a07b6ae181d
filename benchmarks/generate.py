"""How long compiling 1,000 verbs takes, beside a generator that makes only the models of their parameters."""

import shutil
import sys
from pathlib import Path
from typing import Final

from .catalog import VERBS, write_definitions, write_spec
from .command import main, turns
from .places import MODELS_PEER, OWN, ROOT, compile_bytecode, environment, require
from .processes import Cost, run
from .report import MEBIBYTES, SECONDS, TIMES, Target, itself, quotient, table, title

ROUNDS: Final = 3
OURS: Final = "verbc generate"
CHECK: Final = "verbc check"
CHECK_ANEW: Final = "verbc check, nothing remembered"
THEIRS: Final = "datamodel-codegen"
TARGETS: Final = (
    Target(OURS, (OURS,), itself, SECONDS, most=2.0),
    Target(f"{THEIRS} / {OURS}", (THEIRS, OURS), quotient, TIMES, least=2.0),
    Target(f"{CHECK} / {OURS}", (CHECK, OURS), quotient, TIMES, most=0.6),
)
MEMORY_TARGET: Final = Target(f"{OURS}, memory", (OURS,), itself, MEBIBYTES, most=150 * 2**20)
# The fastest of what was tried: no formatter, and literals in place of a class for each enum.
_SETTINGS: Final = (
    "--input-file-type=jsonschema",
    "--output-model-type=pydantic_v2.BaseModel",
    "--no-formatters",
    "--enum-field-as-literal=all",
    "--skip-root-model",
    "--disable-timestamp",
    "--disable-warnings",
)


def measure(folder: Path, rounds: int) -> None:
    """Compile into an empty folder, check what came out, and let the peer work, in turns; a fresh process each time."""
    verbc, peer = OWN / "bin" / "verbc", MODELS_PEER / "bin" / "datamodel-codegen"
    require((verbc, peer))
    for place in (OWN, MODELS_PEER, ROOT / "generator"):
        compile_bytecode(place)
    (folder / "specs").mkdir()
    write_spec(folder / "specs" / "catalog.yaml")
    write_definitions(folder / "catalog.json")
    commands: dict[str, tuple[str | Path, ...]] = {
        OURS: (verbc, "generate"),
        CHECK: (verbc, "check"),
        CHECK_ANEW: (verbc, "check"),
        THEIRS: (peer, "--input=catalog.json", "--output=models.py", *_SETTINGS),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in turns(rounds):
        shutil.rmtree(folder / "generated", ignore_errors=True)
        for name, command in commands.items():
            if name in (OURS, CHECK_ANEW):
                shutil.rmtree(folder / ".cache", ignore_errors=True)
            costs[name].append(run(command, environment(folder), folder))
    _report(costs)


def _report(costs: dict[str, list[Cost]]) -> None:
    seconds = {name: [cost.seconds for cost in spent] for name, spent in costs.items()}
    processor = {name: [cost.processor for cost in spent] for name, spent in costs.items()}
    memory = {name: [cost.memory for cost in costs[name]] for name in (OURS, THEIRS)}
    title(f"generate: {VERBS:,} verbs with 6 parameters each")
    table(seconds, SECONDS)
    table(processor, SECONDS, ", processor")
    table(memory, MEBIBYTES, ", memory")
    for target in TARGETS:
        target.judge(seconds)
    MEMORY_TARGET.judge(memory)


if __name__ == "__main__":
    sys.exit(main({measure: ROUNDS}))
