"""The commands. The only module that prints or exits."""

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

from . import __version__
from .find import find
from .memory import Digests, inputs_of, recall, remember
from .problems import NothingWrittenError, SpecError
from .tree import Change, Drift, apply, compare, digests_of, packages, plan

SPECS = Path("specs")
GENERATED = Path("generated")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `verbc`. Returns 0, 1 with problems or drift, or 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return int(options.run(options))
    except SpecError as error:
        untouched = "" if options.run is _check else "; nothing was written"
        print(f"{error}\n{_count(len(error.problems), 'problem')}{untouched}", file=sys.stderr)
    except NothingWrittenError as error:
        print(f"verbc: {error}; nothing was written", file=sys.stderr)
    except BrokenPipeError:
        # Whoever read the output has enough of it; and what is left to flush goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"verbc: {error.filename or 'the disk'}: {error.strerror}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="verbc", description="Compiles specs of verbs into MCP server packages.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"verbc {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    init = commands.add_parser("init", allow_abbrev=False, help="write a starter spec and a Makefile into a new folder")
    init.add_argument("name", metavar="NAME")
    init.set_defaults(run=_init)
    generate = commands.add_parser("generate", allow_abbrev=False, help="compile specs into packages")
    check = commands.add_parser(
        "check", allow_abbrev=False, help="tell whether the packages are current; exit 1 if not"
    )
    check.add_argument("--diff", action="store_true", help="show the differences")
    for command, run in ((generate, _generate), (check, _check)):
        command.add_argument("specs", nargs="*", type=Path, metavar="SPEC", help=f"by default all in {SPECS}/")
        command.add_argument("--out", type=Path, default=GENERATED, metavar="DIR", help=f"by default {GENERATED}/")
        command.set_defaults(run=run)
    schema = commands.add_parser("schema", allow_abbrev=False, help="print the JSON Schema of the spec language")
    schema.set_defaults(run=_schema)
    return parser


def _init(options: argparse.Namespace) -> int:
    from .starter import write_starter

    for path in write_starter(options.name, Path(options.name)):
        print(path)
    print(f"next: cd {options.name} && make generate test")
    return 0


def _generate(options: argparse.Namespace) -> int:
    began = time.perf_counter()
    wanted, _ = _compiled(options.specs or find(SPECS))
    options.out.mkdir(parents=True, exist_ok=True)
    with _alone(options.out):
        # Whatever stands in the way of one package is found before the first is written.
        names = [*wanted, *_stale(options, wanted)]
        for change in [plan(wanted.get(name, {}), options.out / name) for name in names]:
            apply(change)
            _report(change)
    print(f"{_count(len(wanted), 'package')} in {time.perf_counter() - began:.2f} s")
    return 0


def _check(options: argparse.Namespace) -> int:
    specs = options.specs or find(SPECS)
    known = None if options.diff else recall(specs)
    texts, wanted = ({}, known) if known is not None else _compiled(specs)
    drifted = False
    for name in [*wanted, *_stale(options, wanted)]:
        drift = compare(wanted.get(name, {}), options.out / name)
        drifted = drifted or bool(drift)
        _show(drift, options.out / name)
        if options.diff:
            _show_differences(drift, texts.get(name, {}), options.out / name)
    print("not current; run `verbc generate`" if drifted else f"current: {_count(len(wanted), 'package')}")
    return 1 if drifted else 0


def _compiled(specs: Sequence[Path]) -> tuple[dict[str, dict[str, str]], Digests]:
    """The files of all packages, and their digests, which are remembered."""
    from .pipeline import compile_all  # not needed to check what is remembered

    inputs = inputs_of(specs) if all(spec.exists() for spec in specs) else ""
    texts = compile_all(specs)
    digests = {name: digests_of(files) for name, files in texts.items()}
    remember(specs, inputs, digests)
    return texts, digests


def _schema(options: argparse.Namespace) -> int:
    from .grammar import grammar

    print(json.dumps(grammar(), indent=2))
    return 0


def _stale(options: argparse.Namespace, wanted: Collection[str]) -> list[str]:
    """Packages whose spec is gone; only known when all specs are looked at."""
    return [] if options.specs else [name for name in packages(options.out) if name not in wanted]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two runs on one folder wait for each other."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _report(change: Change) -> None:
    for path in change.overwritten:
        print(f"{change.folder / path} had been edited; it was overwritten", file=sys.stderr)
    for path in change.kept:
        print(
            f"{change.folder / path} is no longer generated, but had been edited; remove it yourself", file=sys.stderr
        )
    removed = f", {len(change.removed)} removed" if change.removed else ""
    print(f"{change.folder}: {len(change.written)} written, {len(change.unchanged)} unchanged{removed}")


def _show(drift: Drift, folder: Path) -> None:
    if drift.missing and not folder.exists():
        print(f"missing: {folder}")
        return
    if drift.orphaned:
        print(f"in {folder}, what `verbc generate` leaves orphaned is not its own; remove it yourself")
    for word, paths in (("changed", drift.changed), ("missing", drift.missing), ("orphaned", drift.orphaned)):
        for path in paths:
            print(f"{word}: {folder / path}")


def _show_differences(drift: Drift, texts: Mapping[str, str], folder: Path) -> None:
    import difflib  # only wanted on demand

    for path in sorted(texts.keys() & {*drift.changed, *drift.missing}):
        place = folder / path
        old = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else ""
        lines = difflib.unified_diff(
            old.splitlines(), texts[path].splitlines(), f"{place} (on the disk)", f"{place} (generated)", lineterm=""
        )
        print("\n".join(lines))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
