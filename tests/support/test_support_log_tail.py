"""The end of a log: enough of it, never more read than that takes, whatever is in it and whatever happens meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from verbc.support.foreign_text import escaped
from verbc.support.log_tail import PIECE_BYTES, Tail, tail

MOST = 200_000


class Reads:
    """Reads files, and notes how much of them."""

    def __init__(self, before: Callable[[int], None] = lambda _: None) -> None:
        self.counts: list[int] = []
        self.bytes = 0
        self._before = before

    def __call__(self, file: int, count: int, offset: int) -> bytes:
        self._before(len(self.counts))
        data = os.pread(file, count, offset)
        self.counts.append(count)
        self.bytes += len(data)
        return data


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "console.log"


def test_a_log_that_is_not_there_is_none(log: Path) -> None:
    assert tail(log, 10) is None
    assert tail(log / "x", 10) is None
    log.write_text("file")
    assert tail(log / "x", 10) is None


def test_an_empty_log_is_empty(log: Path) -> None:
    log.touch()
    reads = Reads()
    assert tail(log, 10, reads) == Tail("", 0, False)
    assert reads.counts == []


@pytest.mark.parametrize(
    ("characters", "text", "truncated"),
    [(1, "d", True), (3, "b\nd", True), (4, "ab\nd"[-4:], False), (5, "ab\nd", False), (MOST, "ab\nd", False)],
)
def test_the_last_characters_are_given(log: Path, characters: int, text: str, truncated: bool) -> None:
    log.write_text("ab\nd")
    assert tail(log, characters) == Tail(text, 4, truncated)


@pytest.mark.parametrize("characters", [0, -1, -5])
def test_no_characters_are_none(log: Path, characters: int) -> None:
    log.write_text("text")
    reads = Reads()
    assert tail(log, characters, reads) == Tail("", 4, True)
    assert reads.counts == []


# How much is read.


@pytest.mark.parametrize("characters", [512, 4000, 20_000, PIECE_BYTES, PIECE_BYTES + 1, MOST])
def test_of_a_plain_log_hardly_more_bytes_are_read_than_characters_are_wanted(log: Path, characters: int) -> None:
    log.write_text("0123456789\n" * 100_000)
    reads = Reads()
    end = tail(log, characters, reads)
    assert end == Tail(("0123456789\n" * 100_000)[-characters:], 1_100_000, True)
    assert characters <= reads.bytes < characters + 512
    assert max(reads.counts) <= PIECE_BYTES


@pytest.mark.parametrize("character", ["é", "日", "😀"])
@pytest.mark.parametrize("characters", [1, 2, 100, 20_000, MOST])
def test_of_a_log_of_wide_characters_no_more_is_read_than_they_take(log: Path, character: str, characters: int) -> None:
    log.write_text(character * (MOST + 10))
    reads = Reads()
    assert tail(log, characters, reads) == Tail(character * characters, log.stat().st_size, True)
    assert reads.bytes <= 4 * characters + 4
    assert reads.bytes <= max(512, len(character.encode()) * characters + 512)
    assert max(reads.counts) <= PIECE_BYTES


def test_a_few_characters_take_a_few_bytes(log: Path) -> None:
    log.write_text("x" * 10_000)
    for characters in (1, 2, 50, 127):
        reads = Reads()
        tail(log, characters, reads)
        assert reads.bytes == 4 * characters + 4


@pytest.mark.parametrize("data", [b"\x80", b"\xff", b"\x00", b"\xe2\x82"])
def test_of_what_is_no_text_no_more_is_read(log: Path, data: bytes) -> None:
    log.write_bytes(data * 1_000_000)
    for characters in (1, 1000, MOST):
        reads = Reads()
        end = tail(log, characters, reads)
        assert end is not None
        assert characters - 6 < len(end.text) <= characters
        assert reads.bytes <= 4 * characters + 4


def test_of_a_huge_log_only_the_end_is_read(log: Path) -> None:
    size = 1 << 42
    with log.open("wb") as file:
        file.seek(size - 4)
        file.write(b"end\n")
    reads = Reads()
    end = tail(log, 10_000, reads)
    assert end is not None
    assert (end.text[-10:], end.log_bytes, end.truncated) == ("\\u0000end\n", size, True)
    assert reads.bytes <= 40_004


# What is in it.


@pytest.mark.parametrize("character", ["é", "日", "😀"])
def test_a_character_that_is_torn_at_the_front_is_left_out(log: Path, character: str) -> None:
    for before in range(1, 9):
        log.write_text("-" * before + character * 3)
        for characters in range(1, before + 4):
            expected = ("-" * before + character * 3)[-characters:]
            assert tail(log, characters) == Tail(expected, log.stat().st_size, len(expected) < before + 3)


def test_a_character_that_is_torn_between_pieces_is_whole(log: Path) -> None:
    for shift in range(4):
        text = "😀" * (PIECE_BYTES // 2) + "-" * shift
        log.write_text(text)
        reads = Reads()
        end = tail(log, len(text) - 1, reads)
        assert end is not None
        assert end.text == text[1:]
        assert len(reads.counts) > 2


def test_a_character_that_is_not_written_to_its_end_is_replaced(log: Path) -> None:
    log.write_bytes("ab日".encode()[:-1])
    assert tail(log, 10) == Tail("ab\ufffd", 4, False)


def test_what_is_no_utf8_is_replaced(log: Path) -> None:
    log.write_bytes(b"a\xffb\xc3(c\x80\x80")
    assert tail(log, 100) == Tail("a\ufffdb\ufffd(c\ufffd\ufffd", 8, False)
    assert tail(log, 1) == Tail("\ufffd", 8, True)


def test_control_and_bidi_characters_are_escaped_and_count_as_long_as_they_get(log: Path) -> None:
    log.write_text("ab\x1b[31m\u202e\r\n\tc")
    whole = "ab\\u001b[31m\\u202e\\u000d\n\tc"
    size = log.stat().st_size
    assert tail(log, len(whole)) == Tail(whole, size, False)
    assert tail(log, len(whole) - 1) == Tail(whole[1:], size, True)
    assert tail(log, len(whole) - 3) == Tail(whole[8:], size, True)  # an escape is there as a whole, or not at all
    assert tail(log, 3) == Tail("\n\tc", size, True)
    assert tail(log, 8) == Tail("\n\tc", size, True)
    assert tail(log, 9) == Tail("\\u000d\n\tc", size, True)


@given(
    st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode(errors="surrogatepass")),
    st.integers(1, 60),
)
@example("\ufeffa".encode(), 7)
def test_any_end_of_any_log_is_the_end_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, characters: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_bytes(data)
    reads = Reads()
    end = tail(path, characters, reads)
    assert end is not None
    whole = escaped(data.decode(errors="replace"))
    assert len(end.text) <= characters
    assert whole.endswith(end.text)
    assert end.truncated == (end.text != whole)
    assert end.log_bytes == len(data)
    assert reads.bytes <= 4 * characters + 4
    # What is missing would not have gone in: ten are the longest escape.
    assert end.text == whole or len(end.text) > characters - 10


# What happens meanwhile.


def test_what_is_added_meanwhile_is_not_in_it(log: Path) -> None:
    log.write_text("a" * 2000)

    def grow(_: int) -> None:
        with log.open("a") as file:
            file.write("b" * 1000)

    reads = Reads(grow)
    assert tail(log, 1000, reads) == Tail("a" * 1000, 2000, True)
    assert reads.bytes == 1000


def test_a_log_that_becomes_shorter_is_looked_at_anew(log: Path) -> None:
    log.write_text("a" * 100_000 + "b" * 100_000)
    reads = Reads(lambda count: os.truncate(log, 50_000) if count == 1 else None)
    assert tail(log, 100_000, reads) == Tail("a" * 50_000, 50_000, False)
    assert reads.bytes <= 2 * 400_004


def test_a_log_that_is_emptied_again_and_again_is_given_as_it_was_found(log: Path) -> None:
    log.write_text("a" * 10_000)

    def shrink(_: int) -> None:
        os.truncate(log, log.stat().st_size // 2)

    reads = Reads(shrink)
    end = tail(log, 1000, reads)
    assert end is not None
    assert end.text in ("", "a" * len(end.text))
    assert len(reads.counts) < 10


def test_reads_that_give_less_than_asked_are_gone_on_with(log: Path) -> None:
    log.write_text("0123456789" * 100)
    assert tail(log, 1000, lambda file, count, offset: os.pread(file, min(count, 7), offset)) == Tail(
        "0123456789" * 100, 1000, False
    )


# What is no log.


def test_a_link_is_not_followed(log: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    log.symlink_to(tmp_path / "secret")
    assert tail(log, 10) is None


def test_a_pipe_is_not_waited_for(log: Path) -> None:
    os.mkfifo(log)
    assert tail(log, 10) is None


def test_folders_sockets_and_devices_are_no_logs(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tail(tmp_path, 10) is None
    assert tail(Path("/dev/zero"), 10) is None
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("console.log")
        assert tail(log, 10) is None


def test_a_log_that_cannot_be_read_raises_and_leaves_no_file_open(log: Path) -> None:
    def fail(_: int) -> None:
        raise OSError("input/output error")

    log.write_text("text")
    before = os.listdir("/dev/fd")
    with pytest.raises(OSError, match="input/output"):
        tail(log, 10, Reads(fail))
    assert os.listdir("/dev/fd") == before
    with pytest.raises(OSError, match="too long"):
        tail(log.parent / ("x" * 10_000), 10)
