"""Stopping a run: asked first, forced later, verified, and never anything else hit."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from verbc.support import process_handle, process_stop
from verbc.support.linux_processes import LinuxProcesses
from verbc.support.process_handle import Handle, OutOfReachError, hold, wait_for_one
from verbc.support.process_identity import own_identity, sight
from verbc.support.process_stop import Stopped, stop
from verbc.support.processes import UnreadableError
from verbc.support.ps_processes import PsProcesses
from verbc.support.run_processes import Found, find
from verbc.support.run_record import Identity

from .lives import MARKER, Lives, await_exit, identity, look_with

FOR_EVER = 1000.0
ASKED = Stopped(True, "SIGTERM")
FORCED = Stopped(True, "SIGKILL")


@pytest.fixture
def lives() -> Iterator[Lives]:
    with Lives() as started:
        yield started


@pytest.fixture(params=["pidfd", "no group by pidfd", "no pidfd", "ps"])
def anywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs as on a new Linux, on older ones, and elsewhere."""
    if request.param == "no group by pidfd":
        send = signal.pidfd_send_signal
        monkeypatch.setattr(
            signal, "pidfd_send_signal", lambda fd, number, info, flags: send(fd, number, info, refuse(flags))
        )
    if request.param in ("no pidfd", "ps"):
        monkeypatch.delattr(os, "pidfd_open")
    if request.param == "ps":
        look_with(monkeypatch, PsProcesses())


def refuse(flags: int) -> int:
    if flags:
        raise OSError(errno.EINVAL, "unknown flags")
    return flags


def stop_led(leader: Identity, grace: float = FOR_EVER) -> Stopped:
    return stop(leader, leader.pid, MARKER, grace)


def gone(identity: Identity) -> bool:
    return sight(identity, Identity(1, "")).alive is False


def looks(monkeypatch: pytest.MonkeyPatch, between: Callable[[int, Found], None]) -> None:
    """Let something happen after each look: it is given the number of the look, and what was found."""
    count = 0

    def look(*args: Any, **options: Any) -> Found:
        nonlocal count
        found = find(*args, **options)
        count += 1
        between(count, found)
        return found

    monkeypatch.setattr(process_stop, "find", look)


def end_grace(monkeypatch: pytest.MonkeyPatch, after: Callable[[], object]) -> None:
    """Let the grace be over after this; it is called where the first wait would be."""
    wait, now = wait_for_one, time.monotonic

    def end(*_: object) -> set[Identity]:
        monkeypatch.setattr(process_stop, "wait_for_one", wait)
        after()
        monkeypatch.setattr(time, "monotonic", lambda: now() + FOR_EVER)
        return set()

    monkeypatch.setattr(process_stop, "wait_for_one", end)


# Who is asked, and when.


@pytest.mark.usefixtures("anywhere")
def test_a_run_that_ends_when_asked_is_asked_only(lives: Lives) -> None:
    lives.start({"name": "leader", "children": [{"name": "child"}, {"name": "bare", "environment": {}}]})
    grown = lives.grown("leader", "child", "bare")
    assert stop_led(grown["leader"]) == ASKED
    assert all(gone(one) for one in grown.values())
    assert lives.reports_left() == {("asked", name) for name in grown}


@pytest.mark.usefixtures("anywhere")
def test_a_leader_ends_its_children_in_order_before_anybody_else_asks_them(lives: Lives) -> None:
    child = {"name": "child", "session": True}
    lives.start({"name": "leader", "dismisses": True, "children": [child]})
    grown = lives.grown("leader", "child")
    assert stop_led(grown["leader"]) == ASKED
    assert lives.reports_left() == {("asked", "leader")}


