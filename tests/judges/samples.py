"""Calls of each server that the judges make: what succeeds, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Call = tuple[str, dict[str, Any]]  # a tool's name and its arguments


@dataclass(frozen=True, slots=True)
class Sample:
    """A server, the names of its tools, and calls with what has to be in their answers."""

    tools: tuple[str, ...]
    success: Call
    result: Any  # structured content, or the whole text where there is none
    refusal: Call
    kind: str
    message: str


TREE = {"label": "root", "weight": None, "children": [{"label": ""}, {"label": "12:30", "weight": 0.5}]}
OPS = {"ops": [{"op": "team.create", "args": {"name": "a b", "members": "-x"}}]}

# Of the servers that speak over stdio.
SAMPLES = {
    "hello": Sample(
        tools=("log",),
        success=("log", {"count": 1, "path": "."}),
        result={"result": []},  # no commit of the repository touches a file
        refusal=("log", {"count": 0}),
        kind="invalid_input",
        message="`count` must be at least 1",
    ),
    "lion": Sample(
        tools=("request",),
        success=("request", OPS),
        result={
            "status": "success",
            "ops": [
                {
                    "ok": True,
                    "op": "team.create",
                    "result": {
                        "contract_version": 1,
                        "data": {"argv": ["team", "create", "--machine", "--members=-x", "--", "a b"]},
                    },
                }
            ],
        },
        refusal=("request", {"ops": []}),
        kind="invalid_input",
        message="",
    ),
    "everything": Sample(
        tools=(
            "shape.check",
            "shape.require",
            "tree.grow",
            "tree.count",
            "tree.labels",
            "value.echo",
            "class.import",
            "deny",
            "nothing",
            "echo.words",
            "echo.lines",
            "say.fit",
            "say.refused",
            "say.wrong",
            "no.luck",
            "flow",
        ),
        success=("tree.grow", {"tree": TREE}),
        result={
            "label": "root",
            "weight": None,
            "children": [
                {"label": "", "children": [{"label": "leaf"}]},
                {"label": "12:30", "weight": 0.5, "children": [{"label": "leaf"}]},
            ],
        },
        refusal=("tree.grow", {"tree": {"label": "x", "children": [{}]}}),
        kind="invalid_input",
        message="",
    ),
}

LITHI_TOOLS = ("lithi.quote", "lithi.run", "lithi.batch", "lithi.status", "lithi.result")

# Further calls of the fixture, each with its structured content, its text, or the kind of its refusal.
RESULTS: list[tuple[Call, Any]] = [
    (("tree.count", {"tree": TREE}), {"result": 3}),
    (("tree.labels", {"tree": TREE}), {"result": ["root", None, "12:30"]}),
    (("value.echo", {"value": [1, 2.5, {"a": [None, True, "x"]}], "even": {"odd": {"odd": None, "class": 1}}}), ...),
    (("class.import", {"class": "c", "a b": "d", "None": 1, "model_dump": True, "1st": 4, "größe": 0.5}), ...),
    (("shape.check", {"id": "20310102-abcdef", "fixed": 7, "maybe": None, "further": {"x": None, "known": True}}), ...),
    (("nothing", {}), {"result": None}),
    (
        ("echo.words", {"id": "-x", "rest": ["--", "y"], "dry_run": True, "color": False, "rows": [{"a": 1}]}),
        'words of it --machine --dry-run --no-color --rows=[{"a": 1}] -- -x -- y\n',
    ),
    (("echo.lines", {}), {"result": ["one two --machine"]}),
    (("say.fit", {"loud": True}), {"answer": [1, 2]}),
    (("old_echo", {"id": "x"}), "words of it --machine -- x\n"),
    (("flow", {"playbook": "one", "rounds": 2}), "flow --machine --rounds=2 -- one\n"),
]
REFUSALS: list[tuple[Call, str]] = [
    (("deny", {"kind": "gone"}), "gone"),
    (("deny", {"kind": "undeclared"}), "internal"),
    (("tree.count", {"tree": TREE, "more": 1}), "invalid_input"),
    (
        ("shape.require", {"id": "20310102-abcdef", "small": 1, "point": {"x": 1, "y": 2}, "force": True}),
        "invalid_input",
    ),
    (("say.refused", {}), "gone"),
    (("say.wrong", {}), "internal"),
    (("no.luck", {}), "gone"),
    (("flow", {"playbook": "one"}), "invalid_input"),
    (("flow", {"playbook": "none"}), "not_found"),
    (("later", {}), "unavailable"),
]
