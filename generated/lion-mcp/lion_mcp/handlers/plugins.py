"""What plugins bring, as their manifests say. Whether a plugin is trusted and switched on only li knows, when it runs."""

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal

import yaml  # type: ignore[import-untyped,unused-ignore]

from .bounded_reading import leads_into, text_of
from .places import NAME, roots_from

LARGEST_MANIFEST = 1 << 16  # bytes
MOST_PLUGINS = 200  # of one folder
MOST_FILES = 200  # of one plugin

Kind = Literal["agents", "playbooks"]


def files_in_plugins(kind: Kind, folder: Path) -> dict[str, Path]:
    """The files of a kind that plugins bring to those who work in `folder`, by `<plugin>/<name>`."""
    found: dict[str, Path] = {}
    for root in roots_from(folder):
        for bundle in _bundles(root.path.parent / "plugins"):
            for name, path in _files(kind, bundle):
                found.setdefault(name, path)
    return found


def named_in_plugins(kind: Kind, name: str, folder: Path) -> Path | None:
    """The file that plugins bring under `<plugin>/<name>`, or under a bare name that only one of them has."""
    files = files_in_plugins(kind, folder)
    if "/" in name:
        return files.get(name)
    claims = [path for full_name, path in files.items() if full_name.endswith(f"/{name}")]
    return claims[0] if len(claims) == 1 else None


def _bundles(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(islice((path for path in folder.iterdir() if os.path.isdir(path)), MOST_PLUGINS))
    except OSError:
        return


def _files(kind: Kind, bundle: Path) -> Iterator[tuple[str, Path]]:
    """Each with its full name. Files outside of the plugin's own folder are passed over."""
    manifest = _manifest(bundle / "plugin.yaml")
    plugin, capabilities = manifest.get("name"), manifest.get("capabilities")
    declared = capabilities.get(kind) if isinstance(capabilities, Mapping) else None
    if not (isinstance(plugin, str) and NAME.fullmatch(plugin) and isinstance(declared, list)):
        return
    for entry in declared[:MOST_FILES]:
        path = bundle / str(entry).replace("\0", "")
        if os.path.isfile(path) and leads_into(path, bundle):
            yield f"{plugin}/{path.stem.removesuffix('.playbook')}", path


def _manifest(path: Path) -> Mapping[object, object]:
    """Empty when there is none, or none that can be read."""
    try:
        manifest: object = yaml.safe_load(text_of(path, LARGEST_MANIFEST))
    except Exception:  # UnreadableError, and all that YAML can stumble over
        return {}
    return manifest if isinstance(manifest, Mapping) else {}
