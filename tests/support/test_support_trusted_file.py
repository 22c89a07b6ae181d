"""Files that decide who may do what: what the owner and the mode of a file and of its folder must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from verbc.support.trusted_file import MissingFileError, TrustedFile, TrustedFileError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    path = tmp_path / "some file"
    path.write_bytes(b"1234")
    path.chmod(0o600)
    return path


def problem(path: Path, *, private: bool = False, most: int = 4) -> str:
    with pytest.raises(TrustedFileError) as error:
        TrustedFile(path, "list", most, private=private).read()
    return str(error.value)


@pytest.mark.parametrize("private", [False, True])
def test_what_nobody_else_can_change_is_read(path: Path, private: bool) -> None:
    assert TrustedFile(path, "list", 4, private=private).read() == b"1234"


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o601])
def test_others_may_read_only_what_is_not_private(path: Path, mode: int) -> None:
    path.chmod(mode)
    assert TrustedFile(path, "list", 4, private=False).read() == b"1234"
    assert problem(path, private=True) == f"The list {path} can be read or changed by others. Try: chmod 600 '{path}'"


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("mode", [0o602, 0o620])
def test_others_may_never_change_it(path: Path, mode: int, private: bool) -> None:
    path.chmod(mode)
    assert "changed by others" in problem(path, private=private)


def test_a_folder_where_everybody_has_files_of_his_own_is_good(path: Path) -> None:
    path.parent.chmod(0o1777)
    assert TrustedFile(path, "list", 4, private=True).read() == b"1234"


def test_a_file_that_is_not_there_is_a_case_of_its_own(path: Path) -> None:
    path.unlink()
    with pytest.raises(MissingFileError, match="is not there"):
        TrustedFile(path, "list", 4, private=True).read()


def test_it_is_not_longer_than_it_may_be(path: Path) -> None:
    assert problem(path, most=3) == f"The list {path} is too large."
