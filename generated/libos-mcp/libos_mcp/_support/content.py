"""Blocks of content, as MCP has them on the wire: what a verb can give instead of data."""

from __future__ import annotations

from typing import Any, Final

FORM: Final = "content"

_TEXT: Final[dict[str, Any]] = {"type": "string"}


def _block(kind: str, **members: dict[str, Any]) -> dict[str, Any]:
    """A block with all of these members; others, such as annotations, are let through."""
    properties = {"type": {"const": kind}, **members}
    return {"type": "object", "properties": properties, "required": [*properties]}


_DATA: Final[dict[str, Any]] = {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"}  # base64
_RESOURCE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "format": "uri"}, "mimeType": _TEXT, "text": _TEXT, "blob": _DATA},
    "required": ["uri"],
    "oneOf": [{"required": ["text"]}, {"required": ["blob"]}],
}
CONTENT_SCHEMA: Final[dict[str, Any]] = {
    "type": "array",
    "items": {
        "anyOf": [
            _block("text", text=_TEXT),
            _block("image", data=_DATA, mimeType=_TEXT),
            _block("audio", data=_DATA, mimeType=_TEXT),
            _block("resource", resource=_RESOURCE),
            _block("resource_link", uri={"type": "string", "format": "uri"}, name=_TEXT),
        ]
    },
}
