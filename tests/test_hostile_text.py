"""Text of a spec stays text: whatever it looks like, it becomes no code, no markup and no second line anywhere."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verbc.pipeline import compile_spec
from verbc.problems import SpecError

SEVERAL = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)

LINKS = re.compile(r"[A-Za-z]://|[Ww]{3}\.|[\w.+-]@[\w-]+\.")  # what GitHub makes links of, without any brackets

# Field → where the registry has it. Fields of one line, and fields that may have several.
LINES = {
    "title": "server/title",
    "summary": "server/summary",
    "kind": "kinds/late",
    "verb": "verbs/go/summary",
    "reason": "verbs/go/refused/x",
    "missing": "verbs/stop/unavailable",
    "missing_verb": "verbs/stop/summary",
    "method": "verbs/keep/summary",
    "dotted": "verbs/a.b/summary",
}
TEXTS = {
    "instructions": "server/instructions",
    "argument": "backends/tool/args/0",
    "description": "verbs/go/description",
    "parameter": "verbs/go/params/properties/a/description",
    "default": "verbs/go/params/properties/a/default",
    "member": "verbs/go/params/properties/b/enum/0",
    "constant": "verbs/go/params/properties/c/const",
    "example": "verbs/go/examples/0/args/a",
    "expected": "verbs/go/run/reply/expect/~v/0",
    "object": "verbs/keep/params/properties/o/description",
    "inner": "verbs/keep/params/properties/o/properties/i/description",
    "inner_default": "verbs/keep/params/properties/o/properties/i/default",
    "type": "verbs/keep/params/properties/t/description",
    "property": "verbs/keep/result/properties/p/description",
    "result": "verbs/keep/examples/0/result/p",
}
SPEC = """\
{verbc: 1,
server: {name: demo, title: <title>, summary: <summary>, instructions: <instructions>},
backends: {tool: {cli: tool, args: [<argument>]}, local: {python: handlers.py}},
kinds: {late: <kind>},
types: {Thing: {type: object, description: <type>, properties: {x: string}}},
verbs: {
go: {summary: <verb>, description: <description>, refused: {x: <reason>},
  params: {a: {type: string, description: <parameter>, default: <default>}, b: {enum: [<member>, other]}, c: {const: <constant>}},
  examples: [{args: {a: <example>}}],
  run: {tool: go, json: [b, c], reply: {expect: {/v: [<expected>]}}}},
stop: {summary: <missing_verb>, unavailable: <missing>, run: {tool: stop}},
keep: {summary: <method>,
  params: {o: {type: object, description: <object>, properties: {i: {type: string, description: <inner>, default: <inner_default>}}}, t: Thing},
  result: {type: object, properties: {p: {type: string, description: <property>}}},
  examples: [{args: {}, result: {p: <result>}}],
  run: {local: keep}},
a.b: {summary: <dotted>, run: {tool: a b}}}}
"""
HOSTILE = [
    '"', "'", "\\", "\\\\", '\\"', '"""', "'''", 'a"""', 'a\\"""', '""" + exit() + """', "'''; exit(); '''", 'x"\nimport os\n"',
    "\\N{DASH}", "\\x41", "\\u0041", "%s %(x)s", "{}", "{x!r}", "{{ package }}", "{% raw %}", "{# no #}", "${HOME}", "$(id)", "`id`",
    "| a | b |", "\\|", "\\\\|", "`|`", "``` x", "~~~", "# x", "x #", "- x", "+ x", "* x", "1. x", "1) x", "> x", "=====", "-----", "***", "___",
    "<script>alert(1)</script>", "<img src=x onerror=y>", "<!-- x", "-->", "<https://example.com>", "[x](https://example.com)", "![x](y)", "[x]: y",
    "[x][y]", "https://example.com", "http://example.com/?a=b", "www.example.com", "someone@example.com", "*x* _y_ **z** ~~w~~", "&lt; &amp; &#60;",
    "a  \nb", "</td></tr>", "$x^2$", ":smile:", "@someone", "#123", "\u2028\u2029", "\u202eabc\u202c", "\u2066x\u2069", "\u200b\ufeff", "\U0001f600",
    "\x85", "\r", "\ud7ff\ue000\ufffd\U0010ffff", "e\u0301", "# type: ignore", "# noqa", "# fmt: off", "*/ /*",
    "]]>", "'; DROP TABLE x; --", "[tool.ruff]", 'x = """', "a = [", "\t", "NaN", "null", "x" * 3000, "-" * 200, '"' * 200, "\\" * 201, "|" * 100,
]  # fmt: skip


def written(text: str) -> str:
    """A text in double quotes, as YAML reads it back."""
    return '"' + "".join(c if c.isascii() and c.isalnum() else f"\\U{ord(c):08x}" for c in text) + '"'


def one_line(text: str) -> str:
    return " ".join(text.split()) or "x"


