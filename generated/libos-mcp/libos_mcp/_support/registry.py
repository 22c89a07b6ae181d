"""The compiled contract of one server, read from `registry.json`: what the server, its docs and its tests rely on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

FORMAT = 1


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What a server says about itself."""

    name: str
    version: str
    title: str | None
    summary: str
    instructions: str | None
    package: str  # what Python imports
    distribution: str  # what pip installs


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the server as a whole."""

    body: int  # bytes of one message
    ops: int  # ops in one request
    timeout: float  # seconds
    output: int  # bytes
    concurrency: int


@dataclass(frozen=True, slots=True)
class VerbLimits:
    """Limits of one verb; verbs of one pool share its slots, unless they only wait and need none."""

    timeout: float  # seconds, waiting included
    output: int  # bytes
    concurrency: int | None
    pool: str

    @property
    def patience(self) -> str:
        """The timeout in words."""
        return f"{self.timeout:g} {'second' if self.timeout == 1 else 'seconds'}"


@dataclass(frozen=True, slots=True)
class HttpServe:
    """How a server is served over HTTP, unless it is told otherwise when it starts."""

    host: str
    port: int
    path: str
    origins: tuple[str, ...]  # web pages that may call, as `https://app.example`
    hosts: tuple[str, ...]  # names that the server is called by, beside those of the own machine
    replies: str  # json | stream


@dataclass(frozen=True, slots=True)
class Serve:
    """How a server can be reached, and in which revisions of the protocol."""

    protocols: tuple[str, ...]  # newest first
    stdio: bool
    http: HttpServe | None


@dataclass(frozen=True, slots=True)
class Run:
    """What runs a verb: a backend, its target there, how the reply is read, and the generated function."""

    backend: str
    target: tuple[str, ...]
    reply: Mapping[str, Any]
    refusals: Mapping[str, str]  # exit code or status -> kind
    module: str
    function: str


@dataclass(frozen=True, slots=True)
class Verb:
    """One operation as callers see it, and what runs it. `params` and `result` are the schemas as advertised."""

    name: str
    summary: str
    description: str | None
    effect: str
    hints: Mapping[str, bool]
    params: JsonObject
    result: JsonObject | None
    fingerprint: str
    fingerprint_required: bool
    required_unenforced: tuple[str, ...]
    varies_with: Mapping[str, str]  # parameter -> backend that knows what its values stand for
    refused: Mapping[str, str]  # parameter -> why it is never taken
    unavailable: str | None  # the reason
    requires: tuple[str, ...]
    plan: str | None  # the rights that only the plan of a call can know
    limits: VerbLimits
    examples: tuple[JsonObject, ...]
    run: Run
    digest: str
    idempotent: str | None  # key | derived: how the same call is known again

    @property
    def required(self) -> list[str]:
        """The parameters that a call must have."""
        return list(self.params.get("required", ()))

    @property
    def quotes_fingerprint(self) -> bool:
        """Whether a fingerprint can be told before a call is known: not when a required parameter changes the schema."""
        return self.fingerprint_required and not set(self.varies_with) & set(self.required)


@dataclass(frozen=True, slots=True)
class Registry:
    """The contract, with its verbs in the order of the spec."""

    server: ServerIdentity
    surface: str  # tools | request
    feedback: str  # names | shapes
    limits: Limits
    kinds: Mapping[str, str]
    synonyms: Mapping[str, str]  # synonym -> verb
    synonyms_removed_after: str | None
    backends: Mapping[str, JsonObject]
    verbs: tuple[Verb, ...]
    digest: str
    serve: Serve
    access: JsonObject | None  # verify, scopes and pin; without it nobody is asked who he is
    _by_name: dict[str, Verb] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {verb.name: verb for verb in self.verbs})

    def verb(self, name: str) -> Verb | None:
        """The verb with exactly this name."""
        return self._by_name.get(name)

    def resolve(self, name: str) -> Verb | None:
        """The verb with this name, or the one that the name is a synonym of."""
        return self._by_name.get(name) or self._by_name.get(self.synonyms.get(name, ""))

    def nearest(self, name: str) -> str | None:
        """The name of a verb that looks like `name`, for whoever mistyped it."""
        from difflib import get_close_matches  # seldom needed

        return next(iter(get_close_matches(name[:80], self._by_name, n=1)), None)

    @property
    def available(self) -> tuple[Verb, ...]:
        """The verbs that can be called."""
        return tuple(verb for verb in self.verbs if verb.unavailable is None)

    @property
    def unavailable(self) -> tuple[Verb, ...]:
        """The verbs that are only catalogued, with a reason."""
        return tuple(verb for verb in self.verbs if verb.unavailable is not None)


def load(path: Path) -> Registry:
    """Read a registry. Raises OSError, ValueError or KeyError when there is none that this code understands."""
    return from_data(json.loads(path.read_text(encoding="utf-8")))


def from_data(data: JsonObject) -> Registry:
    """The registry that parsed JSON stands for. Raises ValueError or KeyError for another format."""
    if data["verbc"] != FORMAT:
        raise ValueError(f"The registry has format {data['verbc']}, and this code reads format {FORMAT}.")
    return Registry(
        server=ServerIdentity(**data["server"]),
        surface=data["surface"],
        feedback=data["feedback"],
        limits=Limits(**data["limits"]),
        kinds=data["kinds"],
        synonyms=data["synonyms"]["verbs"],
        synonyms_removed_after=data["synonyms"]["removed_after"],
        backends=data["backends"],
        verbs=tuple(map(_verb, data["verbs"])),
        digest=data["digest"],
        serve=_serve(data["serve"]),
        access=data["access"],
    )


def _serve(data: JsonObject) -> Serve:
    http = data["http"]
    return Serve(
        protocols=tuple(data["protocols"]),
        stdio=data["stdio"],
        http=http and HttpServe(**{**http, "origins": tuple(http["origins"]), "hosts": tuple(http["hosts"])}),
    )


def _verb(data: JsonObject) -> Verb:
    lists = {name: tuple(data[name]) for name in ("required_unenforced", "requires", "examples")}
    run = data["run"]
    return Verb(
        **{
            **data,
            **lists,
            "limits": VerbLimits(**data["limits"]),
            "run": Run(**{**run, "target": tuple(run["target"])}),
        }
    )
