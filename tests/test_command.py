"""The commands as a user meets them: what they print, what they write, and how they exit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from verbc import __version__
from verbc.command import main
from verbc.compose import load
from verbc.grammar import grammar
from verbc.source import native, read

ROOT = Path(__file__).parents[1]
VERBC = Path(sys.executable).with_name("verbc")
HELLO = ROOT / "specs" / "hello.yaml"
ONE = """\
verbc: 1
server: {name: one, summary: A demo.}
backends: {tool: {cli: tool}}
verbs:
  go: {summary: Goes., run: {tool: go}}
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one spec, where the command is run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "one.yaml").write_text(ONE, encoding="utf-8")
    return tmp_path


def respell(project: Path, old: str, new: str) -> None:
    spec = project / "specs" / "one.yaml"
    text = spec.read_text(encoding="utf-8")
    assert old in text
    spec.write_text(text.replace(old, new), encoding="utf-8")


def exit_code(*arguments: str) -> int:
    """How the command ends, also where argparse ends it."""
    try:
        return main(list(arguments))
    except SystemExit as ended:
        return int(str(ended.code))


# --- usage


@pytest.mark.parametrize(
    "arguments",
    [[], ["compile"], ["generate", "--force"], ["check", "--dif"], ["init"], ["init", "a", "b"], ["schema", "x"], ["generate", "--out"], ["gen"]],
)  # fmt: skip
def test_wrong_usage_exits_with_2(arguments: list[str], project: Path, capsys: Capture) -> None:
    assert exit_code(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("usage: verbc")
    assert not (project / "generated").exists()


@pytest.mark.parametrize("arguments", [["--help"], ["generate", "--help"], ["check", "--help"], ["init", "--help"]])
def test_help_exits_with_0(arguments: list[str], capsys: Capture) -> None:
    assert exit_code(*arguments) == 0
    assert capsys.readouterr().out.startswith("usage: verbc")


def test_version(capsys: Capture) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"verbc {__version__}\n"


def test_installed_command_is_the_same(project: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(project / "cache"), "LC_ALL": "C"}
    respell(project, "A demo.", '"Grüße, 世界."')
    for arguments, code in ((["generate"], 0), (["check"], 0), (["check", "specs/none.yaml"], 1), (["nothing"], 2)):
        done = subprocess.run([VERBC, *arguments], env=environment, capture_output=True, check=False)
        assert done.returncode == code, done.stderr
        assert b"Traceback" not in done.stderr
    assert "世界" in (project / "generated/one-mcp/README.md").read_text(encoding="utf-8")


# --- generate


def test_generate_tells_a_line_for_each_package(project: Path, capsys: Capture) -> None:
    assert main(["generate"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    first, last = shown.out.splitlines()
    count = int(re.fullmatch(r"generated/one-mcp: (\d+) written, 0 unchanged", first)[1])  # type: ignore[index]
    assert re.fullmatch(r"1 package in \d+\.\d\d s", last)
    assert main(["generate"]) == 0
    assert capsys.readouterr().out.startswith(f"generated/one-mcp: 0 written, {count} unchanged\n")
    respell(project, "  go:", "  a.go:")
    assert main(["generate", "specs/one.yaml", "--out", "generated"]) == 0
    assert re.match(r"generated/one-mcp: \d+ written, \d+ unchanged, \d+ removed\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("specs/none.yaml", "specs/none.yaml:1:1: this file cannot be read: No such file or directory"),
        ("nowhere/none.yaml", "nowhere/none.yaml:1:1: this file cannot be read: No such file or directory"),
        ("empty", "empty:1:1: this folder is no spec; it has no server.yaml"),
    ],
)
def test_a_missing_spec_is_a_located_problem(spec: str, problem: str, project: Path, capsys: Capture) -> None:
    (project / "empty").mkdir()
    (project / "empty" / "other.txt").write_text("x", encoding="utf-8")
    for command, untouched in (("generate", "; nothing was written"), ("check", "")):
        assert main([command, spec]) == 1
        assert capsys.readouterr().err == f"{problem}\n1 problem{untouched}\n"
    assert not (project / "generated").exists()


def test_a_folder_without_its_mark_is_no_spec(project: Path, capsys: Capture) -> None:
    (project / "other").mkdir()
    (project / "other" / "verbs.yaml").write_text(ONE, encoding="utf-8")
    assert main(["generate", "other"]) == 1
    assert capsys.readouterr().err.startswith("other:1:1: this folder is no spec; it has no server.yaml\n")


def test_no_specs_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("generate", "check"):
        assert main([command]) == 1
        assert capsys.readouterr().err.startswith("specs:1:1: there is no spec in this folder; `verbc init NAME`")


def test_problems_of_all_specs_come_together(project: Path, capsys: Capture) -> None:
    (project / "specs" / "two.yaml").write_text(ONE.replace("cli:", "clo:"), encoding="utf-8")
    respell(project, "summary: Goes.", "sumary: Goes.")
    assert main(["generate"]) == 1
    shown = capsys.readouterr().err
    assert shown.endswith("2 problems; nothing was written\n")
    assert shown.index("specs/one.yaml:5:8: ") < shown.index("specs/two.yaml:3:12: ")


def test_problems_show_the_line_and_a_caret(project: Path, capsys: Capture) -> None:
    respell(project, "summary: Goes.", "sumary: Goes.")
    assert main(["check"]) == 1
    _, line, caret, _ = capsys.readouterr().err.splitlines()
    assert line == "    go: {sumary: Goes., run: {tool: go}}"
    assert caret == " " * line.index("sumary") + "^"


def test_a_long_line_is_shown_in_part(project: Path, capsys: Capture) -> None:
    many = ", ".join(f"p{number}: string" for number in range(500))
    respell(project, "run:", f"params: {{{many}}}, sumary: x, description: {'d' * 3000}, run:")
    assert main(["check"]) == 1
    _, line, caret, _ = capsys.readouterr().err.splitlines()
    assert len(line) <= 200
    assert line[caret.index("^") :].startswith("sumary")


def test_packages_of_one_name_are_a_problem(project: Path, capsys: Capture) -> None:
    (project / "specs" / "two.yaml").write_text(ONE, encoding="utf-8")
    assert main(["generate"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith('specs/two.yaml:1:1: its package "one-mcp" is also the one of specs/one.yaml')
    assert not (project / "generated").exists()


def test_one_spec_named_twice_is_compiled_once(project: Path, capsys: Capture) -> None:
    assert main(["generate", "specs/one.yaml", "./specs/one.yaml"]) == 0
    assert capsys.readouterr().out.count("generated/one-mcp:") == 1


# --- check


def test_check_of_what_was_never_generated(project: Path, capsys: Capture) -> None:
    assert main(["check"]) == 1
    assert capsys.readouterr().out == "missing: generated/one-mcp\nnot current; run `verbc generate`\n"
    assert not (project / "generated").exists()


def test_one_changed_summary_is_seen_and_its_files_are_named(project: Path, capsys: Capture) -> None:
    assert main(["generate"]) == 0
    assert main(["check"]) == 0
    assert capsys.readouterr().out.endswith("current: 1 package\n")
    respell(project, "summary: Goes.", "summary: Runs.")
    for _ in range(2):
        assert main(["check"]) == 1
        changed = set(re.findall(r"(?m)^changed: generated/one-mcp/(.*)$", capsys.readouterr().out))
        assert changed == {".verbc.json", "docs/verbs.md", "one_mcp/registry.json", "one_mcp/verbs/root.py"}
    assert main(["generate"]) == 0
    assert main(["check"]) == 0


def test_check_writes_nothing_in_the_project(project: Path) -> None:
    assert main(["check"]) == 1
    assert main(["generate"]) == 0
    respell(project, "Goes.", "Runs.")
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*") if "cache" not in path.parts}
    assert main(["check", "--diff"]) == 1
    assert main(["check"]) == 1
    assert {path: path.stat().st_mtime_ns for path in project.rglob("*") if "cache" not in path.parts} == before


def test_diff_shows_changed_missing_and_orphaned(project: Path, capsys: Capture) -> None:
    assert main(["generate"]) == 0
    folder = project / "generated" / "one-mcp"
    (folder / "one_mcp" / "py.typed").write_text("x\n", encoding="utf-8")
    (folder / "docs" / "verbs.md").unlink()
    (folder / "notes.txt").write_text("mine\n", encoding="utf-8")
    (folder / "README.md").write_bytes(b"\xff\xfe not text\n")
    capsys.readouterr()
    assert main(["check", "--diff"]) == 1
    shown = capsys.readouterr().out
    for line in ("changed: generated/one-mcp/README.md", "missing: generated/one-mcp/docs/verbs.md"):
        assert f"{line}\n" in shown
    assert "orphaned: generated/one-mcp/notes.txt\n" in shown
    assert "\n-x\n" in shown
    assert re.search(r"(?m)^\+# one: verbs$", shown)
    assert shown.endswith("not current; run `verbc generate`\n")


def test_diff_shows_the_changed_lines(project: Path, capsys: Capture) -> None:
    assert main(["generate"]) == 0
    respell(project, "summary: Goes.", "summary: Runs.")
    capsys.readouterr()
    assert main(["check", "--diff"]) == 1
    shown = capsys.readouterr().out
    assert '-    """Goes."""\n' in shown
    assert '+    """Runs."""\n' in shown
    assert main(["generate"]) == 0
    capsys.readouterr()
    assert main(["check", "--diff"]) == 0
    assert capsys.readouterr().out == "current: 1 package\n"


# --- what check remembers


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"inputs": 5}', "\udcff"])
def test_a_broken_memory_does_not_matter(text: str, project: Path, capsys: Capture) -> None:
    assert main(["generate"]) == 0
    assert main(["check"]) == 0
    kept = [path for path in (project / "cache").rglob("*") if path.is_file()]
    for path in kept:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main(["check"]) == 0
    respell(project, "Goes.", "Runs.")
    assert main(["check"]) == 1


def test_a_memory_of_the_wrong_shape_does_not_matter(project: Path) -> None:
    assert main(["generate"]) == 0
    assert main(["check"]) == 0
    for path in (project / "cache").rglob("*.json"):
        entry = json.loads(path.read_text(encoding="utf-8"))
        shapes: list[Any] = [[], 5, {"../x": "y"}, {"README.md": None}, {}]
        for shape in shapes:
            path.write_text(json.dumps({**entry, "packages": {"one-mcp": shape}}), encoding="utf-8")
            assert main(["check"]) in (0, 1)


def test_memory_that_cannot_be_kept_only_costs_time(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "file"))
    assert main(["generate"]) == 0
    assert main(["check"]) == 0
    respell(project, "Goes.", "Runs.")
    assert main(["check"]) == 1


def test_what_lies_beside_a_spec_is_not_forgotten(project: Path) -> None:
    spec = ONE.replace("{tool: {cli: tool}}", "{local: {python: handlers.py}}").replace("{tool: go}", "{local: go}")
    (project / "specs" / "one.yaml").write_text(spec, encoding="utf-8")
    (project / "specs" / "handlers.py").write_text("class Handlers: ...\n", encoding="utf-8")
    assert main(["generate"]) == 0
    assert main(["check"]) == 0
    (project / "specs" / "handlers.py").write_text("class Handlers: pass\n", encoding="utf-8")
    assert main(["check"]) == 1
    (project / "specs" / "handlers.py").unlink()
    assert main(["check"]) == 1
    assert main(["generate"]) == 1


def test_a_renamed_spec_is_not_taken_for_the_old_one(project: Path) -> None:
    assert main(["generate"]) == 0
    assert main(["check"]) == 0
    (project / "specs" / "one.yaml").rename(project / "specs" / "two.yaml")
    assert main(["check"]) == 1
    assert main(["generate"]) == 0
    assert main(["check"]) == 0


# --- schema


def printed_schema(capsys: Capture) -> dict[str, Any]:
    assert main(["schema"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return dict(json.loads(shown.out))


def test_schema_is_a_schema(capsys: Capture) -> None:
    schema = printed_schema(capsys)
    assert schema == grammar()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_schema_accepts_specs(capsys: Capture) -> None:
    validator = jsonschema.Draft202012Validator(printed_schema(capsys))
    cases = Path(__file__).parent / "cases" / "valid"
    for path in (HELLO, *sorted(cases.glob("*/spec.yaml"))):
        if path.parent.name == "text_is_kept":
            continue  # for readers of YAML that know no such rule it is full of numbers
        document = native(load(read(path, path.name)))
        assert [error.message for error in validator.iter_errors(document)] == [], path


@pytest.mark.parametrize(
    "change",
    [
        {"sever": {}},
        {"verbc": 2},
        {"surface": "tool"},
        {"server": {"name": "x"}},
        {"server": {"name": "x", "summary": "X.", "port": 1}},
        {"backends": {"tool": {"cli": "tool", "envs": []}}},
        {"backends": {"tool": {}}},
        {"verbs": {"go": {"summary": "Goes.", "run": {"tool": "go"}, "sumary": "x"}}},
        {"verbs": {"go": {"summary": "Goes.", "run": {"tool": "go"}, "effect": "change"}}},
        {
            "verbs": {
                "go": {"summary": "Goes.", "run": {"tool": "go"}, "params": {"a": {"type": "string", "allOf": []}}}
            }
        },
        {"verbs": {"go": {"summary": "Goes.", "run": {"tool": "go"}, "params": {"a": {"minLength": "x"}}}}},
    ],
)
def test_schema_refuses_what_the_compiler_refuses(change: dict[str, Any], tmp_path: Path, capsys: Capture) -> None:
    validator = jsonschema.Draft202012Validator(printed_schema(capsys))
    document = {**yaml.safe_load(ONE), **change}
    assert not validator.is_valid(document)
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps(document), encoding="utf-8")
    assert main(["generate", str(spec), "--out", str(tmp_path / "out")]) == 1
    capsys.readouterr()


# --- init


def test_init_writes_a_project_that_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["init", "my-demo"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "my-demo/specs/my-demo.yaml" in shown
    assert shown[-1] == "next: cd my-demo && make generate test"
    assert all((tmp_path / line).is_file() for line in shown[:-1])
    monkeypatch.chdir(tmp_path / "my-demo")
    assert main(["generate"]) == 0
    assert (tmp_path / "my-demo" / "generated" / "my-demo-mcp" / "my_demo_mcp" / "registry.json").is_file()
    assert main(["check"]) == 0
    assert not any("hello" in (tmp_path / line).read_text(encoding="utf-8") for line in shown[:-1])
    assert "VERBC ?= verbc" in (tmp_path / "my-demo" / "Makefile").read_text(encoding="utf-8")


def test_init_is_the_hello_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "hello"]) == 0
    assert (tmp_path / "hello/specs/hello.yaml").read_bytes() == HELLO.read_bytes()


def test_init_takes_an_empty_folder_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["init", "empty"]) == 0
    before = {path: path.read_bytes() for path in (tmp_path / "empty").rglob("*") if path.is_file()}
    assert main(["init", "empty"]) == 1
    assert capsys.readouterr().err == (
        "verbc: empty is not empty; choose another name, or empty it; nothing was written\n"
    )
    assert {path: path.read_bytes() for path in (tmp_path / "empty").rglob("*") if path.is_file()} == before
    (tmp_path / "file").write_text("mine\n", encoding="utf-8")
    assert main(["init", "file"]) == 1
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine\n"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert main(["init", "link"]) == 1
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../up",
        "/abs",
        "Demo",
        "1st",
        "a_b",
        "a b",
        "a--b",
        "-a",
        "größe",
        "a/b",
        "a\nb",
        "x" * 37,
        "demo-",
    ],
)
def test_init_refuses_what_no_server_can_be_called(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code("init", "--", name) == 1
    shown = capsys.readouterr().err
    assert "no name for a server" in shown
    assert shown.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "class", "mcp", "test", "tests", "build", "handlers", "x" * 36])
