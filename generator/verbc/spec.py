"""The spec language as it is written: one frozen model for each map of a spec.

Everything is checked alone here, key by key; what has to fit together is checked in `rules`. A partial verb of `shared`
is written like a verb, so a verb's `summary` and `run` are asked for only once it has been put together.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field

from .access import Access
from .backends import Backend, CallLimits, Reply
from .scalars import (
    PROTOCOLS,
    BackendName,
    Bytes,
    Count,
    Data,
    Date,
    ExitCode,
    Filled,
    FormatVersion,
    HeaderName,
    Host,
    Idempotency,
    KindName,
    Line,
    Number,
    Origin,
    Package,
    ParameterName,
    Port,
    Protocol,
    Requirement,
    ServedHost,
    ServerName,
    Text,
    Truth,
    TypeName,
    UrlPath,
    VerbName,
    Version,
)
from .source import Plain
from .written import TAG, Written, shape, tagged

TextOrTexts = Annotated[
    Annotated[Text, tagged("text")] | Annotated[tuple[Text, ...], tagged("a list")], Discriminator(shape)
]


CONTENT = "content"  # the result of a verb whose handler gives blocks of content


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
    x_mcp_header: Annotated[HeaderName | None, Field(alias="x-mcp-header")] = None
    default: Data = None
    description: Text | None = None
    deprecated: Truth | None = None


def _openness(value: Any) -> str:
    truth = isinstance(value, Plain) and value in ("true", "false")
    return f"{TAG}true or false" if truth else shape(value)


SchemaOrName = Annotated[Annotated[Text, tagged("text")] | Annotated[Schema, tagged("a map")], Discriminator(shape)]
Openness = Annotated[
    Annotated[Truth, tagged("true or false")] | Annotated[Text, tagged("text")] | Annotated[Schema, tagged("a map")],
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
    dependencies: tuple[Requirement, ...] = ()


class Http(Written):
    """The streamable HTTP transport."""

    host: Host = "127.0.0.1"
    port: Port = 7777
    path: UrlPath = "/mcp"
    origins: tuple[Origin, ...] = ()
    hosts: tuple[ServedHost, ...] = ()
    replies: Literal["json", "stream"] = "json"


class Stdio(Written):
    """The stdio transport, which has no options."""


class Serve(Written):
    """The transports that are offered."""

    protocols: Annotated[tuple[Protocol, ...], Filled] = PROTOCOLS
    stdio: Stdio | None = None
    http: Http | None = None


class ServerLimits(CallLimits):
    """Limits of the server and of every call that has none of its own."""

    body: Bytes = 1 << 20
    ops: Annotated[Count, Field(ge=1)] = 8


class Run(BaseModel):
    """What runs a verb: `{<backend>: <target>, options}`. The backend's name is the one key that is no option."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    as_: Annotated[dict[ParameterName, Text], Field(alias="as")] = {}
    positional: tuple[Text, ...] = ()
    json_: Annotated[tuple[Text, ...], Field(alias="json")] = ()
    held: tuple[Text, ...] = ()
    reply: Reply | None = None
    refusals: dict[ExitCode, KindName] = {}

    @property
    def targets(self) -> dict[str, Any]:
        """Backend name → target, as written; a whole verb has exactly one, and that is text."""
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
    idempotent: Idempotency | None = None
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

    @property
    def declared(self) -> Schema | str | None:
        """The form that is declared for the result; blocks of content have the one of the protocol."""
        return None if self.result == CONTENT else self.result


class Synonyms(Written):
    """Old names that still work, and until when callers are told they will."""

    removed_after: Date | None = None
    verbs: dict[VerbName, VerbName] = {}


class Spec(Written):
    """A whole spec."""

    verbc: FormatVersion
    server: Server
    backends: Annotated[dict[BackendName, Backend], Filled]
    surface: Literal["tools", "request"] = "tools"
    serve: Serve | None = None
    limits: ServerLimits = ServerLimits()
    feedback: Literal["names", "shapes"] = "names"
    kinds: dict[KindName, Line] = {}
    synonyms: Synonyms = Synonyms()
    access: Access | None = None
    types: dict[TypeName, SchemaOrName] = {}
    shared: dict[Line, Verb] = {}
    verbs: Annotated[dict[VerbName, Verb], Filled]
