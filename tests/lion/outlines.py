"""Replies of the tool `request` in one line, without texts: what can be compared between two servers."""

from __future__ import annotations

from typing import Any

from .mcp_process import ToolReply


def outline(reply: ToolReply) -> str:
    """`success: a ok; b ok`, or `partial: nope not_found; runs invalid_input (problems) schema`, or `refused`."""
    if "error" in reply.message:
        return f"protocol error {reply.message['error']['code']}"
    if reply.failed:
        return "refused"
    value = reply.value
    if "ops" not in value:
        return f"tells {' '.join(sorted(value))}"
    return f"{value['status']}: " + "; ".join(map(outline_of_entry, value["ops"]))


def outline_of_entry(entry: dict[str, Any]) -> str:
    if entry["ok"]:
        return f"{entry['op']} ok"
    error = entry["error"]
    detail = f" ({' '.join(sorted(error['detail']))})" if error.get("detail") else ""
    schema = (
        " schema"
        if "schema" in error
        else f" schema of {error['schema_ref']['op_index']}"
        if "schema_ref" in error
        else ""
    )
    return f"{entry['op']} {error['kind']}{detail}{schema}"
