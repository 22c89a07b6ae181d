"""The command `keys`: a key is shown once, kept as a digest, listed without it, and revoked by what the list calls it."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from verbc.support.key_entries import KeyEntry, key_digest
from verbc.support.keys_command import main
from verbc.support.keys_file import read_keys
from verbc.support.registry import Registry, from_data
from verbc.support.verify_keys import FileVerifier

from .programs import finish
from .samples import DATA

ACCESS = {
    "verify": {"keys": "${SAMPLE_KEYS}"},
    "scopes": {"jobs:read": ["read job:*"], "jobs:write": ["write job:*"]},
    "pin": {},
}


@pytest.fixture
def registry() -> Registry:
    return from_data({**DATA, "access": ACCESS})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    path = tmp_path / "keys.json"
    monkeypatch.setenv("SAMPLE_KEYS", str(path))
    return path


def told(capsys: pytest.CaptureFixture[str], registry: Registry, *arguments: str, code: int = 0) -> tuple[str, str]:
    """What a command that ends with `code` prints on stdout and on stderr."""
    capsys.readouterr()
    assert main(arguments, registry) == code
    out, err = capsys.readouterr()
    return out, err


def misused(capsys: pytest.CaptureFixture[str], registry: Registry, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments, registry)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def add(capsys: pytest.CaptureFixture[str], registry: Registry, *options: str, subject: str = "ada") -> str:
    return told(capsys, registry, "add", "--subject", subject, *options)[0].removesuffix("\n")


def test_a_key_is_printed_once_and_kept_as_a_digest(
    file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = told(capsys, registry, "add", "--subject", "ada")
    key = out.removesuffix("\n")
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", key)
    assert err == f"sample-mcp: Added {key_digest(key)[:12]} to {file}. The key is shown this one time.\n"
    assert key not in file.read_text()
    assert key_digest(key) in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key not in told(capsys, registry, "list")[0]


def test_what_a_key_stands_for_is_kept(file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--account", "acct_1", "--scope", "jobs:read", "--scope", "jobs:write", "--label", "of the night"]
    key = add(capsys, registry, *options)
    found = finish(FileVerifier(file).verify(key))
    assert found is not None
    assert (found.subject, found.account, found.expires_at) == ("ada", "acct_1", None)
    assert found.scopes == {"jobs:read", "jobs:write"}
    assert json.loads(file.read_text())["keys"] == [
        {
            "sha256": key_digest(key),
            "subject": "ada",
            "account": "acct_1",
            "scopes": ["jobs:read", "jobs:write"],
            "expires": None,
            "label": "of the night",
        }
    ]


def test_keys_are_never_the_same(file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    keys = {add(capsys, registry) for _ in range(20)}
    assert len(keys) == 20
    assert {entry.sha256 for entry in read_keys(file)} == set(map(key_digest, keys))


@pytest.mark.parametrize(("age", "seconds"), [("90s", 90), ("5m", 300), ("12h", 43200), ("30d", 2592000)])
def test_a_key_may_expire(
    age: str, seconds: int, file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    before = datetime.now(UTC).timestamp()
    add(capsys, registry, "--expires", age)
    after = datetime.now(UTC).timestamp()
    (entry,) = read_keys(file)
    assert entry.identity.expires_at is not None
    assert before + seconds - 1 <= entry.identity.expires_at <= after + seconds
    assert entry.expires is not None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry.expires)


def test_the_list_tells_keys_apart_and_not_what_they_are(
    file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    first = add(capsys, registry, "--account", "acct_1", "--scope", "jobs:read")
    second = add(capsys, registry, "--label", "old", subject="bob")
    document = json.loads(file.read_text())
    document["keys"][1]["expires"] = "2020-01-01T00:00:00Z"
    file.write_text(json.dumps(document))
    out, err = told(capsys, registry, "list")
    assert out.splitlines() == [
        "key           subject  account  scopes     expires                         label",
        f"{key_digest(first)[:12]}  ada      acct_1   jobs:read  -                               -",
        f"{key_digest(second)[:12]}  bob      -        -          2020-01-01T00:00:00Z (expired)  old",
    ]
    assert err == ""
    for key in (first, second):
        assert key_digest(key)[:13] not in out


def test_a_key_that_is_revoked_is_gone(file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    kept, revoked = add(capsys, registry), add(capsys, registry)
    verifier = FileVerifier(file)
    name = key_digest(revoked)[:12]
    out, err = told(capsys, registry, "revoke", name)
    assert (out, err) == (f"Revoked {name}. Servers that read {file} take it no more.\n", "")
    assert finish(verifier.verify(revoked)) is None
    assert finish(verifier.verify(kept)) is not None


@pytest.mark.parametrize(("name", "problem"), [("0" * 12, "No key"), ("aaaaaa", "More than one key")])
def test_only_one_key_is_revoked(
    name: str, problem: str, file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [{"sha256": f"aaaaaa{number}".ljust(64, "0"), "subject": "ada"} for number in range(2)]
    file.write_text(json.dumps({"keys": entries}))
    file.chmod(0o600)
    before = file.read_bytes()
    out, err = told(capsys, registry, "revoke", name, code=1)
    assert (out, err) == ("", f"sample-mcp: {problem} of {file} begins with {name}.\n")
    assert file.read_bytes() == before


def test_another_file_can_be_told(
    file: Path, registry: Registry, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    key = add(capsys, registry, "--file", str(other))
    assert [entry.sha256 for entry in read_keys(other)] == [key_digest(key)]
    assert not file.exists()


@pytest.mark.parametrize("access", [None, {"verify": None}, {"verify": {"jwt": "https://x.example/keys"}}])
def test_without_a_file_of_the_server_one_has_to_be_told(
    access: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    registry = from_data({**DATA, "access": access})
    _, err = told(capsys, registry, "list", code=1)
    assert err == "sample-mcp: This server is built without a keys file; name one with --file.\n"
    tmp_path.chmod(0o700)
    add(capsys, registry, "--scope", "any at all", "--file", str(tmp_path / "keys.json"))
    assert read_keys(tmp_path / "keys.json")[0].identity.scopes == {"any at all"}


def test_a_variable_that_is_not_set_is_told(
    registry: Registry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAMPLE_KEYS", raising=False)
    _, err = told(capsys, registry, "list", code=1)
    assert err == "sample-mcp: The environment variable `SAMPLE_KEYS` is not set.\n"


def test_a_scope_that_is_none_of_the_servers_makes_no_key(
    file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = told(capsys, registry, "add", "--subject", "ada", "--scope", "jobs:raed", code=1)
    assert out == ""
    assert err == "sample-mcp: There is no scope `jobs:raed`; there are `jobs:read`, `jobs:write`.\n"
    assert not file.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["add"],
        ["add", "--subject", ""],
        ["add", "--subject", "a\nb"],
        ["add", "--subject", "ada", "--account", "\x1b[31m"],
        ["add", "--subject", "ada", "--expires", "0d"],
        ["add", "--subject", "ada", "--expires", "30"],
        ["add", "--subject", "ada", "--expires", "1.5d"],
        ["add", "--subject", "ada", "--expires", "999999999d"],
        ["add", "--subj", "ada"],
        ["revoke"],
        ["revoke", "aaaaa"],
        ["revoke", "../../etc"],
        ["revoke", "AAAAAAAAAAAA"],
        ["list", "more"],
    ],
)
def test_wrong_usage_changes_nothing(
    arguments: list[str], file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "usage: sample-mcp keys" in misused(capsys, registry, *arguments)
    assert not file.exists()


@pytest.mark.parametrize("arguments", [["list"], ["add", "--subject", "ada"], ["revoke", "aaaaaa"]])
def test_a_file_that_others_can_read_is_told(
    arguments: list[str], file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('{"keys": []}')
    file.chmod(0o644)
    out, err = told(capsys, registry, *arguments, code=1)
    assert out == ""
    assert err == f"sample-mcp: The keys file {file} can be read or changed by others. Try: chmod 600 {file}\n"


RUN = """
import json, sys
from verbc.support.keys_command import main
from verbc.support.registry import from_data

