"""Package → {path: text}, a pure function."""

import json
from collections.abc import Mapping
from typing import Any

from .environment import environment
from .ir import Package
from .openapi import openapi_of
from .outputs import OUTPUTS
from .support_set import support_text, testing_text

_json = json.JSONEncoder().encode  # one encoder for the thousands of small parts


def render(package: Package) -> dict[str, str]:
    """Every file of a package, by its path below the package's folder, sorted."""
    texts: dict[str, str] = {}
    for output in OUTPUTS:
        template = environment().get_template(f"{output.path}.j2")
        for item in output.items(package):
            path = output.path.replace("<package>", package.package)
            texts[path.replace("<module>", getattr(item, "name", ""))] = template.render(package=package, item=item)
    texts[f"{package.package}/py.typed"] = ""
    texts[f"{package.package}/registry.json"] = registry_json(package.registry)
    if description := openapi_of(package.registry):
        texts[f"{package.package}/openapi.json"] = json.dumps(description, indent=2) + "\n"
    texts[f"{package.package}/_support/__init__.py"] = support_text("__init__")
    for name in package.support:
        texts[f"{package.package}/_support/{name}.py"] = support_text(name)
    for name in ("test_registry", "values"):
        texts[f"tests/{name}.py"] = testing_text(name)
    for path, text in package.carried.items():
        texts[f"{package.package}/{path}"] = text
    return dict(sorted(texts.items()))


def registry_json(registry: Mapping[str, Any]) -> str:
    """The registry as JSON with a line for each part, and for each part of a verb, so that changes read well."""
    parts = [f"  {_json(key)}: {_verbs(value) if key == 'verbs' else _json(value)}" for key, value in registry.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _verbs(verbs: list[dict[str, Any]]) -> str:
    shown = [
        "    {\n" + ",\n".join(f"      {_json(key)}: {_json(value)}" for key, value in verb.items()) + "\n    }"
        for verb in verbs
    ]
    return "[\n" + ",\n".join(shown) + "\n  ]"
