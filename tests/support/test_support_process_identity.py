"""Processes and their identities: never confused, never taken for alive or gone without reason, found wherever they went."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from verbc.support import linux_processes, processes
from verbc.support.linux_processes import LinuxProcesses
from verbc.support.process_identity import Sighting, identity_of, own_identity, sight
from verbc.support.processes import Process, UnreadableError, exists
from verbc.support.ps_processes import PsProcesses
from verbc.support.run_processes import Marker, find
from verbc.support.run_record import Identity

from .lives import MARKER, Lives, await_exit, identity, look_with

GONE = Sighting(False, "gone")
CONFIRMED = Sighting(True, "confirmed")
RECYCLED = Sighting(False, "recycled")


@pytest.fixture
def lives() -> Iterator[Lives]:
    with Lives() as started:
        yield started


@pytest.fixture(params=[LinuxProcesses, PsProcesses])
def anywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in both ways to look at processes."""
    look_with(monkeypatch, request.param())


@pytest.fixture
def by_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    look_with(monkeypatch, PsProcesses())


def other(known: Identity) -> Identity:
    """An earlier process with the same number."""
    before, _, start = known.start.rpartition(" ")
    return Identity(known.pid, f"{before} {int(start) - 1000}".strip())


def members(
    leader: Identity | None, pgid: int | None, marker: Marker, owner: Identity | None = None
) -> tuple[list[Identity], bool]:
    """The live processes of a run, and whether that is certainly all of them."""
    found = find(leader, pgid, marker, owner)
    return [process.identity for process in found.live], found.complete


def pids(found: tuple[list[Identity], bool]) -> set[int]:
    """Whether it is complete depends on what else runs on this machine."""
    return {one.pid for one in found[0]}


# Identities and sightings.


@pytest.mark.usefixtures("anywhere")
def test_a_process_has_the_same_identity_each_time_and_no_other_one_has_it(lives: Lives) -> None:
    first, second = lives.start({"name": "a"}), lives.start({"name": "b"})
    assert identity(first.pid) == identity(first.pid)
    assert identity(first.pid) != identity(second.pid)
    assert identity(first.pid).pid == first.pid


def test_the_own_identity_is_that_of_this_process_also_after_a_fork() -> None:
    assert own_identity() == identity_of(os.getpid())
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"yes" if own_identity() == identity_of(os.getpid()) else b"no")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 10) == b"yes"
    os.close(reading)
    os.close(writing)


@pytest.mark.usefixtures("anywhere")
def test_a_process_that_never_was_has_no_identity() -> None:
    assert identity_of(free_pid()) is None
    assert sight(Identity(free_pid(), "x 1"), own_identity()) == GONE


@pytest.mark.usefixtures("anywhere")
def test_a_living_leader_is_confirmed_and_an_earlier_one_with_its_number_is_not(lives: Lives) -> None:
    leader = identity(lives.start({"name": "leader"}).pid)
    assert sight(leader, own_identity()) == CONFIRMED
    assert sight(other(leader), own_identity()) == RECYCLED
    assert sight(None, own_identity()) == Sighting(None, "not_recorded")
    assert sight(Identity(leader.pid, ""), own_identity()) == Sighting(None, "unconfirmed")


def test_after_a_reboot_every_leader_is_gone(lives: Lives) -> None:
    leader = identity(lives.start({"name": "leader"}).pid)
    earlier = Identity(leader.pid, "another-boot " + leader.start.split()[1])
    assert sight(earlier, own_identity()) == RECYCLED
    assert members(earlier, leader.pid, MARKER) == ([], True)


@pytest.mark.usefixtures("anywhere")
def test_an_ended_leader_is_alive_until_its_owner_has_reaped_it(lives: Lives) -> None:
    child = lives.start({"name": "leader", "leaves": True})
    await_exit(child.pid)
    leader = identity(child.pid)
    assert sight(leader, identity(os.getpid())) == CONFIRMED
    child.wait()
    assert sight(leader, identity(os.getpid())) == GONE


