"""The output of a function: what becomes an event, and what a function that prints without end may cost."""

import asyncio
import os
import struct
import time

import pytest

from redrive.functions.output import INVOCATION_EVENTS_MAX, Output


class Sink:
    """Takes events; a server's takes some microseconds for each."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.output = Output(lambda: 0, lambda _, message: self.events.append(message))

    async def print(self, content: bytes, *, framed: bool = False) -> float:
        """Have a function print this; the processor time that it takes here (s)."""
        pipe = self.output.pipe(framed=framed)
        writing = asyncio.create_task(asyncio.to_thread(_write, pipe, content))
        began = time.process_time()
        await writing
        self.output.drain()
        return time.process_time() - began


def _write(pipe: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(pipe, left[:65_536]) :]
    os.close(pipe)


def _frame(message: bytes, microseconds: int = 0) -> bytes:
    return struct.pack(">IIQ", 0xA55A0003, len(message), microseconds) + message


async def test_lines_and_records_become_events() -> None:
    sink = Sink()
    await sink.print(b"one\ntwo\nth")
    await sink.print(_frame(b"a\nb") + _frame(b"") + _frame(b"c"), framed=True)
    sink.output.close()
    assert sink.events == ["one\n", "two\n", "a\nb", "", "c", "th\n"]
    assert sink.output.tail == b"one\ntwo\na\nbcth\n"


@pytest.mark.parametrize("framed", [False, True])
async def test_output_without_end_is_as_many_events_as_an_invocation_may_have(*, framed: bool) -> None:
    """Each empty line was an event, and each event copied the tail: a megabyte held the server up for 8.8 s."""
    first, further = Sink(), Sink()
    piece = _frame(b".") * 65_536 if framed else b"\n" * 2**20
    cost = await first.print(piece, framed=framed)
    assert len(first.events) == INVOCATION_EVENTS_MAX + 1
    left_out = (65_536 if framed else 2**20) - INVOCATION_EVENTS_MAX
    assert first.events[-1].startswith(f"[redrive] {left_out} bytes of output were left out")
    for _ in range(4):
        cost_of_more = await further.print(piece, framed=framed)
    assert cost_of_more < 3 * cost  # the fourth megabyte is counted, and not kept
    assert len(further.events) == INVOCATION_EVENTS_MAX + 4


async def test_the_tail_is_the_end_of_the_output() -> None:
    sink = Sink()
    lines = b"".join(b"line %d\n" % number for number in range(2000))
    await sink.print(lines)
    sink.output.close()
    assert sink.output.tail == lines[-4096:]
    sink.output.begin()
    assert sink.output.tail == b""
