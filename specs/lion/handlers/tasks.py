"""The task of a run: where its text comes from, and whether li would have what it needs to start."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lion_mcp.interface import Refusal
from lion_mcp.models import AgentSubmitParams, FanoutSubmitParams, FlowSubmitParams, PlaySubmitParams

from .bounded_reading import UnreadableError, text_of

Params = AgentSubmitParams | FlowSubmitParams | PlaySubmitParams | FanoutSubmitParams
Kind = Literal["agent", "flow", "play", "fanout"]

LONGEST_TASK = 262_144  # characters
MOST_POSITIONALS = 2  # a model and the task


@dataclass(frozen=True, slots=True)
class Task:
    """What the run is told, where `prompt` or `prompt_file` says it; `text` is None when only `query` may."""

    text: str | None
    from_file: bool


def task_of(kind: Kind, params: Params) -> Task:
    """The task of a submission. Raises Refusal when there is none, or too much of it."""
    task = _task(params)
    query = params.query or []
    if len(query) + (task.text is not None) > MOST_POSITIONALS:
        raise Refusal("invalid_input", "query holds a model and the task, and prompt is the task: that is too many.")
    if kind == "agent" and not _agent_has_model(params, query, task):
        sentence = (
            "The run has no model. Give it as the first item of query beside the task, or name a profile with agent."
        )
        raise Refusal("invalid_input", sentence)
    said = query[-1] if task.text is None and query else task.text
    if not (said or "").strip() and not _brings_a_task(params):
        raise Refusal(
            "invalid_input", "The run has no task. Give prompt, prompt_file, or the task as last item of query."
        )
    return task


def _task(params: Params) -> Task:
    if params.prompt_file is None:
        if params.prompt is not None and not params.prompt.strip():
            raise Refusal("invalid_input", "prompt is blank.")
        return Task(params.prompt, from_file=False)
    if params.prompt is not None:
        raise Refusal("invalid_input", "Give prompt or prompt_file, not both.")
    return Task(_read(params.prompt_file), from_file=True)


def _read(name: str) -> str:
    if name == "-":
        raise Refusal("invalid_input", "prompt_file cannot be standard input: a run in the background has none.")
    if not Path(name).is_absolute():
        raise Refusal("invalid_input", "prompt_file has to be an absolute path.")
    try:
        text = text_of(Path(name), 4 * LONGEST_TASK)
    except UnreadableError as error:
        raise Refusal("invalid_input", f"prompt_file cannot be used. {error}") from None
    if not text.strip():
        raise Refusal("invalid_input", "prompt_file is blank.")
    if len(text) > LONGEST_TASK:
        raise Refusal("invalid_input", f"prompt_file is longer than {LONGEST_TASK} characters.")
    return text


def _agent_has_model(params: Params, query: list[str], task: Task) -> bool:
    """A profile and a conversation bring a model; of the positionals the first one is the model only before another."""
    continues = isinstance(params, AgentSubmitParams) and (params.resume is not None or params.continue_last is True)
    return params.agent is not None or continues or len(query) + (task.text is not None) == MOST_POSITIONALS


def _brings_a_task(params: Params) -> bool:
    """A ready flow, a playbook and a run that goes on may hold the task themselves."""
    if isinstance(params, FlowSubmitParams | PlaySubmitParams):
        return params.file is not None or params.playbook is not None or params.resume is not None
    return False
