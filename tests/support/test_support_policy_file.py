"""The policy file: who may keep it, that a change counts at once, and that one that cannot be used lets nobody in."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from verbc.support import policy_file
from verbc.support.policy_file import PolicyFile, PolicyFileError, PolicySource, read_policy
from verbc.support.rights import Right

TEXT = """\
subjects:
  writer:
    allow: [read mcp:*]
    ask:
      - write mcp:*   # an operator is asked
      - {right: "execute mcp:*", approver: client}
operator_keys: [DIGEST]
audit: {previews: true}
""".replace("DIGEST", hashlib.sha256(b"k").hexdigest())
READ = Right(("read mcp", "time", "now"))
STARTER = {"ada": {"allow": ["read mcp:*"], "ask": [], "deny": [], "budget": None}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir(mode=0o755)
    path = folder / "policy.yaml"
    path.write_text(TEXT)
    path.chmod(0o644)
    return path


def problem(path: Path) -> str:
    with pytest.raises(PolicyFileError) as error:
        read_policy(path)
    return str(error.value)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is read from now on."""
    read: list[Path] = []

    def count(path: Path) -> PolicyFile:
        read.append(path)
        return read_policy(path)

    monkeypatch.setattr(policy_file, "read_policy", count)
    return read


def test_a_file_is_a_policy_and_the_keys_of_operators(file: Path) -> None:
    found = read_policy(file)
    assert found.policy.decide("writer", READ).effect == "allow"
    assert found.policy.decide("writer", Right(("execute mcp", "a", "b"))).approver == "client"
    assert found.operator_keys == {hashlib.sha256(b"k").hexdigest()}
    assert found.previews
    assert [*found.subjects] == ["writer"]
    assert hashlib.sha256(b"k").hexdigest() not in repr(found)


def test_json_is_as_good(file: Path) -> None:
    file.write_text(json.dumps({"subjects": STARTER}, indent="\t"))
    assert read_policy(file).subjects == STARTER


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o444])
def test_others_may_read_it(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert read_policy(file).subjects


@pytest.mark.parametrize("mode", [0o660, 0o620, 0o602, 0o666])
def test_others_may_not_change_it(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert problem(file) == f"The policy file {file} can be changed by others. Try: chmod go-w {file}"


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_others_may_not_put_a_file_in_its_place(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    told = f"The folder {file.parent} of the policy file can be changed by others. Try: chmod go-w {file.parent}"
    assert problem(file) == told


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_it_belongs_to_this_user(file: Path) -> None:
    os.chown(file, 12345, -1)
    assert problem(file) == f"The policy file {file} belongs to another user."


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo])
def test_what_is_no_file_is_not_waited_for(file: Path, make: Callable[[Path], None]) -> None:
    file.unlink()
    make(file)
    assert problem(file) == f"The policy file {file} is not a file."


def test_what_is_not_there_is_told(file: Path) -> None:
    file.unlink()
    assert problem(file) == f"The policy file {file} is not there."


def test_what_is_wrong_in_it_is_told(file: Path) -> None:
    file.write_text("subjects: {ada: {}}\nsubjects: {}\n")
    assert (
        problem(file) == f"The policy file {file} cannot be read, line 2, column 1: the key `subjects` is there before."
    )
    file.write_text("subjects: {ada: {allow: [everything]}}")
    told = problem(file)
    assert told.startswith(
        f"The policy file {file} cannot be used, subject `ada`, `allow`, entry 1: `everything` must be"
    )
    file.write_bytes(b"subjects: {\xff: {}}")
    assert problem(file) == f"The policy file {file} is not UTF-8."
    file.write_text("")
    assert problem(file) == f"The policy file {file} cannot be read, line 1, column 1: there is nothing in it."


def test_a_file_without_end_is_not_read(file: Path) -> None:
    file.write_text(TEXT + "#" * (1 << 20))
    assert problem(file) == f"The policy file {file} is too large."


def test_without_a_file_the_policy_of_the_server_counts() -> None:
    found = PolicySource(STARTER, None).current()
    assert found.policy.decide("ada", READ).effect == "allow"
    assert (found.operator_keys, found.previews) == (frozenset(), False)


def test_with_a_file_that_of_the_server_does_not_count(file: Path) -> None:
    assert PolicySource(STARTER, file).current().policy.decide("ada", READ).effect == "deny"


def test_it_is_read_again_only_when_it_has_changed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = counted(monkeypatch)
    source = PolicySource({}, file)
    first = source.current()
    assert source.current() is first
    file.write_text(TEXT.replace("writer:", "reader:"))
    os.utime(file, ns=(1, 1))
    assert [*source.current().subjects] == ["reader"]
    assert source.current() is source.current()
    assert read == [file, file]


def test_one_that_cannot_be_used_is_none_until_it_can(file: Path) -> None:
    source = PolicySource(STARTER, file)
    source.current()
    for spoil in (lambda: file.chmod(0o666), file.unlink, lambda: file.write_text("subjects")):
        spoil()
        for _ in range(2):
            with pytest.raises(PolicyFileError):
                source.current()
    file.unlink()
    file.write_text(TEXT)
    assert [*source.current().subjects] == ["writer"]


def test_it_stays_the_same_file_when_the_working_folder_changes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    source = PolicySource({}, Path("policy.yaml"))
    monkeypatch.chdir("/")
    assert [*source.current().subjects] == ["writer"]


def test_threads_see_one_reading_of_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = counted(monkeypatch)
    source = PolicySource({}, file)
    with ThreadPoolExecutor(8) as threads:
        found = [*threads.map(lambda _: source.current(), range(64))]
    assert len(read) == 1
    assert all(one is found[0] for one in found)


def test_yaml_is_loaded_when_it_is_needed(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from verbc.support.policy_file import PolicySource\n"
        "assert 'yaml' not in sys.modules\n"
        "PolicySource({}, Path(sys.argv[1])).current()\n"
        "assert 'yaml' in sys.modules and 'sqlalchemy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, str(file)], check=True)
