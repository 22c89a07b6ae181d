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


_ONE_OP = "A malformed op fails alone; the others are answered as if it were not there."
_BAD_PROFILE = "A profile that cannot be used is told as such, and the others are listed all the same."
_PLUGIN = (
    "Whether a plugin's files may be used says its trust record, which only li itself reads; profile.list says so."
)
_KEY = "A submit that is repeated with its key stands for the same run."
_BOUND = "What cannot be meant is refused, and nothing is cut to size in silence."
_RUN_ID = "^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$"
_ID = "An id is checked by its pattern before it touches anything."
_OPEN = "The schema that a playbook adds to is open; with the playbook it is closed."
_PLAIN_DEFAULT = "The bare flag is not given unless it is asked for; false is no value that this parameter takes."
_SAME_FIELDS = "An answer has the same fields whatever is known, and nothing is said of what is not on record."
_DATA = "Names and paths are data, so they stand in the detail and not in the message."
_BROKEN_PLAYBOOK = (
    "Without its playbook a verb has no parameters to be checked against; whoever calls can change nothing about it."
)
_NO_PARAMETERS = "Where the playbook cannot be looked for, a verb has no parameters to be shown."
_CANCELLED = "Who stops a run cancels it, and the answer is only given once it has gone."
_OWN_WORD = "The words for what told of an end are those of any command line: its own report is a report."
_OWN = "A server tells its own version, and offers only what it has."

DIFFERENCES = (
    Difference(
        "catalog",
        "order of groups",
        "agent flow fanout play job profile server handshake doctor runs lifecycle schedule monitor stats invoke dispatch state team plugin "
        "schedule state plugin hooks studio mirror mcp engine invoke kill orchestrate casts",
        "agent flow play fanout job profile server handshake doctor runs lifecycle monitor stats invoke dispatch state team plugin schedule "
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
    *(
        Difference(
            "schemas", f"{verb} idempotency_key", "absent", {"type": "string", "minLength": 1, "maxLength": 128}, _KEY
        )
        for verb in ("agent.submit", "flow.submit", "play.submit", "fanout.submit")
    ),
    *(
        Difference(
            "schemas",
            verb,
            {"type": "object", "additionalProperties": False, **required},
            {"type": "object", "additionalProperties": True, **required},
            _OPEN,
        )
        for verb, required in (("flow.submit", {}), ("play.submit", {"required": ["playbook"]}))
    ),
    *(
        Difference(
            "schemas",
            f"{verb} with_synthesis",
            {"anyOf": [{"type": "string"}, {"const": True}], "default": False},
            {"anyOf": [{"type": "string"}, {"const": True}]},
            _PLAIN_DEFAULT,
        )
        for verb in ("flow.submit", "play.submit", "fanout.submit")
    ),
    *(
        Difference("schemas", f"{verb} run_id", {"type": "string"}, {"type": "string", "pattern": _RUN_ID}, _ID)
        for verb in ("job.status", "job.output", "job.kill")
    ),
    Difference(
        "schemas",
        "job.wait run_ids",
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "string", "pattern": _RUN_ID}, "maxItems": 100},
        _ID,
    ),
    *(
        Difference("schemas", f"{verb} label", {"type": "string"}, {"type": "string", "maxLength": 200}, _BOUND)
        for verb in ("agent.submit", "flow.submit", "play.submit", "fanout.submit")
    ),
    *(
        Difference("schemas", at, {"type": kind, **default}, {"type": kind, **default, **bounds}, _BOUND)
        for at, kind, default, bounds in (
            ("job.output tail_chars", "integer", {"default": 20000}, {"minimum": 1, "maximum": 200000}),
            ("job.list limit", "integer", {"default": 50}, {"minimum": 1, "maximum": 1000}),
            ("job.list status", "string", {}, {"minLength": 1, "maxLength": 64}),
            ("job.wait max_wait", "number", {"default": 60}, {"minimum": 0, "maximum": 600}),
            ("job.wait poll_interval", "number", {"default": 1}, {"minimum": 0.05, "maximum": 60}),
        )
    ),
    *(
        Difference("looks", at, True, "invalid_input", reason)
        for at, reason in (
            ("list of none", _BOUND),
            ("tail of 0", _BOUND),
            ("tail of less", _BOUND),
            ("wait below no time", _BOUND),
            ("wait beyond all time", _BOUND),
            ("id is a path", _ID),
            ("id is empty", _ID),
        )
    ),
    *(
        Difference("told", at, theirs, ours, _SAME_FIELDS)
        for at, theirs, ours in (
            ("status: alive", False, None),
            ("status in detail: alive", False, None),
            ("output: status", "absent", "unknown"),
            ("output: terminal", "absent", False),
            ("output: outcome", "absent", None),
        )
    ),
    Difference(
        "submits",
        "file is no text",
        "partial: agent.submit internal schema",
        "partial: agent.submit invalid_input schema",
        "The fault is the caller's.",
    ),
    *(
        Difference(
            "submits",
            at,
            "partial: agent.submit invalid_input schema",
            f"partial: agent.submit invalid_input ({detail}) schema",
            _DATA,
        )
        for at, detail in (
            ("unknown profile", "available"),
            ("ambiguous profile", "files"),
            ("excludes where there is none", "configured unknown"),
        )
    ),
    *(
        Difference("submits", at, f"partial: {verb} unavailable", f"partial: {verb} unavailable (available)", _DATA)
        for at, verb in (("unknown playbook", "flow.submit"), ("unknown playbook to play", "play.submit"))
    ),
    *(
        Difference(
            "submits",
            at,
            "partial: flow.submit invalid_input schema",
            "partial: flow.submit unavailable",
            _BROKEN_PLAYBOOK,
        )
        for at in ("playbook that cannot be read", "playbook that is a list", "playbook with an odd type")
    ),
    Difference(
        "submits",
        "folder of a play is missing",
        "partial: play.submit invalid_input schema",
        "partial: play.submit invalid_input",
        _NO_PARAMETERS,
    ),
    *(
        Difference(
            "mcp servers",
            at,
            "partial: agent.submit invalid_input schema",
            f"partial: agent.submit invalid_input ({detail}) schema",
            _DATA,
        )
        for at, detail in (
            ("unclosed", "file"),
            ("a list", "file"),
            ("servers are a list", "file"),
            ("excludes one that is not there", "configured unknown"),
        )
    ),
    *(
        Difference(area, "terminal_source", "cli_terminal_hook", "report", _OWN_WORD)
        for area in ("a finished run", "a failed run")
    ),
    Difference("a killed run", "pending", 2, 1, "A run that is asked for twice is one that is still running."),
    *(
        Difference("a killed run", f"then {key}", theirs, ours, _CANCELLED)
        for key, theirs, ours in (
            ("status", "killed", "cancelled"),
            ("outcome", "failed", "cancelled"),
            ("reason_code", None, "run.cancelled.sigterm"),
            ("terminal_source", "mcp_kill", "report"),
        )
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