def compiled(folder: Path, texts: Mapping[str, str], name: str = "specs/demo.yaml") -> dict[str, str]:
    """The files of the spec with these texts in its fields, and harmless ones in all others."""
    spec = SPEC
    for field in (*LINES, *TEXTS):
        spec = spec.replace(f"<{field}>", written(texts.get(field, "Harmless.")))
    (folder / "demo.yaml").write_text(spec, encoding="utf-8")
    (folder / "handlers.py").write_text("class Handlers: ...\n", encoding="utf-8")
    return compile_spec(folder / "demo.yaml", name)[1]


def everywhere(text: str) -> dict[str, str]:
    return {**dict.fromkeys(LINES, one_line(text)), **dict.fromkeys(TEXTS, text)}


@cache
def shape(code: str) -> str:
    """A module without its texts: two modules of one shape do the same things."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def emitted(files: Mapping[str, str]) -> dict[str, str]:
    """The Python that is made from the spec."""
    return {path: text for path, text in files.items() if path.endswith(".py") and "/_support/" not in path}


def active(page: str) -> Counter[str]:
    """What of a Markdown page means something to its reader: every special character that is neither escaped nor code."""
    found: Counter[str] = Counter()
    for line in page.split("\n"):
        place = 0
        while place < len(line):
            character, rest = line[place], line[place + 1 :]
            if character == "\\" and rest and rest[0].isascii() and not rest[0].isalnum() and not rest[0].isspace():
                place += 2
                continue
            if character == "`" and "`" in rest:
                place += rest.index("`") + 2
                continue
            found[character] += character in "`*_[]<>|&~"
            place += 1
        found["starts a block"] += line.lstrip()[:1] in ("#", "-", "+", "=", ">", "|", "~")
        found["links itself"] += len(LINKS.findall(re.sub(r"`[^`]*`", "", line)))
    return +found


def cells(row: str) -> int:
    return sum(c == "|" and row[place - 1 : place] != "\\" for place, c in enumerate(row))


def at(registry: Any, path: str) -> Any:
    for part in path.split("/"):
        if isinstance(registry, dict):
            registry = registry[part.replace("~", "/")]
        else:
            registry = (
                registry[int(part)] if part.isdigit() else next(verb for verb in registry if verb["name"] == part)
            )
    return registry


# Harmless packages with longer texts: a long default stands in a call of Field, a long constant gets a name of its own.
LONGER: list[dict[str, str]] = []


def check(files: Mapping[str, str], harmless: Mapping[str, str], texts: Mapping[str, str]) -> None:
    """The same package as with harmless texts, but for the texts, which are all there."""
    assert list(files) == list(harmless)
    for path, code in emitted(files).items():
        assert code.isascii(), path
        assert code == harmless[path] or shape(code) in {shape(other[path]) for other in (harmless, *LONGER)}, path
    registry = json.loads(files["demo_mcp/registry.json"])
    for field, path in {**LINES, **TEXTS}.items():
        wanted = texts.get(field, "Harmless.")
        # What a schema says of itself, and what has one line, has no blanks around it.
        stripped = wanted.strip() if field in LINES or path.endswith("/description") else wanted
        assert at(registry, path) in (wanted, stripped), field
    project = tomllib.loads(files["pyproject.toml"])
    assert project["project"]["description"] == texts.get("summary", "Harmless.").strip()
    assert files["pyproject.toml"].isascii()
    tables = [key for key in project if key != "project"]
    assert tables == [key for key in tomllib.loads(harmless["pyproject.toml"]) if key != "project"]
    for page in ("README.md", "docs/verbs.md"):
        check_page(files[page], harmless[page])


def check_page(page: str, harmless: str) -> None:
    # A `${NAME}` among the arguments is a variable, and the page says that it is needed.
    page = page.replace("- the variable `HOME`\n", "")
    lines, expected = page.split("\n"), harmless.split("\n")
    assert len(lines) == len(expected)
    assert all(line.isprintable() for line in lines)
    assert active(page) == active(harmless)
    for line, other in zip(lines, expected, strict=True):
        if other.startswith("| "):
            assert cells(line) == cells(other), line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("specs")


@pytest.fixture(scope="module")
def harmless(folder: Path) -> dict[str, str]:
    long = "Harmless, but not short. "
    LONGER.extend([compiled(folder, {"constant": long * 4}), compiled(folder, everywhere(long * 40))])
    return compiled(folder, {})


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_text_in_every_field(text: str, folder: Path, harmless: dict[str, str]) -> None:
    check(compiled(folder, everywhere(text)), harmless, everywhere(text))


@pytest.mark.parametrize("field", [*LINES, *TEXTS])
def test_every_field_is_a_field(field: str, folder: Path, harmless: dict[str, str]) -> None:
    """Were a field of this test no field of the spec, nothing would be proven for it."""
    files = compiled(folder, {field: "Marked."})
    assert files != harmless
    check(files, harmless, {field: "Marked."})


CHARACTERS = st.one_of(
    st.sampled_from("\"'\\`|<>[]()*_~#$%&{}!@:;=+-/.\n\r\t\x85 "),
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"),
)
ANY = st.lists(CHARACTERS, min_size=1, max_size=25).map("".join)


def test_any_text_in_any_field(folder: Path, harmless: dict[str, str]) -> None:
    @SEVERAL
    @given(ANY, st.sampled_from([*LINES, *TEXTS]), ANY)
    def holds(text: str, field: str, other: str) -> None:
        texts = {**everywhere(text), field: one_line(other)}
        check(compiled(folder, texts), harmless, texts)

    holds()


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\x0b"])
def test_control_characters_are_refused_everywhere(character: str, folder: Path) -> None:
    for field in (*LINES, *TEXTS):
        with pytest.raises(SpecError, match=rf"U\+{ord(character):04X}") as raised:
            compiled(folder, {field: f"a{character}b"})
        assert len(raised.value.problems) == 1


# --- names


NAMES = """\
{verbc: 1,
server: {name: demo, summary: A demo.},
backends: {tool: {cli: tool}, local: {python: handlers.py}},
verbs: {
go: {summary: Goes., params: {<name>: {type: string, description: D., default: x}}, refused: {<other>: No.}, run: {tool: go, as: {<name>: --flag}}},
keep: {summary: Keeps., params: {<name>: {type: object, properties: {<name>: {enum: [a, b]}}}}, required: [<name>], run: {local: keep}},
tell: {summary: Tells., result: {type: object, properties: {<name>: {type: array, items: {type: object, properties: {<name>: string}}}}}, run: {local: tell}}}}
"""


def compiled_names(folder: Path, name: str) -> dict[str, str]:
    spec = NAMES.replace("<name>", written(name)).replace("<other>", written(f"{name}z"))
    (folder / "demo.yaml").write_text(spec, encoding="utf-8")
    (folder / "handlers.py").write_text("class Handlers: ...\n", encoding="utf-8")
    return compile_spec(folder / "demo.yaml", "specs/demo.yaml")[1]


def doings(code: str) -> set[str]:
    """All that a module can do: the kinds of its nodes, what it calls and what it imports. Aliases come and go."""
    nodes = list(ast.walk(ast.parse(code)))
    called = {f"call {ast.unparse(node.func)}" for node in nodes if isinstance(node, ast.Call)}
    imported = {f"from {node.module}" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {*(type(node).__name__ for node in nodes if not isinstance(node, ast.BinOp | ast.BitOr)), *called, *imported}


def top_level(code: str) -> list[str]:
    """The classes, functions and names that a module defines."""
    targets = [node.targets[0] for node in ast.parse(code).body if isinstance(node, ast.Assign)]
    defined = [node.name for node in ast.parse(code).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return [*defined, *map(ast.unparse, targets)]


@pytest.fixture(scope="module")
def harmless_names(folder: Path) -> dict[str, str]:
    return compiled_names(folder, "a b")


def check_names(files: Mapping[str, str], harmless: Mapping[str, str], name: str) -> None:
    for path, code in emitted(files).items():
        assert doings(code) == doings(harmless[path]), path
        assert len(top_level(code)) == len(set(top_level(code))), path
        assert code.isascii(), path
    registry = json.loads(files["demo_mcp/registry.json"])
    assert list(registry["verbs"][0]["params"]["properties"]) == [name]
    assert registry["verbs"][0]["refused"] == {f"{name}z": "No."}
    assert list(registry["verbs"][2]["result"]["properties"]) == [name]
    check_page(files["docs/verbs.md"], harmless["docs/verbs.md"])


def nameable(texts: Iterable[str]) -> list[str]:
    """Those texts that can be names and need an alias, as `a b` does."""
    return [
        text
        for text in texts
        if text.isprintable() and text == text.strip() and not text.isidentifier() and 0 < len(text) <= 120
    ]


@pytest.mark.parametrize("name", nameable(HOSTILE), ids=ascii)
def test_hostile_names(name: str, folder: Path, harmless_names: dict[str, str]) -> None:
    check_names(compiled_names(folder, name), harmless_names, name)


def test_any_name(folder: Path, harmless_names: dict[str, str]) -> None:
    @SEVERAL
    @given(ANY.filter(lambda text: bool(nameable([text]))))
    def holds(name: str) -> None:
        check_names(compiled_names(folder, name), harmless_names, name)

    holds()


@pytest.mark.parametrize(
    "name",
    [
        "specs/a\nimport os\n.yaml",
        "specs/`x` | <b>.yaml",
        'specs/""".yaml',
        "specs/größe.yaml",
        "specs/\\.yaml",
        "specs/*/ -->.yaml",
        "specs/{{ x }}.yaml",
    ],
)
def test_hostile_paths(name: str, folder: Path, harmless: dict[str, str]) -> None:
    files = compiled(folder, {}, name)
    assert len({text.count("\n") for text in (files["pyproject.toml"], harmless["pyproject.toml"])}) == 1
    for path, code in emitted(files).items():
        assert shape(code) == shape(harmless[path]), path
        assert code.count("\n") == harmless[path].count("\n"), path
        assert code.isascii(), path
    assert tomllib.loads(files["pyproject.toml"]) == tomllib.loads(harmless["pyproject.toml"])
    for page in ("README.md", "docs/verbs.md"):
        check_page(files[page], harmless[page])
