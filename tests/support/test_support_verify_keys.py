"""Keys of a file: taken as the file stands at the moment, and not at all while it cannot be used."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from verbc.support import verify_keys
from verbc.support.bearer import Identity, VerifierError
from verbc.support.key_entries import KeyEntry, key_digest
from verbc.support.keys_file import KeysFileError, change_keys, read_keys
from verbc.support.verify_keys import FileVerifier

from .programs import finish

KEY = "s3cret-key"
ADA = Identity("ada", "acct_1", frozenset({"read"}))


def entry(key: str = KEY, identity: Identity = ADA) -> KeyEntry:
    return KeyEntry(key_digest(key), identity)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    path = tmp_path / "keys.json"
    change_keys(path, lambda _: [entry()])
    return path


def expiring(path: Path, seconds: float) -> None:
    """Let the one key of the file expire so long from now."""
    end = datetime.fromtimestamp(time.time() + seconds, UTC).isoformat()
    change_keys(path, lambda _: [KeyEntry(key_digest(KEY), ADA, end)])


def test_a_key_is_found_by_its_digest(file: Path) -> None:
    async def work() -> None:
        verifier = FileVerifier(file)
        assert await verifier.verify(KEY) == ADA
        for other in ("", "s3cret", KEY + " ", KEY.upper(), key_digest(KEY)):
            assert await verifier.verify(other) is None
        await verifier.close()

    finish(work())


def test_a_key_is_good_until_it_expires(file: Path) -> None:
    expiring(file, 1000)
    found = finish(FileVerifier(file).verify(KEY))
    assert found is not None
    assert found.expires_at is not None
    expiring(file, -1)
    assert finish(FileVerifier(file).verify(KEY)) is None


def test_a_change_counts_at_once(file: Path) -> None:
    async def work() -> None:
        verifier = FileVerifier(file)
        change_keys(file, lambda entries: [*entries, entry("other")])
        assert await verifier.verify("other") == ADA
        change_keys(file, lambda entries: entries[1:])
        assert await verifier.verify(KEY) is None
        assert await verifier.verify("other") == ADA

    finish(work())


def test_an_unchanged_file_is_read_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def reading(path: Path) -> list[KeyEntry]:
        read.append(path)
        return read_keys(path)

    monkeypatch.setattr(verify_keys, "read_keys", reading)

    async def work() -> None:
        verifier = FileVerifier(file)
        for _ in range(5):
            assert await verifier.verify(KEY) == ADA
        assert len(read) == 1
        change_keys(file, lambda entries: entries)
        assert await asyncio.gather(*(verifier.verify(KEY) for _ in range(20))) == [ADA] * 20
        assert len(read) == 2

    finish(work())


BREAKING: dict[str, Any] = {
    "broken": lambda path: path.write_bytes(b"{"),
    "gone": lambda path: path.unlink(),
    "open to others": lambda path: path.chmod(0o644),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


def replace(path: Path) -> None:
    """Put a file with another key there, whatever is there now."""
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    change_keys(path, lambda _: [entry("other")])


@pytest.mark.parametrize("how", BREAKING)
def test_while_the_file_cannot_be_used_nobody_gets_in(file: Path, how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        verifier = FileVerifier(file)
        assert await verifier.verify(KEY) == ADA
        BREAKING[how](file)
        for _ in range(3):
            with pytest.raises(VerifierError):
                await verifier.verify(KEY)
        replace(file)
        assert await verifier.verify("other") == ADA
        assert await verifier.verify(KEY) is None

    with caplog.at_level(logging.INFO):
        finish(work())
    # Once for each change, however often it is asked.
    assert [record.msg for record in caplog.records] == [
        "the keys file cannot be used",
        "the keys file was read again",
    ]
    assert "s3cret" not in caplog.text


def test_what_changes_while_it_is_read_is_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(path: Path) -> list[KeyEntry]:
        found = read_keys(path)
        monkeypatch.setattr(verify_keys, "read_keys", read_keys)
        change_keys(path, lambda _: [entry("newest")])
        return found

    async def work() -> None:
        verifier = FileVerifier(file)
        change_keys(file, lambda _: [entry("newer")])
        monkeypatch.setattr(verify_keys, "read_keys", slowly)
        assert await verifier.verify(KEY) is None
        assert await verifier.verify("newer") is None
        assert await verifier.verify("newest") == ADA

    finish(work())


def test_a_file_that_cannot_be_used_to_begin_with_is_told(file: Path) -> None:
    file.chmod(0o644)
    with pytest.raises(KeysFileError, match="can be read or changed by others"):
        FileVerifier(file)
    with pytest.raises(KeysFileError, match="is not there"):
        FileVerifier(file.with_name("none.json"))


def test_the_file_is_the_same_in_any_working_directory(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    verifier = FileVerifier(Path("keys.json"))
    monkeypatch.chdir("/")
    os.utime(file, ns=(1, 1))
    assert finish(verifier.verify(KEY)) == ADA


def test_nothing_of_a_key_is_shown(file: Path) -> None:
    verifier = FileVerifier(file)
    assert key_digest(KEY)[:12] not in repr(verifier._content)
