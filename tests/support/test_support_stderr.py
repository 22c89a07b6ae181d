"""The standard error that never waits: whole where there is room, gone where there is none."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from verbc.support.stderr import PIECE, unhurried


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, int]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as source:
        yield source, writing
        os.close(writing)


def fill(descriptor: int) -> None:
    os.set_blocking(descriptor, False)
    try:
        while os.write(descriptor, b"x" * PIECE):
            pass
    except BlockingIOError:
        os.set_blocking(descriptor, True)


def test_what_there_is_room_for_arrives_as_it_is(pipe: tuple[BinaryIO, int]) -> None:
    source, writing = pipe
    text = unhurried(writing)
    print("é\ud800", "b" * 2 * PIECE, file=text)
    assert source.read(10 * PIECE) == b"\xc3\xa9\\ud800 " + b"b" * 2 * PIECE + b"\n"


def test_a_text_beyond_all_room_never_blocks(pipe: tuple[BinaryIO, int]) -> None:
    source, writing = pipe
    text = unhurried(writing)
    for _ in range(3):
        print("x" * 1_000_000, file=text)
    assert set(source.read(10_000_000)) == set(b"x")


def test_after_a_text_that_was_cut_a_line_of_its_own_begins(pipe: tuple[BinaryIO, int]) -> None:
    source, writing = pipe
    text = unhurried(writing)
    print("x" * 1_000_000, file=text)
    print("lost", file=text)
    source.read(10_000_000)
    print("next", file=text)
    print("and next", file=text)
    assert source.read(10_000) == b"\nnext\nand next\n"


def test_a_full_pipe_takes_nothing(pipe: tuple[BinaryIO, int]) -> None:
    source, writing = pipe
    fill(writing)
    text = unhurried(writing)
    print("lost", file=text)
    source.read(10_000_000)
    print("next", file=text)
    assert source.read(10_000) == b"next\n"


def test_threads_do_not_take_each_other_s_room(pipe: tuple[BinaryIO, int]) -> None:
    text = unhurried(pipe[1])
    threads = [threading.Thread(target=lambda: [print("x" * 100, file=text) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_reader_that_has_gone_or_a_descriptor_that_is_closed_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    print("a", file=unhurried(writing))
    os.close(writing)
    print("a", file=unhurried(writing))
