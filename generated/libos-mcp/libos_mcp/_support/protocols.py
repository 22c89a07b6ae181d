"""Which revisions of the protocol a server offers, and what it tells whoever comes with another one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PROTOCOL_VERSION_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from .registry import Registry

INITIALIZE: Final = "initialize"

# What stands for a revision that nobody is told.
_UNTOLD: Final = "*"
_REVISION: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_SHORT_TEXT: Final = "[!-~]{1,64}"


class Offer:
    """The revisions of a server. Those of the older era begin with `initialize`; in the newer one each request names its own.

    `names` says whether an answer may hold what was sent, where it is short. The newest revision comes first.
    """

    def __init__(self, revisions: tuple[str, ...], names: bool) -> None:
        self.revisions = revisions
        self.handshake = tuple(revision for revision in revisions if revision in HANDSHAKE_PROTOCOL_VERSIONS)
        self.modern = tuple(revision for revision in revisions if revision in MODERN_PROTOCOL_VERSIONS)
        self._told_form = _SHORT_TEXT if names else _REVISION

    @classmethod
    def of(cls, registry: Registry) -> Offer:
        """What a registry offers."""
        return cls(registry.serve.protocols, registry.feedback == "names")

    def negotiated(self, requested: object) -> str:
        """What `initialize` settles on: the revision that was asked for, or the newest one with a handshake."""
        return next((revision for revision in self.handshake if revision == requested), self.handshake[0])

    def unsupported(self, requested: object) -> MCPError:
        """The error for a revision that is not offered; it says which ones are."""
        data = {"supported": list(self.revisions), "requested": self._told(requested)}
        return MCPError(UNSUPPORTED_PROTOCOL_VERSION, "This revision of the protocol is not offered here.", data)

    def check_message(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Look at a request of a connection, whatever its era is. Raises MCPError when its revision is not offered."""
        if method == INITIALIZE:
            if not self.handshake:
                raise self.unsupported((params or {}).get("protocolVersion"))
        elif names_revision(params):
            if (revision := named_revision(params)) not in self.modern:
                raise self.unsupported(revision)
        elif not self.handshake:
            raise MCPError(
                INVALID_PARAMS, f"A request has to name its revision as {PROTOCOL_VERSION_META_KEY} in _meta."
            )

    def _told(self, requested: object) -> str:
        """The protocol wants the revision quoted. What has not the form of one is only quoted where names are."""
        return requested if isinstance(requested, str) and re.fullmatch(self._told_form, requested) else _UNTOLD


def names_revision(params: Mapping[str, Any] | None) -> bool:
    """Whether a request says in its `_meta` which revision it is of, as those of the newer era do."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta


def named_revision(params: Mapping[str, Any] | None) -> Any:
    """What a request that `names_revision` says there, whatever it is."""
    return (params or {})["_meta"][PROTOCOL_VERSION_META_KEY]