sys.exit(main(sys.argv[2:], from_data(json.loads(sys.argv[1]))))
"""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
def test_what_cannot_be_printed_is_told_and_can_be_revoked(file: Path, registry: Registry) -> None:
    command = [sys.executable, "-c", RUN, json.dumps({**DATA, "access": ACCESS}), "add", "--subject", "ada"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    (entry,) = read_keys(file)
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        f"sample-mcp: Added {entry.id} to {file}. The key is shown this one time.",
        "sample-mcp: Cannot print: No space left on device.",
    ]


def test_a_terminal_that_knows_few_characters_is_enough(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [json.dumps({**DATA, "access": ACCESS}), "list"]
    file.write_text(json.dumps({"keys": [{"sha256": "a" * 64, "subject": "\u00e4\u6f22", "label": "\u202e"}]}))
    file.chmod(0o600)
    ended = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=True,
    )
    assert b"\xe4\\u6f22" in ended.stdout
    assert b"\\u202e" in ended.stdout


def test_nothing_of_the_server_is_loaded(file: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-c", RUN, json.dumps({**DATA, "access": ACCESS}), "add"]
    ended = subprocess.run([*command, "--subject", "ada"], capture_output=True, text=True, check=True)
    assert "verbc.support.keys_file" in ended.stderr
    for heavy in ("mcp_types", "pydantic", "jsonschema_rs", "asyncio", "httpx2", "jwt"):
        assert f" {heavy}\n" not in ended.stderr


def test_an_entry_with_every_member_is_one(file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    key = add(capsys, registry, "--expires", "30d", "--label", "x")
    (entry,) = read_keys(file)
    assert entry == KeyEntry(key_digest(key), entry.identity, entry.expires, "x")
