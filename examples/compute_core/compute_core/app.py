"""The application: its routes, and the worker that lives as long as it does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from .approvals import approve
from .batches import read_batch, start_batch
from .core import Core, Reply, Settings, open_core
from .endpoints import Answer, Endpoint, guarded, no_route, posting, reading
from .introspection import introspecting, read_key
from .jobs import read_job, read_result, read_result_bytes, start_job
from .log import start_logging
from .quotes import read_quote, request_quote
from .shapes import BatchRequest, QuoteRequest, RunRequest
from .worker import Worker

_READ = ("compute:read",)
_READ_TERMS = ("compute:quote", "compute:read", "compute:approve")


def create_app(core: Core, *, works: bool = True) -> Starlette:
    """The application over `core`, which it closes at its end; without a worker, jobs are left to other processes."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        worker = Worker(core)
        if works:
            worker.start()
        try:
            yield
        finally:
            if works:
                await run_in_threadpool(worker.stop)
            core.store.close()

    return Starlette(routes=_routes(core), lifespan=lifespan, exception_handlers={HTTPException: no_route})


def from_environment() -> Starlette:
    """The application of one process of a service, with the settings that the command has left for it."""
    start_logging()
    return create_app(open_core(Settings.from_environment()))


def _routes(core: Core) -> list[Route]:
    return [
        _post("/quotes", posting(core, "compute:quote", QuoteRequest, request_quote)),
        _get("/quotes/{handle}", reading(core, _READ_TERMS, read_quote)),
        _post("/approvals", posting(core, "compute:approve", RunRequest, approve)),
        _post("/jobs", posting(core, "compute:run", RunRequest, start_job)),
        _get("/jobs/{handle}", reading(core, _READ, read_job)),
        _get("/jobs/{handle}/result", reading(core, _READ, read_result)),
        _get("/results/{handle}", reading(core, _READ, read_result_bytes)),
        _post("/batches", posting(core, "compute:run", BatchRequest, start_batch)),
        _get("/batches/{handle}", reading(core, _READ, read_batch)),
        _get("/key", reading(core, (), read_key)),
        _post("/introspect", guarded(introspecting(core))),
        _get("/terms-key", guarded(_terms_key(core))),
    ]


def _terms_key(core: Core) -> Answer:
    async def answer(_request: Request) -> Reply:
        return Reply(dict(core.signer.public_key))

    return answer


def _post(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["POST"])


def _get(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["GET"])
