"""Agent profiles for the comparison: `project/…` lies in a project, `home/…` in the home folder."""

from __future__ import annotations

PROJECT = "project/.lionagi/agents/"
BELOW = "project/below/.lionagi/agents/"
MANY = "project/many/.lionagi/agents/"
HOME = "home/.lionagi/agents/"

_WHOLE = """\
---
model: claude/opus
effort: high
yolo: true
fast_mode: true
timeout: 30
idle_timeout: 5
resume_on_timeout: once
workload: light
description: Reads what others wrote.
tools: [a, b]
role: critic
---

You review what you are given.
"""

_SETTINGS: dict[str, tuple[str, ...]] = {
    "model": ("7", "[a]", "{a: 1}", "null", "2026-09-30", "true", '"  x "', "1.5", "12:30:45"),
    "effort": ("high", "7", "null", "1e3"),
    "role": ("r", "017", "null"),
    "pack": ("p", "0x1f", "{a: [1, 2.5]}"),
    "yolo": ("true", "1", "0", '"no"', "[]", "null", "off"),
    "bypass": ("true", '"no"'),
    "fast_mode": ("true", '"no"'),
    "lion_system": ("false", "0", '"no"', "null"),
    "khive_injection": ("true", "false", "x", "{1: a, null: b, 2026-01-01: c}", "[a]"),
    "timeout": ("30", '"30"', "0", "-5", "1.5", "true", "soon", "9007199254740991", "9007199254740992"),
    "idle_timeout": ("30", '"30"', "0", "-5", "1.5", "true", "9007199254740991", "9007199254740992"),
    "resume_on_timeout": ("once", '" Once "', "true", "1", "twice"),
    "workload": ("light", "heavy", "LIGHT", '" light "', "3"),
    "contain_account_integrations": ("true", "false", "x", "null", "0"),
    "account_connectors": ("[a, b]", "a", "true", "[]", '[" a "]', '["a", ""]', "[1, a]"),
    "contain_user_settings": ("true", "false", "null", "x"),
}

_FORMS: dict[str, str | bytes] = {
    "empty": "",
    "plain": "Only text.\n",
    "malformed": "---\nmodel: [unclosed\n---\nbody",
    "unclosed": "---\nmodel: a/b\nbody",
    "list": "---\n- a\n---\nbody",
    "scalar": "---\nhello\n---\nbody",
    "blank": "---\n---\nbody",
    "twice": "---\nmodel: a\nmodel: b\n---\nbody",
    "tag": "---\nmodel: !!python/object/apply:os.getcwd []\n---\nbody",
    "merge": "---\nbase: &b {model: mm}\n<<: *b\n---\nbody",
    "crlf": b"---\r\nmodel: cr/lf\r\n---\r\nbody",
    "cr": b"---\rmodel: cr\r---\rbody",
    "bom": b"\xef\xbb\xbf---\nmodel: bo/m\n---\nbody",
    "lines-before": "\n \n---\nmodel: a\n---\nbody",
    "spaces-before": "  ---\nmodel: a\n---\nbody",
    "spaces-after": "---   \nmodel: a\n---  \nbody",
    "no-body": "---\nmodel: a\n---",
    "four-dashes": "----\nmodel: a\n----\nbody",
    "dashes-inside": "---\nmodel: a\ndescription: |\n  x\n  ---\n  y\n---\nbody\n---\nmore",
    "dots": "---\nmodel: a\n...\nbody",
    "large": "---\nmodel: a\n---\n" + "x" * 2_000_000,
    "UPPER": "---\nmodel: up\n---\n",
}

FILES: dict[str, str | bytes] = {
    **{f"{MANY}form-{name}.md": text for name, text in _FORMS.items()},
    **{
        f"{MANY}{setting}_{number}.md": f"---\n{setting}: {value}\n---\nbody"
        for setting, values in _SETTINGS.items()
        for number, value in enumerate(values)
    },
    # One name in several places, in both layouts, and with either separator.
    f"{PROJECT}reviewer.md": _WHOLE,
    f"{BELOW}reviewer.md": "below",
    f"{HOME}reviewer/reviewer.md": "home, in a folder of its own",
    f"{HOME}reviewer.md": "home",
    f"{PROJECT}folded/folded.md": "---\nmodel: folder\n---\n",
    f"{PROJECT}folded.md": "---\nmodel: flat\n---\n",
    f"{PROJECT}astray/other.md": "no profile",
    f"{PROJECT}note.txt": "no profile",
    f"{BELOW}nested.md": "n",
    f"{HOME}home-only.md": "h",
    f"{PROJECT}my-agent.md": "dash",
    f"{PROJECT}my_agent.md": "underscore",
    f"{PROJECT}only-dash.md": "dash",
    f"{HOME}only_dash.md": "underscore",
    f"{PROJECT}one-a_c.md": "mixed",
    f"{HOME}one-a-c.md": "dashes",
    f"{HOME}one_a_c.md": "underscores",
    f"{HOME}two-b_c/two-b_c.md": "mixed",
    f"{PROJECT}two-b-c/two-b-c.md": "dashes",
    f"{PROJECT}two-b-c.md": "dashes",
}

# A plugin that brings a profile.
PLUGIN: dict[str, str | bytes] = {
    "home/.lionagi/plugins/tools/plugin.yaml": (
        'name: tools\nversion: 1.0.0\nlionagi: ">=0.30"\ncapabilities: {agents: [agents/painter.md]}\n'
    ),
    "home/.lionagi/plugins/tools/agents/painter.md": "---\nmodel: a\n---\n",
}

# Profiles that the real server stumbles over, each with the files that make it so; put in one at a time.
BROKEN: dict[str, dict[str, str | bytes]] = {
    "not a name": {f"{PROJECT}not a name.md": "a name that no caller may give"},
    ".hidden": {f"{PROJECT}.hidden.md": "another"},
    "latin": {f"{PROJECT}latin.md": b"\xff\xfe"},
    "impossible": {f"{PROJECT}impossible.md": "---\nmodel: 2026-13-45\n---\n"},
    "mixed-keys": {f"{PROJECT}mixed-keys.md": "---\n7: a\nx: b\n---\n"},
    "tri-b_c": {f"{PROJECT}tri-b-c.md": "dashes", f"{PROJECT}tri_b_c.md": "underscores", f"{HOME}tri-b_c.md": "mixed"},
}

# What lion-mcp could not send, or cannot even read; some of it takes a whole request of the real server down.
UNSENDABLE = {
    "long-number": f"---\nmodel: 0x{'F' * 9_000}\n---\n",
    "long-key": f"---\n? 0x{'F' * 9_000}\n: a\n---\n",
    "infinite": f"---\nmodel: {'1:' * 400}1.0\n---\n",
    "bad-tag": "---\nmodel: !!bool perhaps\n---\n",
    "deep": f"---\nmodel: {'[' * 90}{']' * 90}\n---\n",
}
