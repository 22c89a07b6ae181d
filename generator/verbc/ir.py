"""What the templates see: resolved, frozen, nothing left to decide.

    Package
      registry: the compiled contract
      models:   ModelModule → Definition (a class or an alias, as lines of code)
      verbs:    VerbModule  → Function (one for each verb)
      interface: Handlers   → Method (one protocol for each python backend)
      tables:   Table       → rows of the docs page

Names and lines are `Code`: made by `names` and `literals`, the only doors from text to source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .literals import Code


@dataclass(frozen=True, slots=True)
class Definition:
    """A class or an alias of a module of models."""

    name: Code
    lines: tuple[Code, ...]

    @property
    def is_alias(self) -> bool:
        return not self.lines[0].startswith("class ")


@dataclass(frozen=True, slots=True)
class ModelModule:
    """One module of `models/`."""

    name: Code
    docstring: Code
    imports: tuple[Code, ...]
    deferred: bool  # annotations are evaluated late, because types recurse
    definitions: tuple[Definition, ...]

    @property
    def blocks(self) -> tuple[Code, ...]:
        """The definitions with the blank lines before them: two around a class, one between aliases."""
        near_class = [not definition.is_alias for definition in self.definitions]
        gaps = [2 if one or other else 1 for one, other in zip([False, *near_class], near_class, strict=False)]
        return tuple(
            Code("\n" * gap + "\n".join(definition.lines))
            for gap, definition in zip(gaps, self.definitions, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Exports:
    """What `models` exports, and the module that each class comes from."""

    imports: tuple[Code, ...]
    modules: Code
    names: Code


@dataclass(frozen=True, slots=True)
class Function:
    """The function of one verb, and its entry in the table of its module."""

    signature: Code
    docstring: Code
    body: Code
    entry: Code


@dataclass(frozen=True, slots=True)
class VerbModule:
    """One module of `verbs/`."""

    name: Code
    docstring: Code
    imports: tuple[Code, ...]
    functions: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a protocol."""

    signature: Code
    docstring: Code


@dataclass(frozen=True, slots=True)
class Handlers:
    """What one python backend's hand-written class implements."""

    backend: Code
    protocol: Code
    module: Code
    docstring: Code
    methods: tuple[Method, ...]


@dataclass(frozen=True, slots=True)
class Interface:
    """The module of protocols."""

    imports: tuple[Code, ...]
    typed: tuple[Code, ...]  # imports that only annotations need
    protocols: tuple[Handlers, ...]
    exported: Code


@dataclass(frozen=True, slots=True)
class ServerModule:
    """`server.py`: what `create_server` takes, and the backends it puts together."""

    imports: tuple[Code, ...]
    signature: Code
    docstring: Code
    backends: tuple[Code, ...]  # assignments, each backend after those that it needs
    entries: tuple[Code, ...]  # of the table of backends
    handlers: tuple[tuple[Code, Code, Code], ...]  # loader, protocol, module
    tables: Code  # those that a governed server keeps its record in; empty where no policy decides


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the docs page: a heading, a sentence, and rows of cells."""

    heading: Code
    sentence: Code
    columns: tuple[Code, ...]
    rows: tuple[tuple[Code, ...], ...]

    @property
    def lines(self) -> tuple[Code, ...]:
        """The whole table in Markdown, head and rule first."""
        rule = tuple("---" for _ in self.columns)
        return tuple(Code(f"| {' | '.join(row)} |") for row in (self.columns, rule, *self.rows))


@dataclass(frozen=True, slots=True)
class Package:
    """One generated package."""

    spec: Code
    title: Code
    summary: Code
    summary_toml: Code
    docstring: Code
    package: Code
    distribution: Code
    server_name: Code
    version: Code
    dependencies: Code
    needs: tuple[Code, ...]  # programs and variables, as sentences of Markdown
    registry: Mapping[str, Any]
    models: tuple[ModelModule, ...]
    exports: Exports
    verbs: tuple[VerbModule, ...]
    interface: Interface | None
    server: ServerModule
    keeps_state: bool  # in a folder of its own
    policy: tuple[Code, ...]  # the starter policy as a file; empty where no policy decides
    operating: tuple[Code, ...]  # the commands of whoever operates the server
    serves_stdio: bool
    address: Code  # where it is served over HTTP, unless it is told otherwise; empty for nowhere
    verifies: bool  # keys of callers
    tables: tuple[Table, ...]
    carried: Mapping[str, str]
    support: tuple[str, ...]
