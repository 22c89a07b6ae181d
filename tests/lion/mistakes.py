"""Requests that are wrong in one way each, of one op and of a whole call, with some right ones between them."""

from __future__ import annotations

from typing import Any


def one(op: Any) -> dict[str, Any]:
    return {"ops": [op]}


def runs(**args: Any) -> dict[str, Any]:
    return one({"op": "runs", "args": args})


QUICK = {"op": "profile.list", "args": {"names": []}}
SEND = {"content": "x", "team": "t", "to": "all"}

REFUSALS: dict[str, dict[str, Any]] = {
    "op missing": one({"args": {}}),
    "op null": one({"op": None}),
    "op a number": one({"op": 7}),
    "unknown key": one({"op": "runs", "zz": 1, "aa": 2}),
    "unknown key on an unknown verb": one({"op": "nope", "zz": 1}),
    "unknown verb": one({"op": "nope"}),
    "empty verb": one({"op": ""}),
    "near synonym": one({"op": "server_infos"}),
    "verb in capitals": one({"op": "Runs"}),
    "unavailable verb": one({"op": "schedule.apply"}),
    "unavailable verb with args": one({"op": "mirror", "args": {"x": 1}}),
    "unavailable verb with bad args": one({"op": "mirror", "args": [1]}),
    "args null": one({"op": "server.info", "args": None}),
    "args absent": one({"op": "server.info"}),
    "args a list": one({"op": "runs", "args": []}),
    "args text": one({"op": "runs", "args": "{}"}),
    "args false": one({"op": "runs", "args": False}),
    "unknown parameter": runs(limits=3),
    "parameter to a verb without any": one({"op": "handshake", "args": {"x": 1}}),
    "text for an integer": runs(limit="7"),
    "true for an integer": runs(limit=True),
    "fraction for an integer": runs(limit=7.5),
    "null for an integer": runs(limit=None),
    "list for an integer": runs(limit=[7]),
    "required missing": one({"op": "team.send", "args": {}}),
    "one required missing": one({"op": "team.send", "args": {"content": "x", "team": "t"}}),
    "not of the enum": one({"op": "team.send", "args": {**SEND, "kind": "shout"}}),
    "number for text": one({"op": "team.show", "args": {"team": 7}}),
    "item of the wrong type": one({"op": "schedule.runs", "args": {"id": "s", "status": ["a", 1]}}),
    "text for a list": one({"op": "schedule.runs", "args": {"id": "s", "status": "a"}}),
    "text for a boolean": one({"op": "dispatch.purge", "args": {"id": "d", "dry_run": "true"}}),
    "integer for a boolean": one({"op": "dispatch.purge", "args": {"id": "d", "dry_run": 1}}),
    "text for a number": one({"op": "schedule.create", "args": {"name": "n", "max_cost_usd": "1"}}),
    "refused parameter": one({"op": "monitor", "args": {"watch": True}}),
    "refused parameter that empties a store": one({"op": "dispatch.purge", "args": {"id": "d", "before": 1.0}}),
    "NUL": one({"op": "team.show", "args": {"team": "a\0b"}}),
    "NUL in a list": one({"op": "schedule.runs", "args": {"id": "s", "status": ["a\0"]}}),
    "fingerprint where none is needed": one({"op": "server.info", "schema_fingerprint": "0"}),
    "fingerprint of another type": one({"op": "server.info", "schema_fingerprint": 7}),
    "fingerprint among the arguments": one({"op": "runs", "args": {"schema_fingerprint": "0"}}),
    "synonym": one({"op": "server_info"}),
    "python verb refuses": one({"op": "profile.show", "args": {"name": "nobody"}}),
    "python verb without its parameter": one({"op": "profile.show", "args": {}}),
    "two schemas alike": {"ops": [{"op": "runs", "args": {"x": 1}}, {"op": "runs", "args": {"limit": "1"}}]},
    "schemas of two verbs": {"ops": [{"op": "runs", "args": {"x": 1}}, {"op": "state.ls", "args": {"limit": "1"}}]},
    "some of several": {"ops": [{"op": "server.info"}, {"op": "nope"}, {"op": "server_info"}]},
    "all of several": {"ops": [{"op": "nope"}, {"op": "mirror"}]},
}

WHOLE_CALLS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "ops null": {"ops": None},
    "help null": {"help": None},
    "help false": {"help": False},
    "ops null, help false": {"ops": None, "help": False},
    "ops empty": {"ops": []},
    "ops empty, help false": {"ops": [], "help": False},
    "ops empty, help true": {"ops": [], "help": True},
    "ops empty, help a verb": {"ops": [], "help": "runs"},
    "ops and help true": {"ops": [QUICK], "help": True},
    "ops and help a verb": {"ops": [QUICK], "help": "runs"},
    "ops and help false": {"ops": [QUICK], "help": False},
    "8 ops": {"ops": [QUICK] * 8},
    "9 ops": {"ops": [QUICK] * 9},
    "ops an object": {"ops": QUICK},
    "ops text": {"ops": "[]"},
    "ops a number": {"ops": 1},
    "an op that is text": {"ops": ["server.info", QUICK]},
    "an op that is null": {"ops": [None, QUICK]},
    "an op that is a list": {"ops": [[], QUICK]},
    "another key": {"ops": [QUICK], "more": 1},
    "help a list": {"help": ["runs"]},
    "help an object of numbers": {"help": {"verb": 1}},
    "help 1": {"help": 1},
    "help the text true": {"help": "true"},
    "help an unknown verb": {"help": "zzz"},
    "help an empty name": {"help": ""},
    "help an empty object": {"help": {}},
    "help without a verb": {"help": {"playbook": "p"}},
    "help with another key": {"help": {"verb": "runs", "x": "y"}},
    "help with a playbook it does not take": {"help": {"verb": "runs", "playbook": "p"}},
    "help a verb in an object": {"help": {"verb": "runs"}},
    "help a verb without parameters": {"help": "handshake"},
    "help an unavailable verb": {"help": "schedule.apply"},
    "help a synonym": {"help": "server_info"},
}
