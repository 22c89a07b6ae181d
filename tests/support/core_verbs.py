"""Verbs of a REST service as the compiler writes them: typed views, one function for each verb, and their bindings."""

from __future__ import annotations

from pydantic import Field

from verbc.support.binding import Binding
from verbc.support.http_request import HttpRequest, http_request
from verbc.support.members import nullable
from verbc.support.model import Closed


class Job(Closed):
    workflow: str
    source_digest: str
    evidence: list[str] | None = None
    labels: dict[str, str] | None = None
    account_id: str | None = None


class QuoteParams(Closed):
    job: Job


class RunParams(Closed):
    quote: str
    account_id: str | None = None


class BatchParams(Closed):
    quotes: list[str]
    account_id: str | None = None


class StatusParams(Closed):
    handle: str
    account_id: str | None = None


class OrderParams(Closed):
    idempotency_key: str | None = None
    item: str
    count: int | None = None
    note: str | None = None


class FindParams(Closed):
    tags: list[str] | None = None
    exact: bool | None = None
    page_size: int | None = None
    class_: str | None = Field(alias="class", default=None)


def core_quote(params: QuoteParams) -> HttpRequest:
    """Price a job. Spends nothing."""
    return http_request(
        "POST",
        "/quotes",
        body={"job": params.job},
    )


def core_run(params: RunParams) -> HttpRequest:
    """Start the work of a quote."""
    return http_request(
        "POST",
        "/jobs",
        body={
            "quote": params.quote,
            "account_id": params.account_id,
        },
    )


def core_batch(params: BatchParams) -> HttpRequest:
    """Start the work of many quotes as one batch."""
    return http_request(
        "POST",
        "/batches",
        body={
            "quotes": params.quotes,
            "account_id": params.account_id,
        },
    )


def core_status(params: StatusParams) -> HttpRequest:
    """Where a job stands."""
    return http_request(
        "GET",
        "/jobs/<handle>",
        segments={"handle": params.handle},
        query={"account_id": params.account_id},
    )


def core_result(params: StatusParams) -> HttpRequest:
    """What a job came to."""
    return http_request(
        "GET",
        "/jobs/<handle>/result",
        segments={"handle": params.handle},
        query={"account_id": params.account_id},
    )


def core_order(params: OrderParams) -> HttpRequest:
    """Order something: with a key of the caller's, names of the service's own, and a note that may be null."""
    return http_request(
        "PUT",
        "/orders",
        body={
            "itemId": params.item,
            "count": params.count,
            "note": nullable(params, "note"),
        },
    )


def core_find(params: FindParams) -> HttpRequest:
    """Find something."""
    return http_request(
        "GET",
        "/things",
        query={
            "tag": params.tags,
            "exact": params.exact,
            "pageSize": params.page_size,
            "class": params.class_,
        },
    )


def core_ping() -> HttpRequest:
    """See whether it lives."""
    return http_request("POST", "/ping")


VERBS: dict[str, Binding] = {
    "core.quote": Binding(core_quote, QuoteParams),
    "core.run": Binding(core_run, RunParams),
    "core.batch": Binding(core_batch, BatchParams),
    "core.status": Binding(core_status, StatusParams),
    "core.result": Binding(core_result, StatusParams),
    "core.order": Binding(core_order, OrderParams),
    "core.find": Binding(core_find, FindParams),
    "core.ping": Binding(core_ping),
}
