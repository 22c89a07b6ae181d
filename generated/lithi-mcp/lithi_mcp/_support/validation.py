"""Values against schemas: the generic limits, then JSON Schema as it is advertised, then words for what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .feedback import Feedback
from .refusal import Refusal
from .strict_json import Unacceptable, limited

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError
    from jsonschema_rs import Validator as Compiled

# Collecting every error takes time and memory for each of them; of large values only the first error is looked for.
_VALUES_FOR_ALL_ERRORS = 2000


class Validator:
    """One schema, compiled on first use.

    Its `check` methods raise ValueError when the schema is not one: what comes from outside must be tried first.
    """

    def __init__(
        self,
        schema: dict[str, Any],
        *,
        names: bool = True,
        refused: Mapping[str, str] | None = None,
        subject: str,
        verb: str | None = None,
        any_draft: bool = False,
    ) -> None:
        """`any_draft`: the schema is of the draft that its `$schema` names, and not of 2020-12 in any case."""
        self._schema = schema
        self._any_draft = any_draft
        self._feedback = Feedback(schema, names, refused or {}, subject, verb)
        self._compiled: Compiled | None = None

    def compile(self) -> None:
        """Make it ready. Raises ValueError for what is not a JSON Schema of its draft."""
        from jsonschema_rs import Draft202012Validator, validator_for  # the import costs more than most calls

        draft = validator_for if self._any_draft else Draft202012Validator
        self._compiled = draft(self._schema, validate_formats=True, offline=True)

    def problems(self, value: Any) -> list[str]:
        """What is wrong with `value`, which is within the generic limits; an empty list when it fits."""
        validator = self._ready()
        try:
            if validator.is_valid(value) and not self._takes_refused(value):
                return []
            return self._feedback.problems(self._errors(value), value)
        except BaseException as error:
            # Whatever went wrong, also inside native code: a value that cannot be checked is not let through.
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return [f"{self._feedback.subject} could not be checked"]

    def fits(self, value: dict[str, Any], member: str) -> bool:
        """Whether this member of `value` fits, whatever is wrong with the others."""
        try:
            return all(error.instance_path[:1] != [member] for error in self._errors(value))
        except Exception:
            return False

    def _takes_refused(self, value: Any) -> bool:
        return isinstance(value, dict) and not self._feedback.refused.keys().isdisjoint(value)

    def _errors(self, value: Any) -> Iterator[ValidationError]:
        validator = self._ready()
        if _count(value, _VALUES_FOR_ALL_ERRORS) < _VALUES_FOR_ALL_ERRORS:
            yield from validator.iter_errors(value)
            return
        try:
            validator.validate(value)
        except ValueError as error:
            yield error  # type: ignore[misc]

    def _ready(self) -> Compiled:
        if self._compiled is None:
            self.compile()
        assert self._compiled is not None  # noqa: S101
        return self._compiled


def bounded_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments within the generic limits, numbers in their one form. Raises Refusal `invalid_input`."""
    try:
        kept: dict[str, Any] = limited(arguments)
    except Unacceptable as error:
        raise invalid([f"the arguments object {error.reason}"]) from None
    return kept


def bounded_result(value: Any) -> Any:
    """A result within the generic limits, numbers in their one form. Raises Refusal `internal`."""
    try:
        return limited(value)
    except Unacceptable as error:
        raise Refusal("internal", f"The result cannot be sent: it {error.reason}.") from None


def invalid(problems: list[str]) -> Refusal:
    """The refusal of arguments with these problems."""
    *first, last = problems
    message = "; ".join([*(problem.removesuffix(".") for problem in first), last])
    return Refusal("invalid_input", message, {"problems": problems})


def _count(value: Any, most: int) -> int:
    """How many values there are in `value`, itself included, counted up to `most`."""
    count, waiting = 0, [value]
    while waiting and count < most:
        item = waiting.pop()
        count += 1
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return count
