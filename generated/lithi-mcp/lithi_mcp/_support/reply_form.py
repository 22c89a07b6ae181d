"""How what came from outside becomes a result or a refusal, as the `reply` of its verb says; where it came from is open."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from . import strict_json
from .foreign_text import short_text, short_value
from .pointer import MISSING, look_up
from .quoting import quoted
from .refusal import Refusal

_ERROR_MEMBERS = ("kind", "message", "detail")


@dataclass(frozen=True, slots=True)
class Reply:
    """What was asked, and how it ended. `source` and `ending` are words for messages: "`show`", "ended with status 404"."""

    source: str
    ending: str
    went_well: bool
    output: bytes
    circumstances: Mapping[str, Any]  # what tells of a fault, beside its message
    kind: str  # of a refusal that has no declared kind of its own
    kind_is_told: bool  # whether the ending says `kind`; else it is `internal`, for want of a better one
    meaning: str | None = None  # a sentence, where more is known of what this ending means
    output_is_told: bool = True  # whether the output of a failure that is no declared error is passed on

    def document(self, kind: str = "internal") -> Any:
        """The one JSON document that the output is. Raises Refusal, of this kind."""
        if not self.output.strip():
            raise self.fault(f"{self.source} {self.ending} without a reply.", kind=kind)
        try:
            return strict_json.parse(self.output)
        except strict_json.Unacceptable as error:
            reason = "is more than one JSON document" if _is_several(self.output) else error.reason
        raise self.fault(f"The reply of {self.source} {reason}.", kind=kind)

    def fault(self, message: str, detail: Mapping[str, Any] | None = None, kind: str | None = None) -> Refusal:
        """The refusal of a reply that is not what was agreed; its kind is the one of the ending unless it is said."""
        return Refusal(kind or self.kind, message, {**(detail or {}), **self.circumstances})


def read(
    reply: Reply, form: Mapping[str, Any], kinds: Collection[str], sentences: Mapping[str, str] | None = None
) -> Any:
    """The result of a reply that has this form.

    `kinds` are those that a refusal may have; `sentences` say what some of them mean, for refusals without a message.
    Raises Refusal: what was refused, in the words of who refused it, or a fault when the reply is not what was agreed.
    """
    reading = _Reading(reply, form, kinds, sentences or {})
    if form.get("ok") is not None:
        return reading.envelope()
    if not reply.went_well:
        raise reading.failure()
    return reading.output()


@dataclass(frozen=True, slots=True)
class _Reading:
    reply: Reply
    form: Mapping[str, Any]
    kinds: Collection[str]
    sentences: Mapping[str, str]

    def envelope(self) -> Any:
        """A reply that says itself whether it is a result."""
        reply = self.reply
        document = reply.document(reply.kind)
        if not isinstance(document, dict | list):
            raise reply.fault(f"The reply of {reply.source} is JSON, but not an object.")
        self._check_expected(document)
        ok = look_up(document, self.form["ok"])
        if not isinstance(ok, bool):
            raise reply.fault(f"The reply of {reply.source} does not say whether it went well.")
        if not ok:
            raise self._with_circumstances(self._refused(document))
        if not reply.went_well:
            raise reply.fault(f"{reply.source} replied that it went well, but {reply.ending}.", kind="internal")
        return self._result(document)

    def output(self) -> Any:
        """A reply whose ending says that it is a result."""
        match self.form["form"]:
            case "text":
                return self._text()
            case "lines":
                return self._text().replace("\r\n", "\n").removesuffix("\n").split("\n") if self.reply.output else []
            case "json":
                return self.reply.document()
            case _:
                document = self.reply.document()
                self._check_expected(document)
                return self._result(document)

    def failure(self) -> Refusal:
        """The refusal in a reply whose ending says that it is none of the results."""
        output = self._parsed()
        if _error(output, self.form.get("error")):
            refusal = self._refused(output)
        else:
            detail = {"output": short_value(output)} if output and self.reply.output_is_told else {}
            message = self.reply.meaning or f"{self.reply.source} {self.reply.ending}."
            refusal = Refusal(self.reply.kind, message, detail)
        return self._with_circumstances(refusal)

    def _with_circumstances(self, refusal: Refusal) -> Refusal:
        """A refusal says how it ended where that was no good end; one that is an answer like any other is left alone."""
        if not self.reply.went_well:
            refusal.detail = {**(refusal.detail or {}), **self.reply.circumstances}
        return refusal

    def _text(self) -> str:
        return self.reply.output.decode(errors="replace")

    def _parsed(self) -> Any:
        """The output of what failed: as JSON where it is JSON, else as text."""
        try:
            return strict_json.parse(self.reply.output)
        except strict_json.Unacceptable:
            return self._text()

    def _check_expected(self, document: Any) -> None:
        for pointer, accepted in (self.form.get("expect") or {}).items():
            found = look_up(document, pointer)
            if not any(_same(found, value) for value in accepted):
                shown = {} if found is MISSING else {"found": short_value(found)}
                raise self.reply.fault(
                    f"The reply of {self.reply.source} is of a form that this server does not know.",
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
            raise self.reply.fault(f"The reply of {self.reply.source} lacks its result, {quoted(pointer)}.")
        return value

    def _refused(self, document: Any) -> Refusal:
        error, reply = _error(document, self.form.get("error")), self.reply
        if not error:
            return reply.fault(f"{reply.source} was refused without saying why.")
        kind, detail = error.get("kind"), _detail(error.get("detail"))
        if isinstance(kind, str) and kind in self.kinds:
            return Refusal(kind, self._message(error, kind), detail)
        if kind is None:
            return Refusal(reply.kind, self._message(error, reply.kind), detail)
        if reply.kind_is_told:
            return Refusal(reply.kind, self._message(error, reply.kind), _detail(error))
        return Refusal(reply.kind, f"{reply.source} was refused, with a kind that is not declared.", _detail(error))

    def _message(self, error: Mapping[str, Any], kind: str) -> str:
        message = error.get("message")
        if isinstance(message, str) and message.strip():
            return short_text(message)
        return self.sentences.get(kind, f"{self.reply.source} was refused.")


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


def _detail(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    shown = short_value(value)
    return shown if isinstance(shown, dict) else {"detail": shown}
