"""The pages of the repository say what is so: their specs compile, their lists are whole, their links lead somewhere."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from verbc import access, backends, spec
from verbc.operations import KINDS, operations
from verbc.pipeline import compile_spec
from verbc.problems import SpecError
from verbc.support.refusal import BUILT_IN_KINDS

ROOT = Path(__file__).parents[1]
LANGUAGE = ROOT / "docs" / "spec-language.md"
CODE = ROOT / "docs" / "generated-code.md"
OPERATING = ROOT / "docs" / "operating.md"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])

BLOCK = re.compile(r"(?ms)^(?:<!-- (?P<mark>[a-z]+) -->\n)?```(?P<language>[a-z]+)\n(?P<text>.*?)^```$")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Links to the web are for the reader; registries are named by what they are, and paths of one machine by nobody.
UNWANTED = re.compile(r"pypi\.org|npmjs\.|files\.pythonhosted|proxy\.golang|/work/|/root/|/home/[a-z]+/")
# The manifest that the page about the language shows.
MANIFEST = re.findall(r"(?ms)^<!-- manifest -->\n```yaml\n(.*?)^```$", LANGUAGE.read_text(encoding="utf-8"))[0]
# A spec that uses it.
WITH_MANIFEST = """
access: {policy: {}}
backends: {gate: {gateway: [upstreams/cal.yaml], env: ["CAL_*"]}}
verbs: {list: {summary: Lists., run: {gate: servers}}}
"""
HANDLERS = "class Handlers:\n    pass\n"
# Shapes a run with hooks, and asks for its end: without a report, with an answer of the command line, with a report.
USES_HOOKS = """
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from demo_mcp.handlers import Handlers
from demo_mcp.interface import Launch, RunRecord
from demo_mcp.models import BuildSubmitParams
from demo_mcp._support.run_record import Identity

async def main(hooks, folder):
    launch = Launch("20260301T123045-0a1b2c", folder, ["build", "--", "all"])
    await hooks.runs_prepare(launch, BuildSubmitParams(target="all", notes="Soon."), None)
    print(" ".join(launch.argv).replace(str(folder), "."), launch.files, launch.details, *launch.environment)
    record = RunRecord(launch.run_id, "build.submit", None, ("make",), ".", folder, Identity(1, ""), datetime.now(UTC))
    async def ask(words, timeout):
        return {"ok": words != ["state", launch.run_id]}
    print(await hooks.runs_ended(record, None), (await hooks.runs_ended(record, ask)).status)
    (folder / "report.json").write_text('{"ok": true}')
    print((await hooks.runs_ended(record, None)).outcome, await hooks.runs_settled(record))
    print(await hooks.runs_details(record))

(folder := Path("run").absolute()).mkdir()
asyncio.run(main(Handlers(), folder))
"""
# What a part of a spec leaves out.
HEAD = {"verbc": "verbc: 1", "server": "server: {name: demo, summary: A frame.}"}


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code of a page, and the comment before it."""

    page: Path
    line: int
    language: str
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found["language"], found["mark"] or "", found["text"])
        for found in BLOCK.finditer(text)
    ]


def yaml_blocks() -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language == "yaml"]


def compiled(text: str, folder: Path) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "demo.yaml").write_text(text, encoding="utf-8")
    (folder / "handlers.py").write_text(HANDLERS, encoding="utf-8")
    (folder / "upstreams").mkdir(exist_ok=True)
    (folder / "upstreams" / "cal.yaml").write_text(MANIFEST, encoding="utf-8")
    return compile_spec(folder / "demo.yaml", "specs/demo.yaml")[1]


def framed(block: Block) -> str:
    """A whole spec with the block in it."""
    match block.mark:
        case "verbs":
            verbs = "".join(f"  {line}" for line in block.text.splitlines(keepends=True))
            return completed(f"verbs:\n{verbs}")
        case "sections":
            return completed(block.text)
        case "manifest":
            return completed(WITH_MANIFEST)
        case _:
            return block.text


