"""Binary content in what an upstream returned: each piece is replaced by its size and hash."""

from __future__ import annotations

import json
from binascii import Error, a2b_base64
from hashlib import sha256
from typing import Any, Final

from .strict_json import Unacceptable, parse

_TYPES: Final = frozenset({"image", "audio"})
_MEDIA: Final = ("image/", "audio/", "video/")
_CLAIMS: Final = "provider_reported_content_metadata"
# What a receipt says itself; where the upstream says it too, that stands apart as its claim.
_OWN: Final = frozenset(
    {
        "content_omitted",
        "raw_content_retained",
        "content_encoding",
        "base64_valid",
        "bytes",
        "sha256",
        "sha256_basis",
        "encoded_bytes",
        "encoded_sha256",
        _CLAIMS,
    }
)
_BEGINNINGS: Final = ("{", "[", '"')
_SIGNS: Final = ("data", "blob", "\\u")


def without_binary(value: Any, levels: int) -> Any:
    """A JSON value, with a receipt for every image, sound and blob in it, also within texts that are JSON themselves.

    The same object where there is none. `levels` is how deep such a text may be nested to be looked into.
    """
    if isinstance(value, str):
        return _text(value, levels)
    if isinstance(value, list):
        items = [without_binary(item, levels - 1) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if not isinstance(value, dict):
        return value
    member = _binary_member(value)
    if member is not None:
        return _receipt(value, member, levels)
    members = {name: without_binary(item, levels - 1) for name, item in value.items()}
    return value if all(members[name] is value[name] for name in value) else members


def _text(text: str, levels: int) -> str:
    if levels < 1 or not text.lstrip().startswith(_BEGINNINGS) or not any(sign in text for sign in _SIGNS):
        return text
    try:
        value = parse(text, levels)
    except Unacceptable:
        return text
    kept = without_binary(value, levels - 1)
    return text if kept is value else json.dumps(kept, ensure_ascii=False)


def _binary_member(value: dict[str, Any]) -> str | None:
    """The member that holds binary content, if an object is one of the forms that carry it."""
    kind, media = _text_of(value, "type"), _text_of(value, "mimeType") or _text_of(value, "mime_type")
    if isinstance(value.get("data"), str) and (kind in _TYPES or media.startswith(_MEDIA)):
        return "data"
    if isinstance(value.get("blob"), str) and (media or _text_of(value, "uri")):
        return "blob"
    return None


def _text_of(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _receipt(value: dict[str, Any], member: str, levels: int) -> dict[str, Any]:
    others = {name: without_binary(item, levels - 1) for name, item in value.items() if name != member}
    if "mimeType" not in others and "mime_type" in others:
        others["mimeType"] = others.pop("mime_type")
    claims = {name: others.pop(name) for name in value if name in _OWN and name != member}
    return {**others, **_measured(value[member]), **({_CLAIMS: claims} if claims else {})}


def _measured(encoded: str) -> dict[str, Any]:
    omitted = {"content_omitted": True, "raw_content_retained": False, "content_encoding": "base64"}
    try:
        content = a2b_base64(encoded, strict_mode=True)
    except (Error, ValueError):
        raw = encoded.encode("utf-8", "surrogatepass")
        sizes = {"base64_valid": False, "encoded_bytes": len(raw), "encoded_sha256": sha256(raw).hexdigest()}
    else:
        digest = sha256(content).hexdigest()
        sizes = {"base64_valid": True, "bytes": len(content), "sha256": digest, "sha256_basis": "decoded_bytes"}
    return {**omitted, **sizes}