def test_init_with_names_that_mean_something_elsewhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["init", name]) == 0
    monkeypatch.chdir(tmp_path / name)
    assert main(["generate"]) == 0


def test_bytes_do_not_depend_on_the_folder_one_stands_in(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["generate"]) == 0
    monkeypatch.chdir(project / "specs")
    assert main(["check", "one.yaml", "--out", "../generated"]) == 0


def test_handlers_behind_a_link_are_inputs(project: Path) -> None:
    (project / "real").mkdir()
    (project / "real" / "__init__.py").write_text("class Handlers: ...\n", encoding="utf-8")
    (project / "specs" / "hands").symlink_to("../real")
    spec = "verbc: 1\nserver: {name: two, summary: Two.}\nbackends: {here: {python: hands}}\n"
    verb = "verbs: {look: {summary: Looks., run: {here: look}}}\n"
    (project / "specs" / "two.yaml").write_text(spec + verb, encoding="utf-8")
    assert main(["generate"]) == 0
    (project / "real" / "__init__.py").write_text("class Handlers: pass\n", encoding="utf-8")
    assert main(["check"]) == 1


def test_a_link_to_an_equal_file_is_a_change(project: Path) -> None:
    assert main(["generate"]) == 0
    readme = project / "generated" / "one-mcp" / "README.md"
    (project / "copy.md").write_bytes(readme.read_bytes())
    readme.unlink()
    readme.symlink_to(project / "copy.md")
    assert main(["check"]) == 1


