"""How the end of a command becomes a result or a refusal, as the `reply` and `refusals` of its verb say."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from . import strict_json
from .foreign_text import short_text, short_value
from .pointer import MISSING, look_up
from .process import Finished
from .quoting import quoted
from .refusal import Refusal
from .registry import Run

_ERROR_MEMBERS = ("kind", "message", "detail")


def read_reply(finished: Finished, run: Run, kinds: Collection[str]) -> Any:
    """The result of a command that has ended. `kinds` are those that a refusal may have.

    Raises Refusal: what the command refused, in its own words, or `internal` when its reply is not what was agreed.
    """
    reply = _Reply(finished, run.reply, run.refusals, kinds, quoted(" ".join(run.target)))
    if reply.form.get("ok") is not None:
        return reply.read_envelope()
    if finished.code != 0:
        raise reply.failure()
    return reply.read_output()


def parse_output(finished: Finished, command: str, kind: str = "internal") -> Any:
    """The one JSON document that a command printed; `command` names it in messages. Raises Refusal, of this kind."""
    if not finished.stdout.strip():
        raise _fault(finished, f"{command} {_ending(finished.code)} without a reply.", kind=kind)
    try:
        return strict_json.parse(finished.stdout)
    except strict_json.Unacceptable as error:
        reason = "is more than one JSON document" if _is_several(finished.stdout) else error.reason
    raise _fault(finished, f"The reply of {command} {reason}.", kind=kind)


@dataclass(frozen=True, slots=True)
class _Reply:
    finished: Finished
    form: Mapping[str, Any]
    refusals: Mapping[str, str]
    kinds: Collection[str]
    command: str

    def read_envelope(self) -> Any:
        """A reply that says itself whether it is a result."""
        document = parse_output(self.finished, self.command, self._kind_by_exit_code())
        if not isinstance(document, dict | list):
            raise self._fault(f"The reply of {self.command} is JSON, but not an object.")
        self._check_expected(document)
        ok = look_up(document, self.form["ok"])
        if not isinstance(ok, bool):
            raise self._fault(f"The reply of {self.command} does not say whether it went well.")
        if not ok:
            raise self._with_exit_code(self._refused(document))
        if self.finished.code != 0:
            message = f"{self.command} replied that it went well, but {_ending(self.finished.code)}."
            raise self._fault(message, kind="internal")
        return self._result(document)

    def read_output(self) -> Any:
        """The reply of a command that says by its exit code that it is a result."""
        match self.form["form"]:
            case "text":
                return self._text()
            case "lines":
                return self._text().replace("\r\n", "\n").removesuffix("\n").split("\n") if self.finished.stdout else []
            case "json":
                return parse_output(self.finished, self.command)
            case _:
                document = parse_output(self.finished, self.command)
                self._check_expected(document)
                return self._result(document)

    def failure(self) -> Refusal:
        """The refusal of a command that says by its exit code that it is none of the results."""
        output = self._printed()
        if _error(output, self.form.get("error")):
            refusal = self._refused(output)
        else:
            detail = {"output": short_value(output)} if output else {}
            refusal = Refusal(self._kind_by_exit_code(), f"{self.command} {_ending(self.finished.code)}.", detail)
        return self._with_exit_code(refusal)

    def _with_exit_code(self, refusal: Refusal) -> Refusal:
        """A refusal of a command that failed says how it ended; one that a command takes for an answer is left alone."""
        if self.finished.code != 0:
            refusal.detail = {**(refusal.detail or {}), **_circumstances(self.finished)}
        return refusal

    def _text(self) -> str:
        return self.finished.stdout.decode(errors="replace")

    def _printed(self) -> Any:
        """What a failed command printed: as JSON where it is JSON, else as text."""
        try:
            return strict_json.parse(self.finished.stdout)
        except strict_json.Unacceptable:
            return self._text()

    def _check_expected(self, document: Any) -> None:
        for pointer, accepted in (self.form.get("expect") or {}).items():
            found = look_up(document, pointer)
            if not any(_same(found, value) for value in accepted):
                shown = {} if found is MISSING else {"found": short_value(found)}
                raise self._fault(
                    f"The reply of {self.command} is of a form that this server does not know.",
                    {"at": pointer, "accepted": list(accepted), **shown},
                )

    def _result(self, document: Any) -> Any:
        wanted = self.form.get("result")
        if isinstance(wanted, Mapping):
            return {name: self._part(document, pointer) for name, pointer in wanted.items()}
        return self._part(document, wanted or "")

    def _part(self, document: Any, pointer: str) -> Any:
        value = look_up(document, pointer)
        if value is MISSING:
            raise self._fault(f"The reply of {self.command} lacks its result, {quoted(pointer)}.")
        return value

    def _refused(self, document: Any) -> Refusal:
        error = _error(document, self.form.get("error"))
        if not error:
            return self._fault(f"{self.command} was refused without saying why.")
        kind, message = error.get("kind"), _message(error, self.command)
        if isinstance(kind, str) and kind in self.kinds:
            return Refusal(kind, message, _detail(error.get("detail")))
        if kind is None:
            return Refusal(self._kind_by_exit_code(), message, _detail(error.get("detail")))
        if str(self.finished.code) not in self.refusals:
            message = f"{self.command} was refused, with a kind that is not declared."
        return Refusal(self._kind_by_exit_code(), message, _detail(error))

    def _kind_by_exit_code(self) -> str:
        return self.refusals.get(str(self.finished.code), "internal")

    def _fault(self, message: str, detail: Mapping[str, Any] | None = None, kind: str | None = None) -> Refusal:
        return _fault(self.finished, message, detail, kind or self._kind_by_exit_code())


def _fault(
    finished: Finished, message: str, detail: Mapping[str, Any] | None = None, kind: str = "internal"
) -> Refusal:
    return Refusal(kind, message, {**(detail or {}), **_circumstances(finished)})


def _circumstances(finished: Finished) -> dict[str, Any]:
    failed = {"exit_code": finished.code} if finished.code != 0 else {}
    return {**failed, "stderr": finished.stderr}


def _ending(code: int) -> str:
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"


def _is_several(output: bytes) -> bool:
    decoder = json.JSONDecoder()
    try:
        text = output.decode().strip()
        _, end = decoder.raw_decode(text)
        decoder.raw_decode(text[end:].lstrip())
    except (ValueError, RecursionError):
        return False
    return True


def _same(found: Any, accepted: Any) -> bool:
    """Equality as in JSON, where `true` is not 1."""
    return isinstance(found, bool) == isinstance(accepted, bool) and bool(found == accepted)


def _error(document: Any, places: str | Mapping[str, str] | None) -> dict[str, Any]:
    """Kind, message and detail as far as the document has them."""
    if places is None:
        return {}
    if isinstance(places, str):
        found = look_up(document, places)
        places = {name: "/" + name for name in _ERROR_MEMBERS} if isinstance(found, dict) else {}
        document = found
    values = {name: look_up(document, pointer) for name, pointer in places.items()}
    return {name: value for name, value in values.items() if value is not MISSING and value is not None}


def _message(error: Mapping[str, Any], command: str) -> str:
    message = error.get("message")
    return short_text(message) if isinstance(message, str) and message.strip() else f"{command} was refused."


def _detail(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    shown = short_value(value)
    return shown if isinstance(shown, dict) else {"detail": shown}
