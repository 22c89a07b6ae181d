"""The backends of the spec language: a model for each kind."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field

from .scalars import (
    BackendName,
    Bytes,
    Count,
    Data,
    ExitCode,
    Expanded,
    ExpandedText,
    Filled,
    HandlersFile,
    HeaderName,
    KindName,
    Line,
    ParameterName,
    Pointer,
    Seconds,
    Text,
    Truth,
    Variable,
    Version,
    Words,
)
from .written import TAG, Written, as_text, shape, tagged


class CallLimits(Written):
    """Limits of one call."""

    timeout: Seconds | None = None
    output: Bytes | None = None
    concurrency: Annotated[Count, Field(ge=1)] | None = None


class JobLimits(CallLimits):
    """Limits of background runs."""

    log: Bytes | None = None
    keep: Seconds | None = None
    grace: Seconds | None = None


class GatewayLimits(CallLimits):
    """Limits of a gateway."""

    list: Count | None = None


class AgentLimits(CallLimits):
    """Limits of agents and their sessions."""

    sessions: Count | None = None
    turns: Count | None = None
    history: Bytes | None = None
    idle: Seconds | None = None


class ErrorPointers(Written):
    """Where the parts of a refusal stand in a reply."""

    kind: Pointer | None = None
    message: Pointer | None = None
    detail: Pointer | None = None


PointerOrPointers = Annotated[
    Annotated[Pointer, tagged("text")] | Annotated[dict[ParameterName, Pointer], tagged("a map")], Discriminator(shape)
]
PointerOrErrorPointers = Annotated[
    Annotated[Pointer, tagged("text")] | Annotated[ErrorPointers, tagged("a map")], Discriminator(shape)
]


class ReplyPointers(Written):
    """Where things stand in a JSON reply."""

    expect: dict[Pointer, Annotated[tuple[Data, ...], Filled]] = {}
    ok: Pointer | None = None
    result: PointerOrPointers | None = None
    error: PointerOrErrorPointers | None = None


Reply = Annotated[
    Annotated[Literal["json", "text", "lines"], BeforeValidator(as_text), tagged("text")]
    | Annotated[ReplyPointers, tagged("a map")],
    Discriminator(shape),
]


class VersionQuestion(Written):
    """How a command line is asked for its version, and which versions fit."""

    ask: Words
    at: Pointer
    accept: Annotated[tuple[Version, ...], Filled]


class CliBackend(Written):
    """A command line."""

    cli: Expanded
    args: tuple[ExpandedText, ...] = ()
    env: tuple[Variable, ...] = ("PATH",)
    fenced: tuple[Words, ...] = ()
    version: VersionQuestion | None = None
    reply: Reply = "json"
    refusals: dict[ExitCode, KindName] = {}
    limits: CallLimits = CallLimits()


class PythonBackend(Written):
    """Hand-written Python beside the spec."""

    python: HandlersFile
    limits: CallLimits = CallLimits()


HOOKS = ("prepare", "ended", "settled", "details")  # each a method `<backend>_<hook>` of the handlers


class JobsBackend(Written):
    """Background runs of a command line."""

    jobs: BackendName
    hooks: BackendName | None = None
    limits: JobLimits = JobLimits()


class HttpBackend(Written):
    """A REST service."""

    http: Expanded
    credentials: Annotated[Literal["forward"], BeforeValidator(as_text)] | None = None
    headers: dict[HeaderName, ExpandedText] = {}
    reply: Reply = "json"
    refusals: dict[ExitCode, KindName] = {}
    limits: CallLimits = CallLimits()


class McpBackend(Written):
    """One upstream MCP server."""

    mcp: Line
    env: tuple[Variable, ...] = ()
    warm: Truth = False
    limits: CallLimits = CallLimits()


class GatewayBackend(Written):
    """Registered MCP servers."""

    gateway: tuple[Line, ...]
    env: tuple[Variable, ...] = ()
    limits: GatewayLimits = GatewayLimits()


class Agent(Written):
    """An agent declared in the spec."""

    role: Text | None = None
    instructions: Text
    model: Text | None = None


class AgentsBackend(Written):
    """Agents, given at start or declared here."""

    agents: Annotated[
        Annotated[Literal["start"], BeforeValidator(as_text), tagged("text")]
        | Annotated[dict[Text, Agent], tagged("a map")],
        Discriminator(shape),
    ]
    model: Text | None = None
    endpoint: Text | None = None
    key: Text | None = None
    limits: AgentLimits = AgentLimits()


KINDS_OF_BACKEND: dict[str, type[Written]] = {
    "cli": CliBackend,
    "jobs": JobsBackend,
    "http": HttpBackend,
    "mcp": McpBackend,
    "gateway": GatewayBackend,
    "agents": AgentsBackend,
    "python": PythonBackend,
}


def backend_kind(value: object) -> str:
    """The kind of a backend."""
    return next(kind for kind, model in KINDS_OF_BACKEND.items() if type(value) is model)


def _written_kind(value: Any) -> str | None:
    """The kind of a backend as it is written: the key that only this kind has."""
    if not isinstance(value, dict):
        return None
    return next((f"{TAG}{kind}" for kind in KINDS_OF_BACKEND if kind in value), None)


Backend = Annotated[
    Annotated[CliBackend, tagged("cli")]
    | Annotated[JobsBackend, tagged("jobs")]
    | Annotated[HttpBackend, tagged("http")]
    | Annotated[McpBackend, tagged("mcp")]
    | Annotated[GatewayBackend, tagged("gateway")]
    | Annotated[AgentsBackend, tagged("agents")]
    | Annotated[PythonBackend, tagged("python")],
    Discriminator(
        _written_kind,
        custom_error_type="verbc",
        custom_error_message="must name its kind: cli, jobs, http, mcp, gateway, agents or python",
    ),
]