def completed(sections: str) -> str:
    """A spec of some sections and of what they need beside them; all that they define is used."""
    given = yaml.load(sections, yaml.BaseLoader)  # noqa: S506 - every scalar as text
    missing = [line for key, line in HEAD.items() if key not in given]
    if "backends" not in given:
        missing.append("backends: {app: {cli: app}}")
    if "verbs" not in given:
        result = {"type": "object", "properties": {f"a{name}": name for name in given.get("types", {})}}
        made = {
            f"use_{name}": {"summary": "Uses it.", "result": result, "run": {name: target_of(name, backend)}}
            for name, backend in given.get("backends", {"app": {}}).items()
        }
        missing.append(f"verbs: {json.dumps(made)}")
    return "\n".join([*missing, sections])


def target_of(name: str, backend: dict[str, Any]) -> str:
    """What a verb could run that uses a backend."""
    return f"GET /{name}" if "http" in backend else f"run_{name}"


@pytest.mark.parametrize("block", [block for block in yaml_blocks() if block.mark != "wrong"], ids=str)
def test_every_spec_compiles(block: Block, tmp_path: Path) -> None:
    assert block.text.startswith("verbc: 1\n") or block.mark, "a part of a spec says by a comment how it is framed"
    assert compiled(framed(block), tmp_path)


def test_the_language_is_shown_by_example() -> None:
    marks = {block.mark for block in blocks(LANGUAGE) if block.language == "yaml"}
    assert marks == {"", "manifest", "sections", "verbs", "wrong"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")], ids=name_of
)
def test_python_is_what_the_spec_before_it_becomes(page: Path, tmp_path: Path) -> None:
    code = ""
    for number, block in enumerate(blocks(page)):
        if block.language == "yaml":
            code = "\n".join(compiled(framed(block), tmp_path / str(number)).values()) if block.mark != "wrong" else ""
        elif block.language == "python" and not block.mark:
            assert block.text in code, str(block)


def test_readme_shows_a_spec_and_what_it_becomes() -> None:
    languages = [block.language for block in blocks(ROOT / "README.md")]
    assert languages[:2] == ["yaml", "python"]


def test_wrong_specs_give_the_problems_that_are_shown(tmp_path: Path) -> None:
    found = blocks(LANGUAGE)
    wrong = [(block, after) for block, after in pairwise(found) if block.mark == "wrong"]
    assert wrong
    for block, shown in wrong:
        with pytest.raises(SpecError) as caught:
            compiled(block.text, tmp_path)
        assert (shown.language, shown.text) == ("text", f"{caught.value}\n")


def test_the_handlers_that_are_shown_are_handlers(tmp_path: Path) -> None:
    found = blocks(CODE)
    handlers, asks = (block for block in found if block.mark in ("handlers", "asks"))
    spec = next(block for block in found if block.language == "yaml")
    assert said_by(asks.text, spec, handlers, tmp_path) == "count=3\n"


def test_the_hooks_that_are_shown_are_hooks(tmp_path: Path) -> None:
    found = blocks(CODE)
    (hooks,) = (block for block in found if block.mark == "hooks")
    spec = [block for block in found[: found.index(hooks)] if block.language == "yaml"][-1]
    assert said_by(USES_HOOKS, spec, hooks, tmp_path).splitlines() == [
        "build --notes=./notes.txt -- all {'notes.txt': 'Soon.'} {'target': 'all'} REPORT",
        "None broken",
        "succeeded None",
        "{'files': ['report.json']}",
    ]


def said_by(program: str, spec: Block, handlers: Block, folder: Path) -> str:
    """What a program prints that uses the package of a spec with these handlers."""
    files = compiled(framed(spec), folder / "spec")
    for path, text in {**files, "demo_mcp/handlers.py": handlers.text}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "block", [block for page in PAGES for block in blocks(page) if block.language == "json"], ids=str
)
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