def test_what_is_left_when_the_leader_is_gone_is_asked_each_once(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    escaped = {"name": "escaped", "session": True}
    lives.start({"name": "leader", "children": [escaped, {"name": "mate", "stays": True}]})
    grown = lives.grown("leader", "escaped", "mate")
    asked: list[tuple[Identity, int]] = []
    send = Handle.signal

    def note(handle: Handle, number: int) -> bool:
        asked.append((handle.identity, number))
        return send(handle, number)

    def give_up_waiting(_count: int, found: Found) -> None:
        if [process.identity for process in found.live] == [grown["mate"]]:
            monkeypatch.setattr(time, "monotonic", lambda: now() + FOR_EVER)

    now = time.monotonic
    monkeypatch.setattr(Handle, "signal", note)
    looks(monkeypatch, give_up_waiting)
    assert stop_led(grown["leader"]) == FORCED
    # The mate was asked with the group, and not again.
    assert asked == [(grown["escaped"], signal.SIGTERM), (grown["mate"], signal.SIGKILL)]


@pytest.mark.usefixtures("anywhere")
def test_what_ignores_the_question_is_killed_after_the_grace(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    lives.start({"name": "leader", "stays": True, "children": [{"name": "child", "stays": True}]})
    grown = lives.grown("leader", "child")
    asked: set[tuple[str, str]] = set()
    end_grace(monkeypatch, lambda: asked.update(lives.report()[:2] for _ in range(2)))
    assert stop_led(grown["leader"]) == FORCED
    assert all(gone(one) for one in grown.values())
    assert asked == {("asked", "leader"), ("asked", "child")}
    assert lives.reports_left() == set()


@pytest.mark.usefixtures("anywhere")
def test_without_a_grace_nobody_is_asked(lives: Lives) -> None:
    lives.start({"name": "leader", "children": [{"name": "bare", "session": True, "environment": {}}]})
    grown = lives.grown("leader", "bare")
    assert stop_led(grown["leader"], grace=0) == FORCED
    assert all(gone(one) for one in grown.values())
    assert lives.reports_left() == set()


def test_what_left_the_group_and_lost_its_leader_is_reached(lives: Lives) -> None:
    bare = {"name": "bare", "session": True, "environment": {}}
    escaped = {"name": "escaped", "session": True, "stays": True, "children": [bare]}
    child = lives.start({"name": "leader", "leaves": True, "children": [escaped]})
    grown = lives.grown("leader", "escaped", "bare")
    child.wait()
    assert stop_led(grown["leader"], grace=0.05) == FORCED
    assert all(gone(one) for one in grown.values())


def test_a_run_without_a_leader_on_record_is_reached_by_its_marker(lives: Lives) -> None:
    lives.start({"name": "leader", "children": [{"name": "child", "session": True}]})
    grown = lives.grown("leader", "child")
    assert stop(None, None, MARKER, FOR_EVER, own_identity()) == ASKED
    assert all(gone(one) for one in grown.values())


@pytest.mark.usefixtures("anywhere")
def test_others_are_left_alone(lives: Lives) -> None:
    lives.start({"name": "stranger"}, marker=(MARKER[0], "another"))
    lives.start(
        {"name": "leader", "children": [{"name": "inner", "session": True, "environment": {MARKER[0]: "inner"}}]}
    )
    grown = lives.grown("leader", "stranger", "inner")
    assert stop_led(grown["leader"]).signal == "SIGTERM"
    assert not gone(grown["stranger"])
    assert ("asked", "stranger") not in lives.reports_left()


def test_a_run_within_a_run_is_left_alone(lives: Lives) -> None:
    lives.start(
        {"name": "leader", "children": [{"name": "inner", "session": True, "environment": {MARKER[0]: "inner"}}]}
    )
    grown = lives.grown("leader", "inner")
    assert stop_led(grown["leader"], grace=0) == FORCED
    assert not gone(grown["inner"])


# What turns up meanwhile.


def test_what_starts_during_the_kill_is_killed_too(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    lives.start({"name": "leader", "stays": True})
    leader = lives.grown("leader")["leader"]
    late: list[Identity] = []

    def start_another(count: int, _found: Found) -> None:
        if count <= 5:
            late.append(identity(lives.start({"name": f"late{count}"}).pid))

    looks(monkeypatch, start_another)
    assert stop_led(leader, grace=0) == FORCED
    assert len(late) == 5
    assert all(gone(one) for one in late)


def test_what_starts_after_the_first_empty_look_is_found_by_the_second(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[Identity] = []

    def start_another(count: int, _found: Found) -> None:
        if count == 1:
            late.append(identity(lives.start({"name": "late"}).pid))

    looks(monkeypatch, start_another)
    assert stop(None, None, MARKER, FOR_EVER, own_identity()) == FORCED
    assert gone(late[0])


def test_a_run_that_multiplies_for_ever_is_given_up_in_the_end(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_stop, "FORCE_ROUNDS", 5)
    looks(monkeypatch, lambda count, _: void(lives.start({"name": f"late{count}"})))
    assert stop(None, None, MARKER, FOR_EVER, own_identity()) == Stopped(False, "SIGKILL", "still_alive")


def void(_: object) -> None:
    pass


@pytest.mark.parametrize("environment", [{}, dict([MARKER])])
def test_a_run_that_goes_on_as_its_own_child_all_the_time_is_killed(lives: Lives, environment: dict[str, str]) -> None:
    comet = {"name": "comet", "multiplies": 300, "environment": environment}
    lives.start({"name": "leader", "children": [comet]})
    leader = lives.grown("leader", "comet")["leader"]
    assert stop_led(leader, grace=0) == FORCED
    assert find(leader, leader.pid, MARKER, group_proven=True).live == ()


def test_a_group_is_still_reached_when_its_leader_is_gone(lives: Lives) -> None:
    child = lives.start({"name": "leader", "children": [{"name": "bare", "environment": {}}]})
    grown = lives.grown("leader", "bare")
    handle = held(grown["leader"])
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert handle.signal_group(signal.SIGKILL) is not hasattr_group()
    handle.close()


def hasattr_group() -> bool:
    """Whether this system cannot do that."""
    return tuple(map(int, os.uname().release.split(".")[:2])) < (6, 9)


def test_what_is_in_the_group_is_killed_in_one_go_whether_it_was_seen_or_not(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives.start({"name": "leader", "children": [{"name": "unseen", "environment": {}}]})
    grown = lives.grown("leader", "unseen")

    def look(*args: Any, **options: Any) -> Found:
        found = find(*args, **options)
        return replace(found, live=tuple(process for process in found.live if process.identity != grown["unseen"]))

    monkeypatch.setattr(process_stop, "find", look)
    assert stop_led(grown["leader"], grace=0) == FORCED
    await_exit(grown["unseen"].pid)
    assert gone(grown["unseen"])


def test_what_was_seen_and_could_not_be_held_is_no_proof_that_all_are_gone(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody is always there, and gone again before a hold: the run lives on."""
    lives.start({"name": "leader"})
    leader = lives.grown("leader")["leader"]
    found = find(leader, leader.pid, MARKER)
    monkeypatch.setattr(process_stop, "find", lambda *_, **__: found)
    monkeypatch.setattr(process_stop, "hold", lambda *_, **__: None)
    monkeypatch.setattr(process_stop, "FORCE_SECONDS", 0.2)
    assert stop_led(leader) == Stopped(False, None, "still_alive")


def test_what_got_away_is_looked_for_until_nobody_was_seen_many_times(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives.start({"name": "leader"})
    leader = lives.grown("leader")["leader"]
    got_away = find(leader, leader.pid, MARKER)
    shown = [got_away, Found(), Found(), got_away]
    count = 0

    def look(*_: Any, **__: Any) -> Found:
        nonlocal count
        count += 1
        return shown.pop(0) if shown else Found()

    monkeypatch.setattr(process_stop, "find", look)
    monkeypatch.setattr(process_stop, "hold", lambda *_, **__: None)
    assert stop_led(leader) == Stopped(True, None)
    assert count == 4 + process_stop.CALM_LOOKS


HOPS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.003)
"""


def test_gone_is_not_said_of_what_goes_on_as_its_own_child_in_ever_new_sessions(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_stop, "FORCE_SECONDS", 2.0)
    reading, writing = os.pipe()
    environment = {**os.environ, MARKER[0]: MARKER[1]}
    child = subprocess.Popen([sys.executable, "-c", HOPS], env=environment, pass_fds=[writing], start_new_session=True)
    os.close(writing)
    child.wait()
    outcome = stop(None, None, MARKER, 0.1, own_identity())
    os.set_blocking(reading, False)
    try:
        ended = os.read(reading, 1) == b""  # nobody holds the other end any more
    except BlockingIOError:
        ended = False
    assert outcome.gone is ended
    while not outcome.gone:
        outcome = stop(None, None, MARKER, 0.0, own_identity())
    os.close(reading)


def test_few_files_are_open_for_a_run_of_many_processes(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_stop, "MOST_HELD", 3)
    children = [{"name": f"child{number}", "session": True, "stays": number % 2 == 0} for number in range(8)]
    lives.start({"name": "leader", "children": children})
    grown = lives.grown("leader", *(str(child["name"]) for child in children))
    before, most = len(os.listdir("/dev/fd")), 0

    def count(_number: int, _found: Found) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/dev/fd")) - before)

    looks(monkeypatch, count)
    assert stop_led(grown["leader"], grace=0.3) == FORCED
    assert all(gone(one) for one in grown.values())
    assert 0 < most <= 3
    assert len(os.listdir("/dev/fd")) == before


# What must not be hit.


@pytest.mark.usefixtures("anywhere")
def test_a_process_with_a_recycled_number_is_left_alone(lives: Lives) -> None:
    lives.start({"name": "stranger", "children": [{"name": "child"}]}, marker=None)
    grown = lives.grown("stranger", "child")
    before, _, start = grown["stranger"].start.rpartition(" ")
    earlier = Identity(grown["stranger"].pid, f"{before} {int(start) - 1000}".strip())
    assert stop_led(earlier) == Stopped(True, None)
    assert lives.reports_left() == set()
    assert not gone(grown["stranger"])


@pytest.mark.usefixtures("anywhere")
def test_a_hold_is_on_one_process_only(lives: Lives) -> None:
    child = lives.start({"name": "a"})
    known = identity(child.pid)
    before, _, start = known.start.rpartition(" ")
    assert hold(Identity(known.pid, f"{before} {int(start) - 1000}".strip())) is None
    assert hold(Identity(known.pid, "")) is None
    handle = held(known)
    os.kill(child.pid, signal.SIGKILL)
    await_exit_anywhere(child)
    assert hold(known) is None  # not reaped
    child.wait()
    assert not handle.signal(signal.SIGTERM)
    assert not handle.signal_group(signal.SIGTERM)
    handle.close()
    handle.close()


def await_exit_anywhere(child: subprocess.Popen[bytes]) -> None:
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def held(known: Identity) -> Handle:
    handle = hold(known)
    assert handle is not None
    return handle


def test_without_pidfds_the_identity_is_looked_at_right_before_a_signal(lives: Lives) -> None:
    lives.start({"name": "a"})
    known = lives.grown("a")["a"]
    recycled = Handle(Identity(known.pid, "another"), None)
    assert not recycled.signal(signal.SIGKILL)
    assert not recycled.signal_group(signal.SIGKILL)
    assert not gone(known)
    assert Handle(known, None).signal(signal.SIGTERM)
    assert lives.report() == ("asked", "a", known.pid)


@pytest.mark.parametrize("pid", [-1, 0, 1, os.getpid()], ids=["all", "group", "first", "own"])
def test_some_are_never_signalled(pid: int) -> None:
    with pytest.raises(OutOfReachError):
        hold(Identity(pid, own_identity().start))


def test_our_own_group_is_never_signalled() -> None:
    script = (
        "from verbc.support.process_handle import *; from verbc.support.process_identity import *\n"
        "print([Handle(own_identity(), pidfd).signal_group(15) for pidfd in (None, os.pidfd_open(os.getpid()))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, start_new_session=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[False, False]\n", "")
    for group in (1, 0, -1):
        assert not Handle(Identity(group, own_identity().start), None).signal_group(signal.SIGTERM)


def test_a_server_within_a_run_stops_the_rest_of_it_and_lives(lives: Lives) -> None:
    script = (
        "import os, sys; from verbc.support.process_stop import stop; from verbc.support.process_identity import *\n"
        "child = os.fork() or (os.read(0, 1), os._exit(0))\n"
        "marker = ('X', 'y')\n"
        "print(stop(own_identity(), os.getpid(), marker, 1000.0))\n"
        "print(os.waitpid(child, 0)[1])"
    )
    environment = {"X": "y", "PYTHONPATH": os.pathsep.join(sys.path)}
    reading, writing = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", script],
        stdin=reading,
        env=environment,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    os.close(reading)
    os.close(writing)
    assert done.stdout == "Stopped(gone=False, signal='SIGTERM', problem='still_alive')\n15\n"
    assert done.stderr == ""


# What cannot be done.


@pytest.mark.usefixtures("anywhere")
def test_a_run_that_is_gone_already_is_gone(lives: Lives) -> None:
    child = lives.start({"name": "leader", "leaves": True})
    leader = lives.grown("leader")["leader"]
    await_exit_anywhere(child)
    assert stop_led(leader) == Stopped(True, None)
    child.wait()
    assert stop_led(leader) == Stopped(True, None)


@pytest.mark.usefixtures("anywhere")
def test_a_group_that_may_be_anybodys_is_left_alone(lives: Lives) -> None:
    child = lives.start({"name": "leader", "leaves": True, "children": [{"name": "bare", "environment": {}}]})
    grown = lives.grown("leader", "bare")
    child.wait()
    assert stop_led(grown["leader"]) == Stopped(False, None, "group_ownership_unproven")
    assert not gone(grown["bare"])


def test_what_may_not_be_signalled_is_told(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    lives.start({"name": "leader", "children": [{"name": "child", "session": True}]})
    grown = lives.grown("leader", "child")
    protect(monkeypatch, grown["leader"])
    end_grace(monkeypatch, lambda: await_exit(grown["child"].pid))  # it does not wait for a leader that cannot be asked
    assert stop_led(grown["leader"]) == Stopped(False, "SIGTERM", "permission_denied")
    assert lives.reports_left() == {("asked", "child")}
    assert stop_led(grown["leader"], grace=0) == Stopped(False, None, "permission_denied")


def protect(monkeypatch: pytest.MonkeyPatch, protected: Identity) -> None:
    send = signal.pidfd_send_signal
    pidfds: dict[int, int] = {}
    open_pidfd = os.pidfd_open

    def opened(pid: int) -> int:
        pidfd = open_pidfd(pid)
        pidfds[pidfd] = pid
        return pidfd

    def sent(pidfd: int, *args: Any) -> None:
        if pidfds[pidfd] == protected.pid:
            raise PermissionError
        send(pidfd, *args)

    monkeypatch.setattr(os, "pidfd_open", opened)
    monkeypatch.setattr(signal, "pidfd_send_signal", sent)


def test_what_survives_the_force_is_told(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    lives.start({"name": "leader", "children": [{"name": "child", "environment": {}}]})
    grown = lives.grown("leader", "child")
    monkeypatch.setattr(Handle, "signal", lambda *_: True)
    monkeypatch.setattr(Handle, "signal_group", lambda *_: True)
    monkeypatch.setattr(process_stop, "FORCE_SECONDS", 0.05)
    assert stop_led(grown["leader"], grace=0.05) == Stopped(False, "SIGKILL", "still_alive")


@pytest.mark.parametrize("found", [Found(complete=False)])
def test_gone_is_not_said_of_what_could_not_be_looked_at(monkeypatch: pytest.MonkeyPatch, found: Found) -> None:
    monkeypatch.setattr(process_stop, "find", lambda *_, **__: found)
    assert stop(None, None, MARKER, FOR_EVER) == Stopped(False, None, "scan_incomplete")


def test_what_cannot_be_recognised_any_more_is_not_signalled(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    lives.start({"name": "leader"})
    leader = lives.grown("leader")["leader"]

    class Blind(LinuxProcesses):
        def process(self, pid: int) -> None:
            raise UnreadableError

    monkeypatch.setattr(process_handle, "system", Blind)
    assert stop_led(leader) == Stopped(False, None, "still_alive")
    assert not Handle(leader, None).signal(signal.SIGKILL)
    assert lives.reports_left() == set()


# How it waits.


def test_it_waits_for_events_and_does_not_look_all_the_time(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    lives.start({"name": "leader", "children": [{"name": "child", "session": True, "stays": True}]})
    grown = lives.grown("leader", "child")
    count = 0

    def counted(number: int, _found: Found) -> None:
        nonlocal count
        count = number

    looks(monkeypatch, counted)
    result: list[Stopped] = []
    stopping = threading.Thread(target=lambda: result.append(stop_led(grown["leader"], grace=60)))
    stopping.start()
    assert {lives.report()[:2], lives.report()[:2]} == {("asked", "leader"), ("asked", "child")}
    os.kill(grown["child"].pid, signal.SIGKILL)  # as if it ended by itself at last
    stopping.join()
    assert result == [ASKED]
    # At first, when the leader ended, when the child ended, and once more to be sure.
    assert count == 4


def test_a_wait_tells_who_ended(lives: Lives) -> None:
    first, second = lives.start({"name": "a"}), lives.start({"name": "b"})
    grown = lives.grown("a", "b")
    handles = [held(grown["a"]), held(grown["b"])]
    assert wait_for_one(handles, 0) == set()
    second.kill()
    assert wait_for_one(handles, FOR_EVER) == {grown["b"]}
    first.kill()
    await_exit(first.pid)
    assert wait_for_one(handles, -1) == {grown["a"], grown["b"]}
    for handle in handles:
        handle.close()


def test_no_file_stays_open(lives: Lives) -> None:
    lives.start({"name": "leader", "children": [{"name": "child", "session": True}]})
    leader = lives.grown("leader", "child")["leader"]
    before = os.listdir("/dev/fd")
    assert stop_led(leader) == ASKED
    assert os.listdir("/dev/fd") == before


def test_where_there_is_no_room_for_files_it_works_all_the_same(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_pid: int) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    lives.start({"name": "leader", "children": [{"name": "child", "session": True}]})
    leader = lives.grown("leader", "child")["leader"]
    monkeypatch.setattr(os, "pidfd_open", full)
    assert stop_led(leader) == ASKED
