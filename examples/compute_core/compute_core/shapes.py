"""What the bodies of requests may hold: exactly this, nothing beside it, nothing converted."""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator
from pydantic_core import PydanticCustomError

ACCOUNT_PATTERN: Final = "^acct_[0-9a-z]{12}$"

Account = Annotated[str, StringConstraints(pattern=ACCOUNT_PATTERN)]
Digest = Annotated[str, StringConstraints(pattern="^sha256:[0-9a-f]{64}$")]
Handle = Annotated[str, StringConstraints(pattern="^(qt|jb|bt)_[0-9a-hjkmnp-tv-z]{26}$")]
Label = Annotated[str, StringConstraints(max_length=200)]
Price = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}\.[0-9]{2} [A-Z]{3}$")]
Workflow = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9-]{0,62}@[0-9]+$")]


def _all_different(items: list[str]) -> list[str]:
    if len(set(items)) != len(items):
        raise PydanticCustomError("not_unique", "")
    return items


class Strict(BaseModel):
    """A shape; in it, a member is left out or has a value, and null is none."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_null(cls, value: Any) -> Any:
        if value is None:
            raise PydanticCustomError("null", "")
        return value


class Job(Strict):
    """The work that a quote is asked for. `max_price` is in euros; the price is refused when it is higher."""

    workflow: Workflow
    source_digest: Digest
    evidence: Annotated[list[Digest], Field(max_length=64), AfterValidator(_all_different)] = []
    labels: Annotated[dict[str, Label], Field(max_length=16)] = {}
    max_price: Price | None = None
    account_id: Account | None = None


class QuoteRequest(Strict):
    """The body of POST /quotes."""

    job: Job


class RunRequest(Strict):
    """The body of POST /jobs and of POST /approvals: the handle of a quote."""

    quote: Handle
    account_id: Account | None = None


class BatchRequest(Strict):
    """The body of POST /batches."""

    quotes: Annotated[list[Handle], Field(min_length=1, max_length=100), AfterValidator(_all_different)]
    account_id: Account | None = None
