"""The keys file: what may stand in it, who may keep it, and that a change is there as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.bearer import Identity
from verbc.support.key_entries import EntriesError, KeyEntry, key_digest, read_entries, written_entries
from verbc.support.keys_file import KeysFileError, change_keys, read_keys
from verbc.support.trusted_file import stamp

from .programs import open_files

DIGEST = hashlib.sha256(b"k").hexdigest()
WHOLE = {
    "sha256": DIGEST,
    "subject": "ada",
    "account": "acct_1",
    "scopes": ["read"],
    "expires": "2030-01-01T00:00:00Z",
    "label": "ci",
}
NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9)


def text(*entries: Any) -> bytes:
    return json.dumps({"keys": entries}).encode()


def entry(key: str = "k", **changes: Any) -> KeyEntry:
    return KeyEntry(key_digest(key), Identity("ada"), **changes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    path = folder / "keys.json"
    path.write_bytes(text(WHOLE))
    path.chmod(0o600)
    return path


def problem(path: Path) -> str:
    with pytest.raises(KeysFileError) as error:
        read_keys(path)
    assert DIGEST[:12] not in str(error.value)
    return str(error.value)


# What stands in it


def test_an_entry_is_a_digest_and_whom_it_stands_for() -> None:
    (found,) = read_entries(text(WHOLE))
    assert found.sha256 == DIGEST == key_digest("k")
    assert found.identity == Identity("ada", "acct_1", frozenset({"read"}), 1893456000.0)
    assert (found.expires, found.label, found.id) == ("2030-01-01T00:00:00Z", "ci", DIGEST[:12])
    assert DIGEST[12:] not in repr(found)


def test_what_is_left_out_is_not_there() -> None:
    assert read_entries(text({"sha256": DIGEST, "subject": "ada"})) == [entry()]
    assert read_entries(text()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b'{"keys": {}}',
        b'{"keys": null}',
        b'{"keys": [], "version": 1}',
        b'{"keys": [], "keys": []}',
        b'{"key": []}',
        text("k"),
        text(None),
        text({}),
        text({"subject": "ada"}),
        text({"sha256": DIGEST}),
        text({**WHOLE, "sha256": DIGEST.upper()}),
        text({**WHOLE, "sha256": DIGEST[:-1]}),
        text({**WHOLE, "sha256": 7}),
        text({**WHOLE, "key": "k"}),
        text({**WHOLE, "expire": "2030-01-01T00:00:00Z"}),
        text({**WHOLE, "expires": 1893456000}),
        text({**WHOLE, "expires": "2030-01-01"}),
        text({**WHOLE, "expires": ""}),
        text({**WHOLE, "subject": ""}),
        text({**WHOLE, "subject": None}),
        text({**WHOLE, "account": 7}),
        text({**WHOLE, "scopes": "read"}),
        text({**WHOLE, "scopes": None}),
        text({**WHOLE, "scopes": [7]}),
        text({**WHOLE, "label": 7}),
        text(WHOLE, WHOLE),
        text(WHOLE, {**WHOLE, "subject": "bob"}),
    ],
)
def test_what_is_anything_else_is_no_list_of_keys(content: bytes) -> None:
    with pytest.raises(EntriesError) as error:
        read_entries(content)
    assert DIGEST[:12] not in str(error.value)


def test_the_entry_that_is_wrong_is_told() -> None:
    with pytest.raises(EntriesError, match="in entry 2"):
        read_entries(text(WHOLE, {**WHOLE, "sha256": "x"}))
    with pytest.raises(EntriesError, match=r"has an entry 1 that is wrong\. The subject is no text"):
        read_entries(text({**WHOLE, "subject": ""}))


@given(st.dictionaries(NAMES, st.tuples(NAMES, st.none() | NAMES, st.sets(NAMES)), max_size=4))
def test_what_is_written_is_read_again(keys: dict[str, tuple[str, str | None, set[str]]]) -> None:
    entries = [
        KeyEntry(key_digest(key), Identity(subject, account, frozenset(scopes)), label=account)
        for key, (subject, account, scopes) in keys.items()
    ]
    assert read_entries(written_entries(entries)) == entries


# Who may keep it


def test_a_file_of_ones_own_is_read(file: Path) -> None:
    assert [found.identity.subject for found in read_keys(file)] == ["ada"]


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_its_group_may_read_it(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert len(read_keys(file)) == 1


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o620, 0o660, 0o601, 0o777])
def test_others_may_not(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert problem(file) == f"The keys file {file} can be read or changed by others. Try: chmod 600 {file}"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o720, 0o777])
def test_others_may_not_put_a_file_in_its_place(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    assert "can be changed by others. Try: chmod go-w " in problem(file)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500, 0o1777])
def test_others_may_look_into_its_folder(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    assert len(read_keys(file)) == 1


@pytest.mark.parametrize("which", ["file", "folder"])
def test_it_belongs_to_this_user(file: Path, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owned = file if which == "file" else file.parent
    if os.geteuid() == 0:
        os.chown(owned, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert problem(file).endswith("belongs to another user.")


def test_a_link_is_followed_and_both_folders_count(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "keys.json"
    link.parent.mkdir(mode=0o700)
    link.symlink_to(file)
    assert len(read_keys(link)) == 1
    for folder in (file.parent, link.parent):
        folder.chmod(0o777)
        assert str(folder) in problem(link)
        folder.chmod(0o700)


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_what_is_no_file_is_not_waited_for(file: Path, make: Callable[[Path], None]) -> None:
    file.unlink()
    make(file)
    before = open_files()
    assert "is not a file" in problem(file)
    assert open_files() == before


def test_what_is_not_there_is_told(file: Path, tmp_path: Path) -> None:
    file.unlink()
    assert problem(file) == f"The keys file {file} is not there. The command `keys add` makes it."
    missing = tmp_path / "none" / "keys.json"
    assert problem(missing).startswith(f"The folder {missing.parent} of the keys file cannot be used: No such")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told(file: Path) -> None:
    file.chmod(0o000)
    assert problem(file) == f"The keys file {file} cannot be read: Permission denied."


def test_what_is_wrong_in_it_is_told(file: Path) -> None:
    file.write_bytes(text({**WHOLE, "account": ["s3cret"]}))
    assert problem(file) == (
        f"The keys file {file} has an entry 1 that is wrong. The account is no text that can be printed, or too long."
    )
    file.write_bytes(b"not s3cret")
    assert problem(file) == f"The keys file {file} is not JSON."


def test_a_file_without_end_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verbc.support.keys_file._MOST_BYTES", file.stat().st_size - 1)
    assert problem(file) == f"The keys file {file} is too large."


# That it has changed


def test_a_stamp_stays_as_long_as_the_file(file: Path) -> None:
    before = stamp(file)
    read_keys(file)
    assert stamp(file) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(text()),
        lambda path: path.chmod(0o644),
        lambda path: path.unlink(),
        lambda path: os.utime(path, ns=(0, 0)),
        lambda path: change_keys(path, lambda entries: entries),
    ],
)
def test_whatever_happens_to_it_makes_another_stamp(file: Path, change: Callable[[Path], None]) -> None:
    os.utime(file, ns=(1, 1))
    before = stamp(file)
    change(file)
    assert stamp(file) != before


# Changes


def test_a_change_leaves_a_file_for_nobody_else(file: Path) -> None:
    file.chmod(0o640)
    inode = file.stat().st_ino
    change_keys(file, lambda entries: [*entries, entry("other")])
    assert [found.sha256 for found in read_keys(file)] == [DIGEST, key_digest("other")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_ino != inode


def test_the_first_change_makes_it(file: Path) -> None:
    file.unlink()
    change_keys(file, lambda entries: [*entries, entry()])
    assert read_keys(file) == [entry()]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_is_there_is_kept_as_it_is(file: Path) -> None:
    before = read_keys(file)
    change_keys(file, lambda entries: entries)
    assert read_keys(file) == before


def test_a_link_stays_one(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file)
    change_keys(link, lambda entries: [])
    assert link.is_symlink()
    assert read_keys(file) == []


def test_a_change_that_fails_leaves_everything_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ZeroDivisionError):
        change_keys(file, lambda entries: [entries[1 // 0]])
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeysFileError, match="cannot be written: No space left on device"):
        change_keys(file, lambda entries: [])
    assert file.read_bytes() == before
    assert {path.name for path in file.parent.iterdir()} == {"keys.json", "keys.json.lock"}


def test_a_file_that_cannot_be_used_is_not_changed(file: Path) -> None:
    file.chmod(0o644)
    with pytest.raises(KeysFileError, match="can be read or changed by others"):
        change_keys(file, lambda entries: [])
    file.chmod(0o600)
    file.write_bytes(b"broken")
    with pytest.raises(KeysFileError, match="is not JSON"):
        change_keys(file, lambda entries: [])
    assert file.read_bytes() == b"broken"


ADDING = """
import sys
from pathlib import Path
from verbc.support.bearer import Identity
from verbc.support.key_entries import KeyEntry, key_digest
from verbc.support.keys_file import change_keys

for number in range(10):
    added = KeyEntry(key_digest(f"{sys.argv[2]}-{number}"), Identity("ada"))
    change_keys(Path(sys.argv[1]), lambda entries: [*entries, added])
"""


def test_no_change_of_several_processes_is_lost(file: Path) -> None:
    adding = [
        subprocess.Popen([sys.executable, "-c", ADDING, str(file), str(number)], stderr=subprocess.PIPE)
        for number in range(3)
    ]
    assert [process.communicate()[1] for process in adding] == [b"", b"", b""]
    assert len(read_keys(file)) == 31