def test_the_fingerprints_that_are_shown_are_those_of_the_spec_before_them(tmp_path: Path) -> None:
    found = blocks(OPERATING)
    (shop,) = (block for block in found if block.language == "yaml")
    registry = json.loads(compiled(framed(shop), tmp_path)["demo_mcp/registry.json"])
    shown = re.findall(r'"schema_fingerprint": "([^"]*)"', "".join(block.text for block in found))
    assert len(shown) > 1
    assert set(shown) == {registry["verbs"][0]["fingerprint"]}


def test_every_key_of_the_grammar_is_told() -> None:
    code = " ".join(re.findall(r"`([^`\n]+)`", LANGUAGE.read_text(encoding="utf-8")))
    told = {*re.findall(r"[A-Za-z_]+", code), *re.findall(r"[a-z]+(?:-[a-z]+)+", code)}
    assert sorted(keys() - told) == []


def keys() -> set[str]:
    """The keys of every map of the language, as they are written."""
    models = {
        model
        for module in (spec, backends, access)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, BaseModel)
    }
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_operation_is_told(kind: str) -> None:
    text = LANGUAGE.read_text(encoding="utf-8")
    told = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`\n]+)`", text))))
    for name, operation in operations(kind).items():
        said = {name, *operation.part.get("params", ()), *operation.part["result"]["properties"]}
        assert sorted(said - told) == [], name


def test_every_built_in_kind_is_told() -> None:
    for page in (LANGUAGE, OPERATING):
        text = page.read_text(encoding="utf-8")
        assert [kind for kind in BUILT_IN_KINDS if f"`{kind}`" not in text] == []


def test_every_support_module_is_told() -> None:
    modules = {path.stem for path in (ROOT / "generator" / "verbc" / "support").glob("*.py")} - {"__init__"}
    rows = re.findall(r"(?m)^\| `([a-z_]+)` \| ", section(CODE, "Support modules"))
    assert sorted(rows) == sorted(modules)


def test_every_field_of_a_registry_is_told(tmp_path: Path) -> None:
    registry = hello(tmp_path)
    for heading, entry in (("The registry", registry), ("A verb", registry["verbs"][0])):
        told = set(re.findall(r"`([a-z_]+)`", "".join(re.findall(r"(?m)^\| ([^|]*) \|", section(CODE, heading)))))
        assert sorted(entry.keys() - told) == []


def test_digests_recompute_as_the_page_says(tmp_path: Path) -> None:
    (block,) = (block for block in blocks(CODE) if block.mark == "runs")
    told: dict[str, Any] = {}
    exec(block.text, told)  # noqa: S102 - a page of this repository
    registry = hello(tmp_path)
    (verb,) = registry["verbs"]
    assert told["fingerprint"](verb["params"]) == verb["fingerprint"]
    assert told["registry_digest"](registry) == registry["digest"]
    assert told["verb_digest"](verb, registry) == verb["digest"]


def hello(tmp_path: Path) -> dict[str, Any]:
    files = compiled((ROOT / "specs" / "hello.yaml").read_text(encoding="utf-8"), tmp_path)
    registry: dict[str, Any] = json.loads(files["hello_mcp/registry.json"])
    return registry


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"(?ms)^#+ {heading}\n(.*?)(?=^#|\Z)", page.read_text(encoding="utf-8"))
    assert found, heading
    return found[1]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    local = [target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not leads_somewhere(page, target)] == []


def leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    place = page.parent / path if path else page
    if not anchor:
        return place.exists()
    return place.is_file() and anchor in anchors(place.read_text(encoding="utf-8"))


def anchors(text: str) -> set[str]:
    """The anchors that forges make of headings."""
    headings = re.findall(r"(?m)^#+ (.+)$", BLOCK.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_name_no_registry_and_no_place_of_one_machine(page: Path) -> None:
    assert UNWANTED.findall(page.read_text(encoding="utf-8")) == []
