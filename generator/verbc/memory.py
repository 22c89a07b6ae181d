"""Remembers what a spec compiled to, so that checking one that has not changed need not compile it again.

What is remembered are digests, outside the project, in the user's own cache folder. They count only for the very inputs
and the very compiler that they were made with; a checkout that comes with a remembered answer does not exist, so nobody
can forge one for somebody else. Wherever there is nothing to remember, as in CI, everything is compiled.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from . import __version__

_HERE = Path(__file__).parent


Digests = dict[str, dict[str, str]]  # package → path → SHA-256


def recall(specs: Sequence[Path]) -> Digests | None:
    """What the specs compiled to when they, all beside them, and the compiler were as they are now."""
    try:
        entry = json.loads(_place(specs).read_text(encoding="utf-8"))
        packages = {str(name): dict(digests) for name, digests in entry["packages"].items()}
        return packages if entry["inputs"] == inputs_of(specs) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def remember(specs: Sequence[Path], inputs: str, packages: Digests) -> None:
    """Keep what the specs compile to, unless their inputs are no longer the ones they had before."""
    place = _place(specs)
    unfinished = place.with_suffix(f".{os.getpid()}")
    try:
        if inputs != inputs_of(specs):
            return
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished.write_text(json.dumps({"inputs": inputs, "packages": packages}), encoding="utf-8")
        unfinished.replace(place)
    except OSError:
        return  # a memory that cannot be kept only costs time


def _place(specs: Sequence[Path]) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = "\n".join(str(spec.resolve()) for spec in specs)
    return Path(home) / "verbc" / f"{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}.json"


def inputs_of(specs: Sequence[Path]) -> str:
    """The digest of all that packages depend on: the specs and their names, what lies beside them, and the compiler.

    Raises:
        OSError: something of it cannot be read.
    """
    inputs = hashlib.sha256(_compiler().encode())
    for spec in specs:
        inputs.update(os.fsencode(spec) + b"\n")
        for path in _inputs(spec):
            _add(inputs, path.relative_to(spec if spec.is_dir() else spec.parent).as_posix(), path)
    return inputs.hexdigest()


def _inputs(spec: Path) -> Iterator[Path]:
    folder = spec if spec.is_dir() else spec.parent
    yield from sorted(spec.glob("*.yaml")) if spec.is_dir() else [spec]
    yield from sorted(folder.glob("*.py"))
    # Any file in a folder beside the spec may be a manifest.
    yield from sorted(path for pattern in ("*/*.yaml", "*/*.json") for path in folder.glob(pattern))
    # Any folder beside the spec that can be imported may be the one of its handlers, also by way of a link.
    for init in sorted(folder.glob("*/__init__.py")):
        yield from sorted(init.parent.rglob("*.py"))


@cache
def _compiler() -> str:
    inputs = hashlib.sha256(f"{__version__} {sys.version}\n".encode())
    templates = _HERE / "templates" if (_HERE / "templates").is_dir() else _HERE.parents[1] / "templates"
    for folder, pattern in ((_HERE, "*.py"), (_HERE, "*.yaml"), (templates, "*.j2")):
        for path in sorted(folder.rglob(pattern)):
            _add(inputs, path.relative_to(folder).as_posix(), path)
    return inputs.hexdigest()


def _add(inputs: "hashlib._Hash", name: str, path: Path) -> None:
    data = path.read_bytes()
    inputs.update(os.fsencode(name) + f" {len(data)}\n".encode())
    inputs.update(data)
