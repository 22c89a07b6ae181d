"""Where lion-mcp means to differ from `li mcp`, each with its reason; whatever else differs fails a test.

A difference that no longer shows, or shows otherwise than it stands here, fails as well.

One shows only in an installation: both start the command that `LIONAGI_MCP_LI_BIN` names, but without it the real server starts
the `li` of its own environment, and lion-mcp the one on its PATH, as it is installed apart from lionagi.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """In `area`, at `at`, the real server gives `theirs` and lion-mcp gives `ours`."""

    area: str
    at: str
    theirs: Any
    ours: Any
    reason: str


_LATER = "The verbs that start runs and look after them need the jobs backend, which is not built yet."
_ONE_OP = "A malformed op fails alone; the others are answered as if it were not there."
_BAD_PROFILE = "A profile that cannot be used is told as such, and the others are listed all the same."
_PLUGIN = (
    "Whether a plugin's files may be used says its trust record, which only li itself reads; profile.list says so."
)
_OWN = "A server tells its own version, and offers only what it has."

DIFFERENCES = (
    Difference(
        "catalog",
        "only here",
        "agent.submit fanout.submit flow.submit job.kill job.list job.output job.status job.wait play.submit",
        "",
        _LATER,
    ),
    Difference(
        "catalog",
        "order of groups",
        "profile server handshake doctor runs lifecycle schedule monitor stats invoke dispatch state team plugin "
        "schedule state plugin hooks studio mirror mcp engine invoke kill orchestrate casts",
        "profile server handshake doctor runs lifecycle monitor stats invoke dispatch state team plugin schedule "
        "schedule state casts orchestrate plugin hooks studio mirror mcp engine invoke kill",
        "The catalog follows the files of the spec; only the order within them, and available before unavailable, mean something.",
    ),
    Difference(
        "catalog",
        "order in orchestrate",
        "orchestrate.ctl.pause orchestrate.ctl.resume orchestrate.ctl.msg orchestrate.ctl.status orchestrate.ctl.resolve",
        "orchestrate.ctl.status orchestrate.ctl.pause orchestrate.ctl.resume orchestrate.ctl.msg orchestrate.ctl.resolve",
        "Unavailable verbs stand in the order of their reasons.",
    ),
    Difference("server.info", "server", "absent", ["name", "registry", "version"], _OWN),
    Difference(
        "server.info",
        "code_identity",
        "told",
        "absent",
        "It tells of the source checkout that the real server runs from; the digest of the contract says what ours is.",
    ),
    Difference(
        "server.info",
        "tool_count",
        1,
        "absent",
        "How many tools there are depends on the surface, and tools/list tells it.",
    ),
    Difference(
        "refusals",
        "python verb refuses",
        "partial: profile.show not_found schema",
        "partial: profile.show not_found (available) schema",
        "The names that exist are data, so they stand in the detail and not in the message.",
    ),
    *(
        Difference("calls", at, "refused", "partial: ? invalid_input; profile.list ok", _ONE_OP)
        for at in ("an op that is text", "an op that is null", "an op that is a list")
    ),
    Difference(
        "calls",
        "help 1",
        "tells available_count help_usage max_ops synonyms_removed_after verb_count verbs",
        "refused",
        "No coercion: 1 is not true.",
    ),
    Difference("tools/list", "tells its own version", False, True, _OWN),
    Difference("tools/list", "capabilities", "logging prompts resources tools", "tools", _OWN),
    Difference("lines", "no JSON", [], [-32700], "A client that waits for an answer gets one."),
    Difference(
        "profile.list elsewhere",
        "folder with a NUL",
        "internal",
        "invalid_input",
        "The fault is the caller's.",
    ),
    Difference("profile.show", "x" * 20, "internal", "not_found", "No file can have so long a name, so there is none."),
    Difference("plugin profiles", "listed", "tools/painter", "", _PLUGIN),
    Difference("plugin profiles", "tools/painter", "shown", "not_found", _PLUGIN),
    Difference("plugin profiles", "painter", "shown", "not_found", _PLUGIN),
    *(
        Difference("bad profiles", f"list with {name}", "invalid_input", ours, _BAD_PROFILE)
        for name, ours in (
            ("not a name", "reviewer"),
            (".hidden", "reviewer"),
            ("latin", "latin: problem, reviewer"),
            ("impossible", "impossible: problem, reviewer"),
            ("tri-b_c", "reviewer, tri-b_c: problem"),
        )
    ),
    Difference("bad profiles", "show mixed-keys", "internal", "shown", "Keys of any type are told as text."),
    Difference(
        "bad profiles: cwd",
        "cwd of nobody",
        "refused",
        "partial: profile.list invalid_input schema",
        "One op's bad folder is no reason to lose the others.",
    ),
)


def check(area: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Fails unless the two answer everything in `area` alike, apart from the differences that stand above."""
    absent = "absent"
    found = {
        at: (theirs.get(at, absent), ours.get(at, absent))
        for at in {**theirs, **ours}
        if theirs.get(at, absent) != ours.get(at, absent)
    }
    meant = {item.at: (item.theirs, item.ours) for item in DIFFERENCES if item.area == area}
    unexplained = {at: values for at, values in found.items() if meant.get(at) != values}
    stale = sorted(meant.keys() - found.keys())
    assert not unexplained, "\n".join(
        f"{area} at {at}:\n  theirs: {values[0]!r}\n  ours:   {values[1]!r}\n  meant:  {meant.get(at)!r}"
        for at, values in unexplained.items()
    )
    assert not stale, f"differences in {area} that no longer show: {stale}"
