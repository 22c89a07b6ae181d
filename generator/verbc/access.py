"""The part of the spec language that says who may call, and what they may do."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field

from .scalars import (
    Bytes,
    Count,
    Expanded,
    ExpandedText,
    Filled,
    Grant,
    HeaderName,
    ParameterName,
    Pointer,
    Seconds,
    Text,
)
from .written import TAG, Written, as_text, shape, tagged

ALGORITHMS = ("ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")


class KeysFile(Written):
    """A file of hashed keys."""

    keys: Expanded


class Introspection(Written):
    """A service that tells what a key stands for, as RFC 7662 has it."""

    introspect: Expanded
    headers: dict[HeaderName, ExpandedText] = {}  # how this server tells who it is
    subject: Text = "sub"
    account: Text | None = None
    scopes: Text = "scope"


class Jwt(Written):
    """Signed tokens, and where the keys to check them are published."""

    jwt: Expanded
    algorithms: Annotated[tuple[Literal[ALGORITHMS], ...], Filled]  # type: ignore[valid-type]
    issuer: Expanded
    audience: Expanded
    subject: Text = "sub"
    account: Text | None = None
    scopes: Text = "scope"


class Asked(BaseModel):
    """A request to an http backend, with the caller's own key: `{<backend>: GET /key, subject: /id}`."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    subject: Pointer
    account: Pointer | None = None
    scopes: Pointer | None = None
    expires: Pointer | None = None

    @property
    def targets(self) -> dict[str, Any]:
        """Backend name → target, as written."""
        return self.__pydantic_extra__


def _way(value: Any) -> str | None:
    """The way to verify keys, told by the key that only this way has."""
    if not isinstance(value, dict):
        return None
    return next((f"{TAG}{way}" for way in ("keys", "introspect", "jwt") if way in value), f"{TAG}backend")


Verify = Annotated[
    Annotated[KeysFile, tagged("keys")]
    | Annotated[Introspection, tagged("introspect")]
    | Annotated[Jwt, tagged("jwt")]
    | Annotated[Asked, tagged("backend")],
    Discriminator(
        _way,
        custom_error_type="verbc",
        custom_error_message="must be a map that names a way: keys, introspect, jwt, or an http backend",
    ),
]


class AskedFor(Written):
    """A right that somebody has to approve each time."""

    right: Grant
    approver: Annotated[Literal["operator", "client"], BeforeValidator(as_text)] = "operator"


RightOrAskedFor = Annotated[
    Annotated[Grant, tagged("text")] | Annotated[AskedFor, tagged("a map")], Discriminator(shape)
]


class Budget(Written):
    """What a subject may use in some time."""

    calls: Count | None = None
    bytes: Bytes | None = None
    per: Seconds


class SubjectPolicy(Written):
    """What one subject may do."""

    allow: tuple[Grant, ...] = ()
    ask: tuple[RightOrAskedFor, ...] = ()
    deny: tuple[Grant, ...] = ()
    budget: Budget | None = None


class Access(Written):
    """Who may do what."""

    verify: Verify | None = None
    scopes: dict[Text, Annotated[tuple[Grant, ...], Filled]] = {}
    pin: dict[ParameterName, Literal["account", "subject"]] = {}
    policy: dict[Text, SubjectPolicy] | None = None
