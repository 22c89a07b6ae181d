"""The spec language as it is written: one frozen model for each map of a spec.

Everything is checked alone here, key by key; what has to fit together is checked in `rules`. A partial verb of `shared`
is written like a verb, so a verb's `summary` and `run` are asked for only once it has been put together.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from .source import Plain, native


def _fault(message: str) -> PydanticCustomError:
    # Braces would be read as places of a template.
    return PydanticCustomError("verbc", "{message}", {"message": message})


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _one_line(value: str) -> str:
    if "\n" in value.strip():
        raise _fault("must be one line; `description` may hold more")
    if not value.strip():
        raise _fault("must not be empty")
    return value.strip()


def matching(pattern: str, sentence: str) -> Callable[[str], str]:
    """A check that a text has a form, told by a sentence when it has not."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise _fault(sentence)
        return value

    return check


def _number(value: Any) -> Any:
    value = native(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _fault("must be a decimal number")
    if value in (float("inf"), float("-inf")):
        raise _fault("must be a number that fits; this one is too large")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _count(value: Any) -> Any:
    value = _number(value)
    if not isinstance(value, int) or value < 0:
        raise _fault("must be a whole number, 0 or more")
    return value


def _truth(value: Any) -> Any:
    value = native(value)
    if not isinstance(value, bool):
        raise _fault("must be true or false")
    return value


_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _quantity(units: Mapping[str, float], example: str) -> Callable[[Any], Any]:
    pattern = re.compile(f"([1-9][0-9]{{0,14}})({'|'.join(units)})")

    def check(value: Any) -> Any:
        parts = pattern.fullmatch(value) if isinstance(value, str) else None
        if parts is None:
            raise _fault(f"must be an amount such as {example}")
        return int(parts[1]) * units[parts[2]]

    return check


Text = Annotated[str, BeforeValidator(_text)]
Line = Annotated[Text, AfterValidator(_one_line)]
Truth = Annotated[bool, BeforeValidator(_truth)]
Number = Annotated[int | float, BeforeValidator(_number)]
Count = Annotated[int, BeforeValidator(_count)]
Bytes = Annotated[int, BeforeValidator(_quantity(_BYTES, "1MiB, 256KiB or 1000000"))]
Seconds = Annotated[float, BeforeValidator(_quantity(_SECONDS, "60s, 5m or 100ms"))]
# Data whose meaning a schema decides later: `Plain` scalars are kept as they are.
Data = Annotated[Any, Field(description="any JSON value")]


def _shape(value: Any) -> str:
    return "text" if isinstance(value, str) else "list" if isinstance(value, list | tuple) else "map"


TextOrTexts = Annotated[Annotated[Text, Tag("text")] | Annotated[tuple[Text, ...], Tag("list")], Discriminator(_shape)]

VerbName = Annotated[
    Text,
    AfterValidator(
        matching(
            r"(?=.{1,64}$)[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*(_?<agent>)?",
            "must be 1 to 64 letters, digits, _ and -, in parts joined by dots, and begin with a letter",
        )
    ),
]
ParameterName = Annotated[
    Text,
    AfterValidator(
        matching(r"[^\s\x00-\x1f\x7f](.{0,126}[^\s\x00-\x1f\x7f])?", "must be 1 to 128 characters on one line")
    ),
]
TypeName = Annotated[
    Text, AfterValidator(matching(r"[A-Z][A-Za-z0-9]{0,39}", "must be a name like RunId, of at most 40 characters"))
]
BackendName = Annotated[
    Text, AfterValidator(matching(r"[a-z][a-z0-9_]{0,31}", "must be lower-case letters, digits and _, at most 32"))
]
KindName = Annotated[
    Text, AfterValidator(matching(r"[a-z][a-z0-9_]{0,39}", "must be lower-case letters, digits and _, at most 40"))
]
ServerName = Annotated[
    Text,
    AfterValidator(
        matching(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", "must be lower-case letters and digits, in parts joined by -")
    ),
]
Package = Annotated[
    Text, AfterValidator(matching(r"[a-z][a-z0-9_]{0,39}", "must be a lower-case Python name of at most 40 characters"))
]
Version = Annotated[
    Text, AfterValidator(matching(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?", "must be a version such as 1.4.0"))
]
Pointer = Annotated[Text, AfterValidator(matching(r"(/([^~/]|~[01])*)*", "must be a JSON pointer such as /data/0"))]
ExitCode = Annotated[Text, AfterValidator(matching(r"[1-9][0-9]{0,2}", "must be an exit code or status, 1 to 999"))]
Words = Annotated[Text, AfterValidator(matching(r"\S+( \S+)*", "must be words with one space between them"))]
Variable = Annotated[
    Text,
    AfterValidator(
        matching(
            r"[A-Za-z_][A-Za-z0-9_]*\*?|[A-Za-z_][A-Za-z0-9_]*=.*|\*[A-Za-z0-9_]+",
            "must be a variable such as PATH, LC_* or NO_COLOR=1",
        )
    ),
]


class Written(BaseModel):
    """A map of a spec."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False)


class Schema(Written):
    """A JSON Schema (2020-12) of the keywords that a Python type can follow."""

    type: TextOrTexts | None = None
    enum: tuple[Data, ...] | None = None
    const: Data = None
    properties: "dict[ParameterName, SchemaOrName] | None" = None
    required: tuple[Text, ...] = ()
    additionalProperties: "Openness | None" = None  # noqa: N815 - a keyword of JSON Schema
    items: "SchemaOrName | None" = None
    anyOf: "tuple[SchemaOrName, ...] | None" = None  # noqa: N815
    oneOf: "tuple[SchemaOrName, ...] | None" = None  # noqa: N815
    minimum: Number | None = None
    maximum: Number | None = None
    exclusiveMinimum: Number | None = None  # noqa: N815
    exclusiveMaximum: Number | None = None  # noqa: N815
    multipleOf: Number | None = None  # noqa: N815
    minLength: Count | None = None  # noqa: N815
    maxLength: Count | None = None  # noqa: N815
    minItems: Count | None = None  # noqa: N815
    maxItems: Count | None = None  # noqa: N815
    minProperties: Count | None = None  # noqa: N815
    maxProperties: Count | None = None  # noqa: N815
    uniqueItems: Truth | None = None  # noqa: N815
    pattern: Text | None = None
    format: Text | None = None
    default: Data = None
    description: Text | None = None
    deprecated: Truth | None = None


def _schema_or_name(value: Any) -> str:
    return "name" if isinstance(value, str) else "schema"


def _openness(value: Any) -> str:
    return "truth" if isinstance(value, Plain) and value in ("true", "false") else _schema_or_name(value)


SchemaOrName = Annotated[
    Annotated[Text, Tag("name")] | Annotated[Schema, Tag("schema")], Discriminator(_schema_or_name)
]
Openness = Annotated[
    Annotated[Truth, Tag("truth")] | Annotated[Text, Tag("name")] | Annotated[Schema, Tag("schema")],
    Discriminator(_openness),
]


class Server(Written):
    """Who the server is, and how its package is named."""

    name: ServerName
    version: Version = "0.1.0"
    title: Line | None = None
    summary: Line
    instructions: Text | None = None
    package: Package | None = None
    dependencies: tuple[Line, ...] = ()


class Http(Written):
    """The streamable HTTP transport."""

    host: Text = "127.0.0.1"
    port: Count = 7777
    path: Text = "/mcp"
    origins: tuple[Text, ...] = ()
    hosts: tuple[Text, ...] = ()
    replies: Literal["json", "stream"] = "json"


class Stdio(Written):
    """The stdio transport, which has no options."""


class Serve(Written):
    """The transports that are offered."""

    protocols: tuple[Text, ...] = ()
    stdio: Stdio | None = None
    http: Http | None = None


class CallLimits(Written):
    """Limits of one call."""

    timeout: Seconds | None = None
    output: Bytes | None = None
    concurrency: Annotated[Count, Field(ge=1)] | None = None


class ServerLimits(CallLimits):
    """Limits of the server and of every call that has none of its own."""

    body: Bytes = 1 << 20
    ops: Annotated[Count, Field(ge=1)] = 8


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
    Annotated[Pointer, Tag("text")] | Annotated[dict[ParameterName, Pointer], Tag("map")], Discriminator(_shape)
]
PointerOrErrorPointers = Annotated[
    Annotated[Pointer, Tag("text")] | Annotated[ErrorPointers, Tag("map")], Discriminator(_shape)
]


class ReplyPointers(Written):
    """Where things stand in a JSON reply."""

    expect: dict[Pointer, tuple[Data, ...]] = {}
    ok: Pointer | None = None
    result: PointerOrPointers | None = None
    error: PointerOrErrorPointers | None = None


Reply = Annotated[
    Annotated[Literal["json", "text", "lines"], BeforeValidator(_text), Tag("text")]
    | Annotated[ReplyPointers, Tag("map")],
    Discriminator(_shape),
]


class VersionQuestion(Written):
    """How a command line is asked for its version, and which versions fit."""

    ask: Words
    at: Pointer
    accept: Annotated[tuple[Version, ...], Field(min_length=1)]


class CliBackend(Written):
    """A command line."""

    cli: Line
    args: tuple[Text, ...] = ()
    env: tuple[Variable, ...] = ("PATH",)
    fenced: tuple[Words, ...] = ()
    version: VersionQuestion | None = None
    reply: Reply = "json"
    refusals: dict[ExitCode, KindName] = {}
    limits: CallLimits = CallLimits()


class PythonBackend(Written):
    """Hand-written Python beside the spec."""

    python: Annotated[
        Text,
        AfterValidator(
            matching(r"[a-z][a-z0-9_]*(\.py)?", "must be a file such as handlers.py, or a folder, beside the spec")
        ),
    ]
    limits: CallLimits = CallLimits()


class JobsBackend(Written):
    """Background runs of a command line."""

    jobs: BackendName
    hooks: BackendName | None = None
    limits: JobLimits = JobLimits()


class HttpBackend(Written):
    """A REST service."""

    http: Line
    credentials: Text | None = None
    headers: dict[Text, Text] = {}
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
        Annotated[Literal["start"], BeforeValidator(_text), Tag("text")] | Annotated[dict[Text, Agent], Tag("map")],
        Discriminator(_shape),
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


def backend_kind(value: Any) -> str | None:
    """The kind a backend is of: the key that only this kind has."""
    if isinstance(value, Written):
        return next(kind for kind, model in KINDS_OF_BACKEND.items() if type(value) is model)
    return next((kind for kind in KINDS_OF_BACKEND if isinstance(value, dict) and kind in value), None)


Backend = Annotated[
    Annotated[CliBackend, Tag("cli")]
    | Annotated[JobsBackend, Tag("jobs")]
    | Annotated[HttpBackend, Tag("http")]
    | Annotated[McpBackend, Tag("mcp")]
    | Annotated[GatewayBackend, Tag("gateway")]
    | Annotated[AgentsBackend, Tag("agents")]
    | Annotated[PythonBackend, Tag("python")],
    Discriminator(
        backend_kind,
        custom_error_type="verbc",
        custom_error_message="must name its kind: cli, jobs, http, mcp, gateway, agents or python",
    ),
]


class Run(BaseModel):
    """What runs a verb: `{<backend>: <target>, options}`. The backend's name is the one key that is no option."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Text] = Field(init=False)

    as_: Annotated[dict[ParameterName, Text], Field(alias="as")] = {}
    positional: tuple[Text, ...] = ()
    json_: Annotated[tuple[Text, ...], Field(alias="json")] = ()
    held: tuple[Text, ...] = ()
    reply: Reply | None = None
    refusals: dict[ExitCode, KindName] = {}

    @property
    def targets(self) -> dict[str, str]:
        """Backend name → target, as written; a whole verb has exactly one."""
        return self.__pydantic_extra__


RUN_OPTIONS = frozenset({"as", "positional", "json", "held", "reply", "refusals"})


class Example(Written):
    """A call, and what it may come to."""

    args: dict[ParameterName, Data] = {}
    result: Data = None
    refusal: KindName | None = None


class Verb(Written):
    """One operation, or a part of one in `shared`."""

    summary: Line | None = None
    description: Text | None = None
    use: tuple[Text, ...] = ()
    effect: Literal["read", "add", "write", "delete"] | None = None
    idempotent: Annotated[Literal[True, False, "key", "derived"], BeforeValidator(native)] | None = None
    params: dict[ParameterName, SchemaOrName] = {}
    required: tuple[Text, ...] = ()
    refused: dict[ParameterName, Line] = {}
    result: SchemaOrName | None = None
    requires: tuple[Line, ...] | None = None
    fingerprint: Literal["required"] | None = None
    varies_with: dict[ParameterName, BackendName] = {}
    limits: CallLimits = CallLimits()
    examples: tuple[Example, ...] = ()
    unavailable: Line | None = None
    run: Run | None = None


class Synonyms(Written):
    """Old names that still work, and until when callers are told they will."""

    removed_after: Line | None = None
    verbs: dict[VerbName, VerbName] = {}


class Access(Written):
    """Who may do what."""

    verify: dict[Text, Data] | None = None
    scopes: dict[Text, tuple[Text, ...]] = {}
    pin: dict[Text, Text] = {}
    policy: dict[Text, Data] = {}


class Spec(Written):
    """A whole spec."""

    verbc: Annotated[Literal[1], BeforeValidator(native)]
    server: Server
    backends: Annotated[dict[BackendName, Backend], Field(min_length=1)]
    surface: Literal["tools", "request"] = "tools"
    serve: Serve | None = None
    limits: ServerLimits = ServerLimits()
    feedback: Literal["names", "shapes"] = "names"
    kinds: dict[KindName, Line] = {}
    synonyms: Synonyms = Synonyms()
    access: Access | None = None
    types: dict[TypeName, SchemaOrName] = {}
    shared: dict[Annotated[Text, Field(min_length=1)], Verb] = {}
    verbs: Annotated[dict[VerbName, Verb], Field(min_length=1)]
