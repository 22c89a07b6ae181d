"""The folder for state: where it is, and that it belongs to one user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from verbc.support.state_folder import StateFolderError, state_folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return folder


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_below_the_home_of_the_user(home: Path) -> None:
    assert state_folder("lion-mcp") == home / ".local" / "state" / "lion-mcp"


def test_the_state_home_of_the_user_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder("lion-mcp") == tmp_path / "state" / "lion-mcp"


@pytest.mark.parametrize("told", ["", "state", "./state"])
def test_a_state_home_that_is_no_absolute_path_does_not_count(
    home: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", told)
    assert state_folder("lion-mcp").is_relative_to(home)


def test_a_chosen_folder_is_taken_as_it_is(tmp_path: Path, home: Path) -> None:
    assert state_folder("lion-mcp", tmp_path / "chosen") == tmp_path / "chosen"
    assert list(home.iterdir()) == []


def test_a_relative_choice_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert state_folder("lion-mcp", Path("here")) == tmp_path / "here"


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_it_is_made_for_its_owner_alone(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        folder = state_folder("lion-mcp", tmp_path / "some" / "where" / "state")
    finally:
        os.umask(before)
    assert permissions(folder) == 0o700
    assert permissions(folder.parent) == 0o777 & ~mask


def test_what_lies_in_it_stays(home: Path) -> None:
    (state_folder("lion-mcp") / "store.sqlite").write_text("kept")
    assert (state_folder("lion-mcp") / "store.sqlite").read_text() == "kept"


def test_a_link_to_a_folder_of_ours_will_do(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    assert state_folder("lion-mcp", tmp_path / "link") == tmp_path / "link"


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o770, 0o500])
def test_one_that_others_can_look_into_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "two words"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(StateFolderError, match=f"chmod 700 '{folder}'$"):
        state_folder("lion-mcp", folder)
    assert permissions(folder) == mode


def test_one_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = state_folder("lion-mcp", tmp_path / "state")
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(StateFolderError, match=r"belongs to another user\. Choose another one with --state\.$"):
        state_folder("lion-mcp", folder)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o700)
    with pytest.raises(StateFolderError, match="is not a folder"):
        state_folder("lion-mcp", tmp_path / "file")


@pytest.mark.parametrize("place", ["file/state", "file/a/state", "link"])
def test_one_that_cannot_be_made_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(StateFolderError, match=r"cannot be made: .+\. Choose another one with --state\.$"):
        state_folder("lion-mcp", tmp_path / place)


def test_a_user_without_a_home_has_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", none)
    with pytest.raises(StateFolderError, match="Choose a folder with --state"):
        state_folder("lion-mcp")
