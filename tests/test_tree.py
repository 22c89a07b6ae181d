"""Writing packages is safe at any moment: a kill, a foreign file, a link or a forged manifest never costs anybody a file."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from verbc.command import main
from verbc.problems import NothingWrittenError
from verbc.tree import CACHES, MANIFEST, UNFINISHED, Drift, compare, digests_of, write

OLD = {
    "pyproject.toml": "old\n",
    "same.txt": "same\n",
    "pkg/__init__.py": "",
    "pkg/gone/x.py": "x\n",
    "pkg/a.py": "a\n",
}
NEW = {"pyproject.toml": "new\n", "same.txt": "same\n", "pkg/__init__.py": "1\n", "pkg/more/y.py": "y\n", "z.py": "z\n"}
THIRD = {"same.txt": "same\n", "third.txt": "3\n"}

# Makes the tree of a package in folders 0, 1, 2 …, and writes another one over each, killed before the n-th change.
KILLED = """
import json, os, sys
from pathlib import Path
from verbc.tree import write

old, new, place = json.loads(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3])
left = 0

def counted(name):
    real = getattr(os, name)
    def change(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return real(*arguments, **options)
    setattr(os, name, change)

for number in range(100):
    write(old, place / str(number))
    child = os.fork()
    if child == 0:
        left = number
        for name in ("replace", "rename", "unlink", "remove", "rmdir", "mkdir"):
            counted(name)
        write(new, place / str(number))
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        print(number)
        break
"""


def drift(texts: Mapping[str, str], folder: Path) -> Drift:
    return compare(digests_of(texts), folder)


def on_disk(folder: Path) -> dict[str, str]:
    """Every file below a folder by its path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def put(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def forge(folder: Path, files: Mapping[str, Any]) -> None:
    """A manifest that lists what it should not."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_text(json.dumps({"verbc": 1, "files": dict(files)}), encoding="utf-8")


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def killed(old: Mapping[str, str], new: Mapping[str, str], place: Path) -> int:
    """How many changes it takes to write `new` over `old`; folder n of `place` is left as after a kill before the n-th."""
    command = [sys.executable, "-c", KILLED, json.dumps(old), json.dumps(new), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


# --- a kill at any moment


@pytest.mark.parametrize(("old", "new"), [({}, NEW), (OLD, NEW), (NEW, OLD), (OLD, {}), (OLD, OLD)])
def test_a_kill_leaves_every_file_whole(old: dict[str, str], new: dict[str, str], tmp_path: Path) -> None:
    steps = killed(old, new, tmp_path)
    assert steps >= (0 if old == new else 3)
    for number in range(steps):
        folder = tmp_path / str(number)
        for path, text in on_disk(folder).items():
            if path not in (MANIFEST, UNFINISHED):
                assert text in {old.get(path), new.get(path)}, (number, path)
        if (folder / MANIFEST).exists():
            json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        finished = {path: text for path, text in on_disk(folder).items() if path not in (MANIFEST, UNFINISHED)} == new
        assert bool(drift(new, folder)) or finished, number
        done = write(new, folder)
        assert not drift(new, folder), number
        assert done.overwritten == (), f"nobody edited {done.overwritten}, a kill before change {number} did that"
        assert set(on_disk(folder)) == ({*new, MANIFEST} if new else set()), number


def test_a_kill_leaves_no_orphan_for_a_third_spec(tmp_path: Path) -> None:
    for number in range(killed(OLD, NEW, tmp_path)):
        write(THIRD, tmp_path / str(number))
        assert set(on_disk(tmp_path / str(number))) == {*THIRD, MANIFEST}, number


def test_a_kill_can_be_taken_back(tmp_path: Path) -> None:
    for number in range(killed(OLD, NEW, tmp_path)):
        write(OLD, tmp_path / str(number))
        assert set(on_disk(tmp_path / str(number))) == {*OLD, MANIFEST}, number
        assert not drift(OLD, tmp_path / str(number)), number


def test_what_a_killed_run_left_is_not_in_the_way(tmp_path: Path) -> None:
    put(tmp_path, {UNFINISHED: "half a fi"})
    write(NEW, tmp_path)
    assert set(on_disk(tmp_path)) == {*NEW, MANIFEST}


# --- files of others


def test_foreign_files_stay(tmp_path: Path) -> None:
    foreign = {".git/config": "mine\n", "notes.txt": "mine\n", "pkg/mine.py": "mine\n", "pkg/gone/mine.py": "mine\n"}
    put(tmp_path, foreign)
    for texts in (OLD, NEW, OLD, {}):
        write(texts, tmp_path)
        assert {path: text for path, text in on_disk(tmp_path).items() if path in foreign} == foreign
        assert drift(texts, tmp_path).orphaned == tuple(sorted(foreign))
    assert on_disk(tmp_path) == foreign


@pytest.mark.parametrize("way", ["pyproject.toml", "pkg/more/y.py"])
def test_a_foreign_file_in_the_way_stops_everything(way: str, tmp_path: Path) -> None:
    put(tmp_path, {way: "mine\n"})
    with pytest.raises(NothingWrittenError, match=way):
        write(NEW, tmp_path)
    assert on_disk(tmp_path) == {way: "mine\n"}


def test_all_foreign_files_in_the_way_are_named(tmp_path: Path) -> None:
    put(tmp_path, {"pyproject.toml": "mine\n", "z.py": "mine\n", "same.txt": "same\n"})
    with pytest.raises(NothingWrittenError, match=r"pyproject\.toml.*z\.py") as raised:
        write(NEW, tmp_path)
    assert "same.txt" not in str(raised.value)


def test_a_file_in_place_of_a_folder_stops_everything(tmp_path: Path) -> None:
    put(tmp_path, {"pkg": "mine\n"})
    with pytest.raises(NothingWrittenError, match="pkg"):
        write(NEW, tmp_path)
    assert on_disk(tmp_path) == {"pkg": "mine\n"}


def test_a_folder_in_place_of_a_file_stops_everything(tmp_path: Path) -> None:
    put(tmp_path, {"pyproject.toml/mine": "mine\n"})
    with pytest.raises(NothingWrittenError, match=r"pyproject\.toml"):
        write(NEW, tmp_path)
    assert on_disk(tmp_path) == {"pyproject.toml/mine": "mine\n"}


def test_a_file_in_place_of_the_package_stops_everything(tmp_path: Path) -> None:
    put(tmp_path, {"package": "mine\n"})
    with pytest.raises((NothingWrittenError, OSError), match="package"):
        write(NEW, tmp_path / "package")
    assert on_disk(tmp_path) == {"package": "mine\n"}


def test_edited_files_are_told_and_overwritten(tmp_path: Path) -> None:
    write(NEW, tmp_path)
    put(tmp_path, {"z.py": "edited\n"})
    assert drift(NEW, tmp_path) == Drift(changed=("z.py",))
    done = write(NEW, tmp_path)
    assert (done.written, done.overwritten) == (("z.py",), ("z.py",))
    assert not drift(NEW, tmp_path)


def test_an_edited_file_that_is_to_go_stays_and_is_told(tmp_path: Path) -> None:
    write(OLD, tmp_path)
    put(tmp_path, {"pkg/a.py": "edited\n"})
    done = write(NEW, tmp_path)
    assert on_disk(tmp_path)["pkg/a.py"] == "edited\n"
    assert "pkg/a.py" not in (*done.removed, *done.overwritten)
    assert drift(NEW, tmp_path).orphaned == ("pkg/a.py",)


def test_removed_files_go_and_so_do_their_empty_folders(tmp_path: Path) -> None:
    write(OLD, tmp_path)
    done = write(NEW, tmp_path)
    assert done.removed == ("pkg/a.py", "pkg/gone/x.py")
    assert not (tmp_path / "pkg" / "gone").exists()
    assert write({}, tmp_path).removed == tuple(sorted(NEW))
    assert on_disk(tmp_path) == {}


def test_missing_files_come_back(tmp_path: Path) -> None:
    write(NEW, tmp_path)
    (tmp_path / "pkg" / "more" / "y.py").unlink()
    assert drift(NEW, tmp_path) == Drift(missing=("pkg/more/y.py",))
    assert write(NEW, tmp_path).written == ("pkg/more/y.py",)
    (tmp_path / MANIFEST).unlink()
    assert drift(NEW, tmp_path) == Drift(missing=(MANIFEST,))
    write(NEW, tmp_path)
    assert not drift(NEW, tmp_path)


def test_equal_files_are_left_alone(tmp_path: Path) -> None:
    write(OLD, tmp_path)
    before = {path: (tmp_path / path).stat() for path in (*OLD, MANIFEST)}
    done = write(OLD, tmp_path)
    assert (done.written, done.removed, done.unchanged) == ((), (), tuple(sorted(OLD)))
    write(NEW, tmp_path)
    again = (tmp_path / "same.txt").stat()
    assert (again.st_ino, again.st_mtime_ns) == (before["same.txt"].st_ino, before["same.txt"].st_mtime_ns)
    write(NEW, tmp_path)
    for path in NEW:
        stat = (tmp_path / path).stat()
        write(NEW, tmp_path)
        assert (tmp_path / path).stat() == stat


def test_only_caches_go_unseen(tmp_path: Path) -> None:
    write(NEW, tmp_path)
    for cache in CACHES:
        put(tmp_path, {f"{cache}/x": "x", f"pkg/{cache}/x": "x"})
    put(tmp_path, {"pkg.egg-info/x": "x"})
    assert not drift(NEW, tmp_path)
    put(tmp_path, {".hidden": "x", "pkg/more/.y.py.swp": "x"})
    assert drift(NEW, tmp_path).orphaned == (".hidden", "pkg/more/.y.py.swp")


# --- manifests that lie


@pytest.mark.parametrize(
    "path", ["../outside.txt", "pkg/../../outside.txt", "{absolute}", "./../outside.txt", "pkg//../../outside.txt"]
)
def test_a_manifest_never_leads_outside(path: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    put(tmp_path, {"outside.txt": "mine\n"})
    forge(tmp_path / "package", {path.format(absolute=outside): digest("mine\n")})
    for texts in (NEW, {}):
        write(texts, tmp_path / "package")
        assert outside.read_text(encoding="utf-8") == "mine\n"


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "5", '"x"', "{}", '{"files": null}', '{"files": []}', '{"files": 5}', '{"files": "x"}', "{",
        "\\ud800", "[" * 100_000, '{"files": {"a": 1' + "0" * 5000 + "}}",
    ],
)  # fmt: skip
def test_what_is_no_manifest_stops_everything(text: str, tmp_path: Path) -> None:
    put(tmp_path, {MANIFEST: text})
    with pytest.raises(NothingWrittenError, match="manifest"):
        write(NEW, tmp_path)
    assert on_disk(tmp_path) == {MANIFEST: text}


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "a" * 300, "a/" * 400 + "a", "", ".", "..", "pkg/", "/", "a\nb"])
def test_a_manifest_of_impossible_paths_does_no_harm(path: str, tmp_path: Path) -> None:
    forge(tmp_path, {path: digest("")})
    try:
        write(NEW, tmp_path)
    except (NothingWrittenError, OSError):
        assert set(on_disk(tmp_path)) == {MANIFEST}
    else:
        assert not drift(NEW, tmp_path)


def test_a_manifest_does_not_adopt_what_it_cannot_prove(tmp_path: Path) -> None:
    put(tmp_path, {"notes.txt": "mine\n", "more.txt": "mine\n"})
    forge(tmp_path, {"notes.txt": digest("other\n"), "more.txt": None, MANIFEST: digest("")})
    write(NEW, tmp_path)
    write({}, tmp_path)
    assert on_disk(tmp_path) == {"notes.txt": "mine\n", "more.txt": "mine\n"}


# --- links


@pytest.mark.parametrize("link", ["pyproject.toml", "pkg", "pkg/more", "pkg/more/y.py", MANIFEST])
@pytest.mark.parametrize("dangling", [True, False])
def test_links_are_not_followed(link: str, dangling: bool, tmp_path: Path) -> None:
    folder, target = tmp_path / "package", tmp_path / "target"
    if not dangling:
        target.mkdir() if link in ("pkg", "pkg/more") else target.write_text("mine\n", encoding="utf-8")
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(target)
    before = on_disk(tmp_path)
    with pytest.raises(NothingWrittenError, match=link):
        write(NEW, folder)
    assert on_disk(tmp_path) == before
    assert (folder / link).is_symlink()


def test_a_package_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "package").symlink_to(tmp_path / "target")
    with pytest.raises(NothingWrittenError, match="package"):
        write(NEW, tmp_path / "package")
    assert on_disk(tmp_path) == {}


def test_a_link_to_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path, {"target": "mine\n"})
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / UNFINISHED).symlink_to(tmp_path / "target")
    write(NEW, tmp_path / "package")
    assert (tmp_path / "target").read_text(encoding="utf-8") == "mine\n"


def test_links_of_others_are_orphans_and_stay(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    put(tmp_path / "elsewhere", {"x": "mine\n"})
    write(NEW, tmp_path / "package")
    (tmp_path / "package" / "link").symlink_to(tmp_path / "elsewhere")
    assert drift(NEW, tmp_path / "package").orphaned == ("link",)
    write({}, tmp_path / "package")
    assert on_disk(tmp_path / "elsewhere") == {"x": "mine\n"}


# --- the command


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two specs, where the command is run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("one", "two"):
        spec = f"verbc: 1\nserver: {{name: {name}, summary: A demo.}}\nbackends: {{tool: {{cli: tool}}}}\n"
        put(tmp_path / "specs", {f"{name}.yaml": f"{spec}verbs:\n  a.go: {{summary: Goes., run: {{tool: go}}}}\n"})
    return tmp_path


def add_verb(project: Path, text: str = "  b.stop: {summary: Stops., run: {tool: stop}}\n") -> None:
    spec = project / "specs" / "one.yaml"
    spec.write_text(spec.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_a_removed_verb_takes_its_modules_along(project: Path) -> None:
    assert main(["generate"]) == 0
    before = set(on_disk(project / "generated"))
    original = (project / "specs" / "one.yaml").read_text(encoding="utf-8")
    add_verb(project)
    assert main(["generate"]) == 0
    assert "one-mcp/one_mcp/verbs/b.py" in set(on_disk(project / "generated")) - before
    (project / "specs" / "one.yaml").write_text(original, encoding="utf-8")
    assert main(["generate"]) == 0
    assert set(on_disk(project / "generated")) == before


def test_a_removed_spec_takes_its_package_along(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate"]) == 0
    put(project / "generated", {"other/x.txt": "mine\n", "one-mcp/notes.txt": "mine\n"})
    (project / "specs" / "one.yaml").unlink()
    assert main(["check"]) == 1
    assert "orphaned: generated/one-mcp/pyproject.toml" in capsys.readouterr().out
    assert main(["generate", "specs/two.yaml"]) == 0
    assert (project / "generated" / "one-mcp" / "pyproject.toml").exists()
    assert main(["generate"]) == 0
    left = {path for path in on_disk(project / "generated") if not path.startswith("two-mcp/")}
    assert left == {"other/x.txt", "one-mcp/notes.txt"}


def test_nothing_is_written_when_one_spec_is_wrong(project: Path) -> None:
    assert main(["generate"]) == 0
    before = on_disk(project / "generated")
    add_verb(project)
    put(project / "specs", {"two.yaml": "verbc: 1\n"})
    assert main(["generate"]) == 1
    assert on_disk(project / "generated") == before


def test_nothing_is_written_when_a_foreign_file_is_in_the_way_of_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(project / "generated", {"two-mcp/README.md": "mine\n"})
    assert main(["generate"]) == 1
    assert "generated/two-mcp/README.md" in capsys.readouterr().err
    assert on_disk(project / "generated") == {"two-mcp/README.md": "mine\n"}


def test_edited_files_are_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate"]) == 0
    put(project / "generated", {"one-mcp/README.md": "edited\n"})
    capsys.readouterr()
    assert main(["check"]) == 1
    assert "changed: generated/one-mcp/README.md" in capsys.readouterr().out
    assert main(["generate"]) == 0
    assert "generated/one-mcp/README.md had been edited" in capsys.readouterr().err
    assert main(["check"]) == 0


def test_an_edited_file_of_a_removed_verb_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = (project / "specs" / "one.yaml").read_text(encoding="utf-8")
    add_verb(project)
    assert main(["generate"]) == 0
    put(project / "generated", {"one-mcp/one_mcp/verbs/b.py": "# mine\n"})
    (project / "specs" / "one.yaml").write_text(original, encoding="utf-8")
    capsys.readouterr()
    assert main(["generate"]) == 0
    assert "generated/one-mcp/one_mcp/verbs/b.py" in capsys.readouterr().err
    assert (project / "generated/one-mcp/one_mcp/verbs/b.py").read_text(encoding="utf-8") == "# mine\n"


@pytest.mark.parametrize("call", ["replace", "unlink"])
def test_a_folder_that_cannot_be_written_is_a_clear_error(
    call: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate"]) == 0
    add_verb(project, "  b.stop: {summary: Stops., run: {tool: stop}}\n")
    real = getattr(os, call)

    def refused(path: Any, *arguments: Any, **options: Any) -> Any:
        if "generated" in str(path) and not (call == "unlink" and not os.path.lexists(path)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, *arguments, **options)

    put(project / "generated", {f"one-mcp/{UNFINISHED}": ""})
    (project / "specs" / "two.yaml").unlink()
    monkeypatch.setattr(os, call, refused)
    assert main(["generate"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("verbc: generated/")
    assert shown.endswith(": Permission denied\n")
    assert "Traceback" not in shown
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert main(["generate"]) == 0
    assert main(["check"]) == 0


def test_an_output_folder_that_cannot_be_made_is_a_clear_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(project, {"file": "mine\n"})
    for out in ("file", "file/deeper"):
        assert main(["generate", "--out", out]) == 1
        assert capsys.readouterr().err.startswith(f"verbc: {out}: ")
    assert (project / "file").read_text(encoding="utf-8") == "mine\n"


def test_runs_at_the_same_time_wait_for_each_other(project: Path) -> None:
    command = [str(Path(sys.executable).parent / "verbc"), "generate"]
    environment = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(project / "cache")}
    runs = [subprocess.Popen(command, cwd=project, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    for run in runs:
        _, shown = run.communicate()
        assert run.returncode == 0, shown
        assert shown == b""
    assert main(["check"]) == 0
    assert not list((project / "generated").rglob(UNFINISHED))


def test_only_listed_files_are_there_afterwards(project: Path) -> None:
    assert main(["generate"]) == 0
    for package in ("one-mcp", "two-mcp"):
        folder = project / "generated" / package
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        assert set(on_disk(folder)) == {*listed, MANIFEST}
        assert all(digest(text) == listed[path] for path, text in on_disk(folder).items() if path != MANIFEST)
    assert sorted(path.name for path in (project / "generated").iterdir()) == ["one-mcp", "two-mcp"]
