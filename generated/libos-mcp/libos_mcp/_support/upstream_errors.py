"""What can go wrong with an upstream: each error has a name out of a fixed set, and never a word of the upstream."""

from __future__ import annotations

from typing import Literal, TypeAlias

ErrorType: TypeAlias = Literal[
    "McpAddressDenied",  # its name leads to an address that is not allowed
    "McpCommandNotFound",  # there is no such program
    "McpConnectFailed",  # nobody listens, or whoever does cannot prove who it is
    "McpConnectionLost",  # it ended, or hung up, before its reply did
    "McpDeadlineExceeded",  # time ran out before this was begun
    "McpDnsFailed",
    "McpDnsTimeout",
    "McpErrorReply",  # it replied with an error of the protocol
    "McpHttpContentEncodingDenied",
    "McpHttpContentType",
    "McpHttpOperationTooLarge",  # all that it sent together
    "McpHttpResponseTooLarge",
    "McpHttpSseFrameTooLarge",
    "McpHttpStatus",
    "McpInvalidList",
    "McpProtocolError",  # what it sent is none of the messages that may come then
    "McpProtocolVersion",  # it speaks none of the revisions that are spoken here
    "McpSessionLost",  # it no longer knows the session
    "McpStartFailed",  # the system could not start the program
    "McpStdioFrameTooLarge",
    "McpStdioStderrTooLarge",
    "McpStdioStdoutTooLarge",
    "McpTimeout",
    "McpWorkingFolder",  # the program's folder is not there, or leads out of the server's
]


class UpstreamError(Exception):
    """There is no answer."""

    def __init__(self, error_type: ErrorType, http_status: int | None = None) -> None:
        super().__init__(error_type)
        self.error_type: ErrorType = error_type
        self.http_status = http_status  # of McpHttpStatus


class NotStartedError(UpstreamError):
    """Nothing outside was begun: no program was started, and no name was looked up. Certain, whatever was announced."""


class InvalidListError(UpstreamError):
    """The list of tools is malformed, or goes on for too many pages."""

    def __init__(self) -> None:
        super().__init__("McpInvalidList")
