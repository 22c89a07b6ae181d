"""What an operator is told of an error of an upstream: a sentence for what he can do something about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .manifest_transport import Stdio
from .quoting import quoted, shown
from .upstream_errors import UpstreamError
from .upstream_process import usual_folders

if TYPE_CHECKING:
    from .manifest import Manifest

_PATH_CHARACTERS: Final = 1024
# What is not here says enough by its name, or only whoever made the server can do something about it.
_SENTENCES: Final[Mapping[str, str]] = {
    "McpAddressDenied": "its name leads to an address that is not allowed; it has to be a public one",
    "McpConnectFailed": "nobody takes the connection at its address, or whoever does cannot prove who it is",
    "McpConnectionLost": "it ended, or hung up, before it had replied",
    "McpDeadlineExceeded": "its time ran out before it was asked; see `timeout_s`",
    "McpDnsFailed": "the name in its address cannot be looked up",
    "McpDnsTimeout": "the name in its address was not looked up in time",
    "McpHttpContentType": "what it replied is neither JSON nor a stream of events; see its address",
    "McpProtocolVersion": "it speaks none of the revisions of the protocol that are spoken here",
    "McpStartFailed": "the system could not start it",
    "McpTimeout": "it did not reply in time; see `timeout_s`",
    "McpWorkingFolder": "the folder that it is to work in is not there, or not below that of the server",
}


def told(manifest: Manifest, error: UpstreamError) -> str:
    """Why there is no answer, with the type of the error in brackets."""
    sentence = _sentence(manifest, error)
    return error.error_type if sentence is None else f"{sentence} ({error.error_type})"


def _sentence(manifest: Manifest, error: UpstreamError) -> str | None:
    if error.error_type == "McpCommandNotFound" and isinstance(manifest.transport, Stdio):
        return f"there is no program {_whole(manifest.transport.command)} {_where(manifest.transport)}"
    if error.error_type == "McpHttpStatus" and error.http_status is not None:
        return f"it replied with the HTTP status {error.http_status}; see its address, and the variables of its headers"
    return _SENTENCES.get(error.error_type)


def _where(stdio: Stdio) -> str:
    if "/" in stdio.command:
        return "that can be started, as seen from the folder of the server"
    if "PATH" in stdio.env:
        return f"on the PATH that {quoted(stdio.env['PATH'])} holds"
    return f"in {', '.join(map(_whole, usual_folders()))}"


def _whole(name: str) -> str:
    return f"`{shown(name, _PATH_CHARACTERS)}`"
