"""The description of a server's HTTP endpoint, as OpenAPI has it: one path, POST alone, and the headers of each request."""

from collections.abc import Mapping
from typing import Any

from .access_registry import authority_of

# The revision whose header every request bears after the handshake, and the one that needs no handshake.
HANDSHAKE, STATELESS = "2025-06-18", "2026-07-28"
ASSUMED = "2025-03-26"  # what a request without the header speaks
_PROBLEM = {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": ["object", "string"]}}}}}
_REFUSALS = {
    "400": "The Content-Type is not application/json, or the message and its other headers are not as they have to be.",
    "403": "The Origin is not one that may call.",
    "404": "There is no such path, or no such method of the protocol.",
    "405": "Only POST is served.",
    "406": "Accept does not take both application/json and text/event-stream.",
    "413": "The body is too large.",
    "415": "The body is compressed, or said not to be UTF-8.",
    "421": "The Host is not a name of this server.",
    "500": "Something went wrong in the server.",
    "503": "The server is busy, or is being stopped.",
}
_UNKNOWN_CALLERS = {
    "401": "There is no key, or it is not a good one.",
    "503": "It cannot be told now whether the key is a good one; or the server is busy, or is being stopped.",
}


def openapi_of(registry: Mapping[str, Any]) -> dict[str, Any] | None:
    """The description; None for a server that is not served over HTTP."""
    http, server = registry["serve"]["http"], registry["server"]
    if http is None:
        return None
    verifies = bool(registry["access"] and registry["access"]["verify"])
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": server["title"] or server["name"],
            "version": server["version"],
            "summary": server["summary"],
        },
        "servers": [{"url": f"http://{authority_of(http)}"}],
        "paths": {http["path"]: {"post": _post(registry, verifies=verifies)}},
    }
    if verifies:
        document["components"] = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
    return document


def _post(registry: Mapping[str, Any], *, verifies: bool) -> dict[str, Any]:
    refusals = {**_REFUSALS, **(_UNKNOWN_CALLERS if verifies else {})}
    operation: dict[str, Any] = {
        "operationId": "mcp",
        "summary": "One message of the Model Context Protocol.",
        "parameters": [_version_header(registry["serve"]["protocols"])],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ENVELOPE}}},
        "responses": {
            "200": {"description": "The answer.", "content": _answers(registry["serve"]["http"]["replies"])},
            "202": {"description": "A notification was taken."},
            **{status: {"description": text, "content": _PROBLEM} for status, text in sorted(refusals.items())},
        },
    }
    return {**operation, "security": [{"key": []}]} if verifies else operation


_ENVELOPE = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer"]},
        "method": {"type": "string"},
        "params": {"type": "object"},
    },
    "required": ["jsonrpc", "method"],
}


def _version_header(protocols: list[str]) -> dict[str, Any]:
    handshakes = [protocol for protocol in protocols if protocol < STATELESS]
    without = f" Where it is left out, {ASSUMED} is meant." if ASSUMED in protocols else ""
    if handshakes and not without:
        without = " Only initialize may leave it out."
    return {
        "name": "MCP-Protocol-Version",
        "in": "header",
        "required": not handshakes,
        "description": f"The revision that was agreed on, or {STATELESS} where it is offered.{without}",
        "schema": {"type": "string", "enum": protocols},
        "example": HANDSHAKE if HANDSHAKE in protocols else protocols[0],
    }


def _answers(replies: str) -> dict[str, Any]:
    answer = {"application/json": {"schema": {"type": "object"}}}
    return answer if replies == "json" else {**answer, "text/event-stream": {"schema": {"type": "string"}}}
