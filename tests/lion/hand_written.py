"""The hand-written part of lion-mcp, imported from the generated package, and what its functions are given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGE = "lion_mcp"
RUN_ID = "20260930T120000-0a1b2c"


@contextmanager
def imported(folder: Path) -> Iterator[HandWritten]:
    """The handlers of the package in `folder`, importable meanwhile and forgotten afterwards."""
    _forget()
    sys.path.insert(0, str(folder))
    try:
        yield HandWritten()
    finally:
        sys.path.remove(str(folder))
        _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


class HandWritten:
    """Modules by name: `handlers.playbooks` is the one of the handlers."""

    def __init__(self) -> None:
        self.interface: Any = import_module(f"{PACKAGE}.interface")
        self._support = f"{PACKAGE}._support"
        registry = Path(str(import_module(PACKAGE).__file__)).with_name("registry.json")
        self._registry: Any = import_module(f"{self._support}.registry").load(registry)

    def __getattr__(self, name: str) -> Any:
        return import_module(f"{PACKAGE}.handlers.{name}")

    @property
    def handlers(self) -> Any:
        """The object that has the hooks."""
        return import_module(f"{PACKAGE}.handlers").Handlers()

    def call(self, verb: str, **arguments: Any) -> Any:
        """A call of a verb, as its handlers get it."""
        caller, now = import_module(f"{self._support}.call").LOCAL, datetime.now(UTC)
        return self.interface.Call(self._registry.verb(verb), arguments, caller, "c0", self._registry, now, 1e9)

    def params(self, verb: str, **arguments: Any) -> Any:
        """The typed view of its arguments, and the command line that is made of them."""
        bindings = import_module(f"{self._support}.binding").Bindings(f"{PACKAGE}.verbs")
        binding = bindings.of(self.call(verb).verb)
        params = binding.params.model_validate(arguments)
        return params, binding.function(params)

    def record(self, folder: Path, end: Any = None, **details: Any) -> Any:
        """What is on record of a run of a minute ago, whose folder is there."""
        (place := folder / RUN_ID).mkdir(mode=0o700, exist_ok=True)
        identity = import_module(f"{self._support}.run_record").Identity(1, "0")
        return self.interface.RunRecord(
            RUN_ID,
            "agent.submit",
            None,
            ("li", "agent"),
            str(folder),
            place,
            identity,
            datetime.now(UTC) - timedelta(minutes=1),
            end=end,
            details={"kind": "agent", **details},
        )
