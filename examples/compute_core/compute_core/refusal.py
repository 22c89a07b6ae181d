"""The one way in which the service says no: a status, a code, what helps, and where it is wrong."""

from collections.abc import Mapping
from typing import Any


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """Ends a request and undoes its transaction. `detail` and `headers` hold nothing of what was sent."""

    def __init__(
        self,
        status: int,
        code: str,
        *,
        next_action: str | None = None,
        detail: dict[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.next_action = next_action
        self.detail = detail
        self.headers = dict(headers or {})

    def content(self) -> dict[str, Any]:
        """The body: {"error": {"code", "next"?, "detail"?}}."""
        members = {"code": self.code, "next": self.next_action, "detail": self.detail}
        return {"error": {name: value for name, value in members.items() if value is not None}}

    def at(self, path: str) -> "Refusal":
        """The same refusal, saying that it is about what stands at `path` of the request."""
        return Refusal(self.status, self.code, next_action=self.next_action, detail={"path": path})


def not_found() -> Refusal:
    """Of what does not exist and of what is another account's, so that nobody can tell them apart."""
    return Refusal(404, "not_found")


def conflict() -> Refusal:
    """Of a request that something else which already stands rules out."""
    return Refusal(409, "conflict")
