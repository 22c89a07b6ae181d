"""Server-sent events, however they come in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.upstream_sse import Events, EventTooLargeError

STREAMS = [
    (b"data: a\n\n", [b"a"]),
    (b"data:a\n\ndata: b\n\n", [b"a", b"b"]),
    (b"event: message\r\ndata: a\r\n\r\n", [b"a"]),
    (b"data: a\rdata: b\r\r", [b"a\nb"]),
    (b"data: a\ndata\ndata: b\n\n", [b"a\n\nb"]),
    (b": comment\n\ndata:\n\nid: 1\n\ndata: a\nretry: 3\n\n", [b"a"]),
    (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    (b"data:  two blanks\n\n", [b" two blanks"]),
    (b"datum: a\n\ndata: b: c\n\n", [b"b: c"]),
    (b"data: unfinished\n", []),
    (b"\n\n\r\n\r\n", []),
]


@pytest.mark.parametrize(("text", "events"), STREAMS)
def test_events_are_the_same_in_whatever_pieces_they_come(text: bytes, events: list[bytes]) -> None:
    assert Events(1000).feed(text) == events
    for size in (1, 2, 3):
        taken = Events(1000)
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert [event for piece in pieces for event in taken.feed(piece)] == events


@given(
    st.lists(st.lists(st.text("abc:, ", max_size=5), min_size=1, max_size=3), max_size=3),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_what_was_written_is_read(events: list[list[str]], line_end: str) -> None:
    text = "".join("".join(f"data: {line}{line_end}" for line in lines) + line_end for lines in events)
    written = ["\n".join(lines).encode() for lines in events]
    assert Events(1000).feed(text.encode()) == [event for event in written if event]


def test_an_event_is_bounded() -> None:
    assert Events(10).feed(b"data: 1234\n\n" * 3) == [b"1234"] * 3
    with pytest.raises(EventTooLargeError):
        Events(10).feed(b"data: 12345\n\n")
    with pytest.raises(EventTooLargeError):
        Events(10).feed(b"x" * 11)
    taken = Events(10)
    assert taken.feed(b"data: 1\n") == []
    with pytest.raises(EventTooLargeError):
        taken.feed(b"data: 2\n")