def test_a_pipe_in_the_place_of_a_file_stops_nothing(project: Path) -> None:
    assert main(["generate"]) == 0
    readme = project / "generated" / "one-mcp" / "README.md"
    readme.unlink()
    os.mkfifo(readme)
    assert main(["check"]) == 1
    assert main(["generate"]) == 0
    assert readme.is_file()
    assert main(["check"]) == 0


def test_a_reader_who_has_enough_ends_it_quietly(project: Path) -> None:
    shell = f"{sys.executable} -m verbc schema | head -c 10"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, check=False)
    assert (len(done.stdout), done.stderr) == (10, b"")


def test_text_that_the_terminal_cannot_show_is_escaped(project: Path) -> None:
    (project / "specs" / "one.yaml").write_text("verbc: 1\nserveur: é\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "verbc", "check"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"serveur: \\xe9" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_spec_whose_name_is_not_utf8_is_compiled(project: Path, capsys: Capture) -> None:
    (project / "specs" / "one.yaml").rename(project / "specs" / os.fsdecode(b"a\xff.yaml"))
    assert main(["generate"]) == 0
    assert main(["check"]) == 0
    header = (project / "generated" / "one-mcp" / "pyproject.toml").read_text(encoding="utf-8").partition("\n")[0]
    assert "specs/a?.yaml" in header
