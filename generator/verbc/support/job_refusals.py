"""What can go wrong with the keeping and the starting of runs, as answers to callers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .launch import StartError
from .refusal import Refusal
from .run_rows import UnreadableError
from .run_store import ConflictError, TakenError
from .state_folder import StateFolderError
from .store import StoreError


@contextmanager
def refusals(run_id: str | None = None) -> Iterator[None]:
    """Raises a Refusal for what goes wrong inside; `run_id` is that of a run that is about to be started."""
    try:
        yield
    except StartError as error:
        raise Refusal("unavailable", str(error), None if run_id is None else {"run_id": run_id}) from None
    except ConflictError:
        raise Refusal("conflict", "The idempotency key stands for a call with other arguments.") from None
    except TakenError:
        raise Refusal("busy", "The id that the run was to have is taken; call again.") from None
    except UnreadableError:
        raise Refusal("unavailable", "The record of the run that the key stands for cannot be read.") from None
    except (StoreError, StateFolderError) as error:
        raise Refusal("unavailable", str(error)) from None