@pytest.mark.usefixtures("anywhere")
def test_an_ended_leader_that_waits_for_somebody_else_is_gone(lives: Lives) -> None:
    child = lives.start({"name": "leader", "leaves": True})
    stranger = lives.start({"name": "stranger"})
    await_exit(child.pid)
    leader = identity(child.pid)
    assert sight(leader, identity(stranger.pid)) == GONE
    assert sight(leader, other(identity(os.getpid()))) == GONE  # an earlier process with our number
    child.wait()


@pytest.mark.usefixtures("anywhere")
def test_an_ended_leader_is_gone_once_its_owner_is(lives: Lives) -> None:
    lives.start({"name": "owner", "children": [{"name": "leader", "leaves": True}]})
    grown = lives.grown("owner", "leader")
    await_exit(grown["leader"].pid)
    assert sight(grown["leader"], grown["owner"]) == CONFIRMED
    os.kill(grown["owner"].pid, 9)
    await_exit(grown["owner"].pid)
    assert sight(grown["leader"], grown["owner"]) == GONE


def test_a_process_whose_first_thread_has_ended_is_alive() -> None:
    script = (
        "import os, sys, threading, ctypes\n"
        "threading.Thread(target=lambda: (os.write(1, b'x'), os.read(0, 1), os._exit(0))).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    command = [sys.executable, "-I", "-S", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        leader = identity(child.pid)
        child.stdout.read(1)
        while state(child.pid) != "Z":
            os.sched_yield()
        seen = sight(leader, Identity(1, ""))
        child.stdin.close()
    assert (seen, sight(leader, Identity(1, ""))) == (CONFIRMED, GONE)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def free_pid() -> int:
    """A number that no process has; those far up are given last."""
    number = int(Path("/proc/sys/kernel/pid_max").read_text()) - 1
    while exists(number):
        number -= 1
    return number


# The members of a run.


@pytest.mark.usefixtures("anywhere")
def test_the_members_are_the_leader_and_what_is_in_its_group(lives: Lives) -> None:
    lives.start({"name": "stranger"}, marker=None)
    lives.start(
        {"name": "leader", "children": [{"name": "child", "environment": {}}, {"name": "gone", "leaves": True}]}
    )
    grown = lives.grown("leader", "child", "stranger", "gone")
    await_exit(grown["gone"].pid)
    found = members(grown["leader"], grown["leader"].pid, MARKER)
    assert pids(found) == {grown["leader"].pid, grown["child"].pid}
    assert grown["leader"] in found[0]


@pytest.mark.usefixtures("anywhere")
def test_a_child_in_a_session_of_its_own_is_found_by_descent_whatever_its_environment(lives: Lives) -> None:
    lives.start({"name": "leader", "children": [{"name": "child", "environment": {}, "session": True}]})
    grown = lives.grown("leader", "child")
    assert pids(members(grown["leader"], grown["leader"].pid, MARKER)) == {one.pid for one in grown.values()}


ESCAPED = {"name": "escaped", "session": True, "children": [{"name": "bare", "session": True, "environment": {}}]}


def test_what_left_the_group_and_lost_its_parents_is_found_by_the_marker(lives: Lives) -> None:
    child = lives.start({"name": "leader", "leaves": True, "children": [ESCAPED]})
    grown = lives.grown("leader", "escaped", "bare")
    child.wait()
    expected = {grown["escaped"].pid, grown["bare"].pid}
    assert pids(members(grown["leader"], child.pid, MARKER)) == expected
    assert pids(members(None, None, MARKER)) == expected  # a start that was not put on record
    assert pids(members(None, None, MARKER, own_identity())) == expected
    assert pids(members(grown["leader"], child.pid, (MARKER[0], "another"))) == set()
    assert pids(members(grown["leader"], child.pid, ("ANOTHER", MARKER[1]))) == set()


def test_a_marker_is_the_whole_value_of_the_whole_variable(lives: Lives) -> None:
    lives.start({"name": "longer"}, marker=(MARKER[0], MARKER[1] + "0"))
    lives.start({"name": "prefixed"}, marker=("X" + MARKER[0], MARKER[1]))
    lives.start({"name": "within"}, marker=("X", f"{MARKER[0]}={MARKER[1]}"))
    lives.grown("longer", "prefixed", "within")
    assert members(None, None, MARKER) == ([], True)


def test_a_marked_process_proves_the_group_of_a_leader_that_is_gone(lives: Lives) -> None:
    children = [{"name": "marked"}, {"name": "bare", "environment": {}}]
    child = lives.start({"name": "leader", "leaves": True, "children": children})
    grown = lives.grown("leader", "marked", "bare")
    child.wait()
    found = find(grown["leader"], child.pid, MARKER)
    assert {process.pid for process in found.live} == {grown["marked"].pid, grown["bare"].pid}
    assert found.group_proven
    assert found.leader is None


@pytest.mark.usefixtures("anywhere")
def test_without_a_proof_what_is_in_the_group_is_not_the_runs(lives: Lives) -> None:
    child = lives.start({"name": "leader", "leaves": True, "children": [{"name": "bare", "environment": {}}]})
    grown = lives.grown("leader", "bare")
    await_exit(child.pid)
    leader = grown["leader"]
    assert [process.pid for process in find(leader, child.pid, MARKER).live] == [grown["bare"].pid]  # not reaped: proof
    child.wait()
    found = find(leader, child.pid, MARKER)
    assert (found.live, found.group_proven) == ((), False)
    assert [process.pid for process in found.unproven] == [grown["bare"].pid]
    assert [process.pid for process in find(leader, child.pid, MARKER, group_proven=True).live] == [grown["bare"].pid]
    # Not if it was there before the run, nor when the group is not the leader's own.
    later = Identity(leader.pid, f"{leader.start.rpartition(' ')[0]} {int(leader.start.split()[-1]) + 10**6}".strip())
    assert find(later, child.pid, MARKER).unproven == ()
    without_group = find(leader, None, MARKER, group_proven=True)
    assert (without_group.live, without_group.unproven) == ((), ())
    assert find(Identity(grown["bare"].pid + 1, leader.start), child.pid, MARKER, group_proven=True).live == ()


@pytest.mark.usefixtures("anywhere")
def test_the_group_of_a_recycled_leader_is_not_the_runs_even_if_it_was_proven(lives: Lives) -> None:
    lives.start({"name": "leader", "children": [{"name": "child", "environment": {}}]}, marker=None)
    grown = lives.grown("leader", "child")
    earlier = other(grown["leader"])
    for proven in (False, True):
        found = find(earlier, earlier.pid, MARKER, group_proven=proven)
        assert (found.live, found.unproven, found.group_proven) == ((), (), False)


def test_the_processes_of_another_run_are_not_this_runs_though_it_started_them(lives: Lives) -> None:
    inner = {"name": "inner", "session": True, "environment": {MARKER[0]: "inner"}}
    lives.start({"name": "leader", "children": [inner, {"name": "mate", "environment": {MARKER[0]: "inner"}}]})
    grown = lives.grown("leader", "inner", "mate")
    assert pids(members(grown["leader"], grown["leader"].pid, MARKER)) == {grown["leader"].pid}
    inner_ones = {grown["inner"].pid, grown["mate"].pid}
    assert pids(members(grown["inner"], grown["inner"].pid, (MARKER[0], "inner"))) == inner_ones


def test_our_own_group_is_never_a_runs() -> None:
    script = (
        "import os; from verbc.support.run_processes import find; from verbc.support.process_identity import *\n"
        "os.fork() or (os.read(0, 1), os._exit(0))\n"
        "found = find(own_identity(), os.getpid(), ('X', 'y'))\n"
        "print(found.unproven, found.group_proven)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, capture_output=True, text=True, start_new_session=True
    )
    assert (done.stdout, done.stderr) == ("() False\n", "")


# Where environments may not be read, made of files that stand for /proc.


class Proc:
    """A folder that looks like /proc."""

    def __init__(self, root: Path) -> None:
        self._root = root
        (root / "sys/kernel/random").mkdir(parents=True)
        (root / "sys/kernel/random/boot_id").write_text("boot\n")

    def add(self, pid: int, ticks: int, environ: bytes | None = b"", **fields: int | str | bytes) -> Identity:
        """A process; without `environ` it may not be read."""
        given = {"name": "a b", "state": "S", "parent": 1, "session": pid, "flags": 0, "threads": 1, **fields}
        given.setdefault("group", given["session"])
        folder = self._root / str(pid)
        folder.mkdir()
        stat = (
            "{pid} ({name}) {state} {parent} {group} {session} 0 -1 {flags} " + "0 " * 10 + "{threads} 0 {ticks} 1 2\n"
        )
        (folder / "stat").write_text(stat.format(pid=pid, ticks=ticks, **given))
        (folder / "cmdline").write_bytes(b"program\0")
        if environ is None:
            (folder / "environ").mkdir()
        else:
            (folder / "environ").write_bytes(environ)
        return Identity(pid, f"boot {ticks}")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    look_with(monkeypatch, LinuxProcesses(tmp_path))
    return Proc(tmp_path)


LEADER, GROUP = Identity(500, "boot 1000"), 500


def test_the_name_of_a_program_confuses_nothing(proc: Proc) -> None:
    for name in (") R 1 2 3", "a)\nb (", "((", ""):
        proc.add(500 + len(name), 1000, name=name)
        assert identity_of(500 + len(name)) == Identity(500 + len(name), "boot 1000")


def test_an_unreadable_process_that_started_later_may_be_the_runs(proc: Proc) -> None:
    proc.add(500, 1000)
    hidden = proc.add(600, 1001, None)
    assert members(LEADER, GROUP, MARKER) == ([LEADER], False)
    assert members(hidden, 600, MARKER) == ([hidden], True)
    assert members(None, None, MARKER) == ([], False)


def test_an_unreadable_process_that_was_there_before_is_not_the_runs(proc: Proc) -> None:
    proc.add(500, 1000)
    proc.add(600, 999, None)
    assert members(LEADER, GROUP, MARKER) == ([LEADER], True)
    assert members(None, None, MARKER, Identity(400, "boot 1000")) == ([], True)
    assert members(None, None, MARKER, Identity(400, "boot 999")) == ([], False)


def test_an_unreadable_process_is_known_by_its_group_session_or_parent(proc: Proc) -> None:
    proc.add(500, 1000)
    known = [proc.add(600, 1001, None, session=500), proc.add(700, 1001, None, parent=600)]
    assert members(LEADER, GROUP, MARKER) == ([LEADER, *known], True)


def test_an_unreadable_process_in_the_session_of_a_stranger_is_a_strangers(proc: Proc) -> None:
    proc.add(500, 1000)
    proc.add(400, 1001, b"A=1\0")
    proc.add(401, 1002, None, session=400)
    assert members(LEADER, GROUP, MARKER) == ([LEADER], True)


@pytest.mark.parametrize("first", ["absent", "ended", "marked"])
def test_it_may_be_the_runs_when_the_session_says_nothing(proc: Proc, first: str) -> None:
    proc.add(500, 1000)
    marked = "=".join(MARKER).encode()
    if first != "absent":
        proc.add(
            400,
            1001,
            marked if first == "marked" else b"A=1\0",
            state="Z" if first == "ended" else "S",
        )
    proc.add(401, 1002, None, session=400)
    assert members(LEADER, GROUP, MARKER)[1] is False


def test_the_session_of_a_process_of_another_user_says_nothing(
    proc: Proc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elevated(LinuxProcesses):
        def everyone(self) -> list[Process]:
            return [replace(one, user=12345) if one.pid == 400 else one for one in super().everyone()]

    look_with(monkeypatch, Elevated(tmp_path))
    proc.add(500, 1000)
    proc.add(400, 1001, None)
    assert members(LEADER, GROUP, MARKER) == ([LEADER], True)
    proc.add(401, 1002, None, session=400)
    assert members(LEADER, GROUP, MARKER) == ([LEADER], False)


def test_an_unreadable_process_of_another_user_is_not_the_runs(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(500, 1000)
    proc.add(600, 1001, None)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert members(LEADER, GROUP, MARKER) == ([LEADER], True)


def test_a_process_of_another_user_is_the_runs_by_its_group(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(500, 1000)
    elevated = proc.add(600, 1001, None, session=500)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert members(LEADER, GROUP, MARKER) == ([LEADER, elevated], True)


def test_another_group_of_the_same_session_is_the_runs(proc: Proc) -> None:
    proc.add(500, 1000)
    shell_job = proc.add(600, 1001, session=500, group=600)
    assert members(LEADER, GROUP, MARKER) == ([LEADER, shell_job], True)


def test_threads_of_the_kernel_are_nobodys(proc: Proc) -> None:
    proc.add(500, 1000)
    proc.add(600, 1001, None, flags=0x00208040)
    assert members(LEADER, GROUP, MARKER) == ([LEADER], True)


def test_a_child_that_is_older_than_its_parent_is_another_ones(proc: Proc) -> None:
    proc.add(500, 1000)
    proc.add(700, 1005, "=".join(MARKER).encode())
    proc.add(701, 1004, parent=700)
    assert members(LEADER, GROUP, MARKER)[0] == [LEADER, Identity(700, "boot 1005")]


def test_a_program_that_is_being_loaded_is_looked_at_again(
    proc: Proc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading = proc.add(600, 1001)
    (tmp_path / "600/cmdline").write_bytes(b"")
    looks: list[float] = []

    def later(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            (tmp_path / "600/environ").write_bytes("=".join(MARKER).encode() + b"\0")

    monkeypatch.setattr(time, "sleep", later)
    assert members(None, None, MARKER) == ([loading], True)
    (tmp_path / "600/environ").write_bytes(b"")
    assert members(None, None, MARKER) == ([], False)  # it never gets done
    assert len(looks) == 2 + linux_processes.LOADING_LOOKS


def test_what_is_read_after_the_process_ended_is_not_its_own(
    proc: Proc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = proc.add(600, 1001, "=".join(MARKER).encode())
    process = LinuxProcesses(tmp_path).process(600)
    assert process is not None
    assert LinuxProcesses(tmp_path).mark(process, MARKER[0]) == MARKER[1]
    stat = (tmp_path / "600/stat").read_text()
    (tmp_path / "600/stat").write_text(stat.replace(" 1001 ", " 1002 "))
    assert LinuxProcesses(tmp_path).mark(process, MARKER[0]) is None
    (tmp_path / "600/stat").write_text(stat.replace(") S ", ") Z "))
    assert LinuxProcesses(tmp_path).mark(process, MARKER[0]) is None
    (tmp_path / "600/stat").unlink()
    assert LinuxProcesses(tmp_path).mark(process, MARKER[0]) is None
    (tmp_path / "600/stat").write_text(stat.replace(") S ", ") Z "))
    assert sight(known, own_identity()) == GONE


def test_a_process_that_is_about_to_end_is_not_taken_for_one_that_is_being_loaded(proc: Proc, tmp_path: Path) -> None:
    proc.add(500, 1000)
    proc.add(600, 1001, flags=0x4)
    (tmp_path / "600/cmdline").write_bytes(b"")
    assert members(LEADER, GROUP, MARKER) == ([LEADER], True)


def test_a_process_that_is_hidden_or_may_not_be_looked_at_is_not_taken_for_gone(proc: Proc, tmp_path: Path) -> None:
    hidden = Identity(os.getpid(), "boot 1")
    assert sight(hidden, own_identity()) == Sighting(None, "unreadable")
    assert identity_of(os.getpid()) == Identity(os.getpid(), "")
    proc.add(600, 1)
    (tmp_path / "600/stat").unlink()
    (tmp_path / "600/stat").mkdir()
    assert sight(Identity(600, "boot 1"), own_identity()) == Sighting(None, "unreadable")


def test_where_processes_cannot_be_listed_nothing_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look_with(monkeypatch, LinuxProcesses(tmp_path / "absent"))
    assert members(LEADER, GROUP, MARKER) == ([], False)


def test_which_way_is_taken_depends_on_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(processes.system(), LinuxProcesses)
    assert not LinuxProcesses(tmp_path).usable()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not LinuxProcesses().usable()


# Elsewhere than on Linux.


def test_everything_can_be_imported_where_linux_is_missing() -> None:
    script = (
        "import os, signal, sys\n"
        "sys.platform = 'darwin'\n"
        "for module, word in ((os, 'pidfd'), (os, 'waitid'), (os, 'P_'), (os, 'CLD_'), (os, 'WNOWAIT'), (signal, 'pidfd')):\n"
        "    for name in [name for name in dir(module) if name.startswith(word)]:\n"
        "        delattr(module, name)\n"
        "from verbc.support import exit_watch, log_tail, process_identity, process_stop, processes\n"
        "print(type(processes.system()).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("PsProcesses\n", "")


def script(folder: Path, text: str) -> Callable[[], None]:
    """Let `ps` be this script."""
    program = folder / "ps"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return lambda: None


@pytest.fixture
def stub_ps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_ps: None) -> Callable[[str], None]:
    def become(text: str) -> None:
        script(tmp_path, text)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return become


def test_ps_is_asked_in_one_language_and_one_time_zone(stub_ps: Callable[[str], None], tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    stub_ps(f'echo "$LC_ALL $TZ $*" > {asked}; echo "  7   1 7 0 Ss Thu Jan  1 00:01:40 1970"; echo')
    assert PsProcesses().everyone() == [Process(Identity(7, "100"), 1, 7, 0, 0, 100, True)]
    assert asked.read_text() == "C UTC0 -A -o pid= -o ppid= -o pgid= -o uid= -o stat= -o lstart=\n"


@pytest.mark.parametrize(
    "text", ["exit 1", "echo what is this", "echo 7 1 7 0 S Thu Foo 1 00:01:40 1970", "kill -9 $$"]
)
def test_a_ps_that_says_nothing_useful_leaves_things_open(stub_ps: Callable[[str], None], text: str) -> None:
    stub_ps(text)
    with pytest.raises(UnreadableError):
        PsProcesses().everyone()
    assert sight(Identity(os.getpid(), "100"), own_identity()) == Sighting(None, "unreadable")
    assert members(Identity(os.getpid(), "100"), None, MARKER) == ([], False)
    assert sight(Identity(free_pid(), "100"), own_identity()) == GONE  # this the system says itself


@pytest.mark.usefixtures("by_ps")
def test_without_ps_things_are_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert identity_of(os.getpid()) == Identity(os.getpid(), "")
    assert sight(Identity(os.getpid(), ""), own_identity()) == Sighting(None, "unreadable")


def test_a_process_that_ps_does_not_list_is_not_taken_for_gone(stub_ps: Callable[[str], None]) -> None:
    stub_ps('echo "1 0 1 0 Ss Thu Jan  1 00:01:40 1970"')
    assert sight(Identity(os.getpid(), "100"), own_identity()) == Sighting(None, "unreadable")


def test_starts_within_a_second_are_the_same(stub_ps: Callable[[str], None]) -> None:
    stub_ps(f'echo "{os.getpid()} 1 {os.getpid()} 0 Ss Thu Jan  1 00:01:40 1970"')
    seen = {start: sight(Identity(os.getpid(), str(start)), own_identity()) for start in (98, 99, 100, 101, 102)}
    assert seen == {98: RECYCLED, 99: CONFIRMED, 100: CONFIRMED, 101: CONFIRMED, 102: RECYCLED}
    assert not PsProcesses().same(Identity(1, "100"), Identity(2, "100"))
    assert not PsProcesses().same(Identity(1, ""), Identity(1, ""))


@pytest.mark.usefixtures("by_ps")
def test_ps_finds_nothing_by_the_marker_and_says_so(lives: Lives) -> None:
    lives.start({"name": "leader"})
    lives.grown("leader")
    assert members(None, None, MARKER) == ([], False)
