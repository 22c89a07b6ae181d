"""Whether anybody answered: li calls a run a success also where the provider said nothing at all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from .bounded_reading import UnreadableError, object_of
from .run_files import summary_in

LARGEST_CONVERSATION = 1 << 22  # bytes; of a longer one nothing is said
MOST_CONVERSATIONS = 32

State = Literal["given", "empty", "partly_empty", "unknown"]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the conversations of a run ended with."""

    state: State
    asked: int = 0
    empty: int = 0

    @property
    def sentence(self) -> str | None:
        """What there is to be said about it."""
        if self.state == "empty":
            return "The provider answered with nothing." if self.asked else "No worker was given anything to do."
        return f"{self.empty} of {self.asked} workers answered with nothing." if self.state == "partly_empty" else None


UNKNOWN = Answers("unknown")


def answers_in(folder: Path, kind: str, status: str) -> Answers:
    """The answers in the folder that li has for a run of this kind, which ended with this status.

    An agent has one conversation; elsewhere the conversation that the run is named by is the planner's, and the others are
    those of its workers.
    """
    summary = summary_in(folder)
    if summary is None or summary.get("status") != status:
        return UNKNOWN  # the run went on elsewhere, or another one had this folder
    first = summary.get("branch_id")
    conversations = _conversations(folder / "branches")
    workers = [path for path in conversations if (path.stem == first) == (kind == "agent")]
    if len(conversations) > MOST_CONVERSATIONS:
        return UNKNOWN
    if not workers:
        # A fanout without workers had a planner that found nothing to do; a flow may have been asked for a plan only.
        return Answers("empty") if kind == "fanout" else UNKNOWN
    return judged([_is_answered(path) for path in workers])


def judged(answered: list[bool | None]) -> Answers:
    """From whether each conversation was answered; None: that cannot be told."""
    asked, empty = len(answered), answered.count(False)
    if None in answered:
        return UNKNOWN
    if empty == asked:
        return Answers("empty", asked, empty)
    return Answers("partly_empty" if empty else "given", asked, empty)


def _conversations(folder: Path) -> list[Path]:
    try:
        return sorted(islice(folder.glob("*.json"), MOST_CONVERSATIONS + 1))
    except OSError:
        return []


def _is_answered(path: Path) -> bool | None:
    try:
        messages = object_of(path, LARGEST_CONVERSATION).get("messages")
    except UnreadableError:
        return None
    collected = messages.get("collections") if isinstance(messages, Mapping) else None
    return is_answered(collected) if isinstance(collected, list) else None


def is_answered(messages: Iterable[object]) -> bool | None:
    """Whether an assistant says anything after what was last asked; None when nothing was asked."""
    answered: bool | None = None
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "user":
            answered = False
        elif role == "assistant" and answered is False:
            answered = _says_something(message)
    return answered


def _says_something(message: object) -> bool:
    content = message.get("content") if isinstance(message, Mapping) else None
    answer = content.get("assistant_response") if isinstance(content, Mapping) else content
    return bool(answer.strip() if isinstance(answer, str) else answer)
