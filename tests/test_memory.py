"""What `check` remembers counts for the very same inputs only, and never hides drift."""

from pathlib import Path

import pytest

from verbc import command, memory, pipeline

SPEC = """\
verbc: 1
server: {name: tiny, summary: Tiny.}
backends: {here: {python: handlers.py}}
verbs:
  look: {summary: Looks., effect: read, run: {here: look}}
"""
HANDLERS = "class Handlers:\n    async def look(self, call: object) -> object:\n        return 1\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "tiny.yaml").write_text(SPEC)
    (tmp_path / "specs" / "handlers.py").write_text(HANDLERS)
    monkeypatch.chdir(tmp_path)
    assert command.main(["generate"]) == 0
    return tmp_path


def forbid_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_all(specs: object) -> None:
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(pipeline, "compile_all", compile_all)


def test_unchanged_specs_are_not_compiled_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_compiling(monkeypatch)
    assert command.main(["check"]) == 0


@pytest.mark.parametrize("name", ["tiny.yaml", "handlers.py"])
def test_every_input_counts(project: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    place = project / "specs" / name
    place.write_text(place.read_text() + "# more\n")
    assert memory.recall([Path("specs/tiny.yaml")]) is None


def test_another_compiler_remembers_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_compiler", lambda: "another compiler")
    assert memory.recall([Path("specs/tiny.yaml")]) is None


def test_drift_is_seen_without_compiling(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forbid_compiling(monkeypatch)
    (project / "generated/tiny-mcp/README.md").write_text("mine")
    (project / "generated/tiny-mcp/.verbc.json").write_text('{"verbc": 1, "files": {}}')
    (project / "generated/tiny-mcp/tiny_mcp/server.py").unlink()
    (project / "generated/tiny-mcp/more.txt").write_text("")
    assert command.main(["check"]) == 1
    printed = capsys.readouterr().out
    assert "changed: generated/tiny-mcp/README.md" in printed
    assert "changed: generated/tiny-mcp/.verbc.json" in printed
    assert "missing: generated/tiny-mcp/tiny_mcp/server.py" in printed
    assert "orphaned: generated/tiny-mcp/more.txt" in printed


def test_inputs_that_change_while_compiling_are_not_remembered(project: Path) -> None:
    specs = [Path("specs/tiny.yaml")]
    before = memory.inputs_of(specs)
    (project / "specs" / "tiny.yaml").write_text(SPEC.replace("Tiny.", "Tinier."))
    memory.remember(specs, before, {"tiny-mcp": {}})
    assert memory.recall(specs) is None


def test_a_memory_that_cannot_be_kept_is_no_fault(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "file"))
    assert command.main(["check"]) == 0
    assert memory.recall([Path("specs/tiny.yaml")]) is None


def test_a_broken_memory_is_no_fault(project: Path) -> None:
    specs = [Path("specs/tiny.yaml")]
    place = memory._place(specs)
    for text in ("", "[]", '{"inputs": 1}', "{"):
        place.write_text(text)
        assert memory.recall(specs) is None
