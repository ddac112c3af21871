"""A function's output: lines of its standard streams and framed records of its runtime client, as log events.

A runtime client that is given `_LAMBDA_TELEMETRY_LOG_FD` writes records there, each behind a frame of 16 bytes: type,
length, microseconds since the epoch, all big-endian. So a record of several lines stays one event.
"""

import asyncio
import os
import select
import struct
from collections.abc import Callable
from typing import Final

EVENT_BYTES_MAX: Final = 256 * 1024  # of one log event; CloudWatch Logs refuses larger ones
TAIL_BYTES: Final = 4 * 1024  # of what `X-Amz-Log-Result` shows
# A function that prints without end must not fill the store: a megabyte for an invocation, and its beginning counts.
INVOCATION_BYTES_MAX: Final = 1024 * 1024
INVOCATION_EVENTS_MAX: Final = (
    10_000  # each takes 5 us, so that a megabyte of line breaks would take five seconds
)
_READ_BYTES: Final = 64 * 1024
_PIPE_BYTES_MAX: Final = 1024 * 1024  # Linux: as large as whoever writes may make a pipe
_FRAME: Final = struct.Struct(">IIQ")
_FRAME_KIND: Final = 0xA55A0000  # of a frame's type, by the mask below
_FRAME_MASK: Final = 0xFFFF0000

Write = Callable[[int, str], None]


class Output:
    """The output of one environment, on its way to a log stream."""

    def __init__(self, now: Callable[[], int], write: Write) -> None:
        """Write events with `write(at, message)`, where `at` is by the clock `now` (ms)."""
        self._now = now
        self._write = write
        self._readers: dict[int, _FrameReader] = {}  # By descriptor
        self._readable = select.poll()
        self._bytes = self._events = self._left_out = 0
        self._tail = bytearray()

    @property
    def tail(self) -> bytes:
        """The last 4 KB of the invocation under way."""
        return bytes(self._tail[-TAIL_BYTES:])

    def pipe(self, *, framed: bool = False) -> int:
        """Make a pipe that is read here; return the end that the process writes to, which the caller closes."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._readers[reading] = _FrameReader(reading, self._framed if framed else self._lines)
        self._readable.register(reading, select.POLLIN)
        return writing

    def begin(self) -> None:
        """A new invocation begins: its tail is empty and its budget whole."""
        self._bytes = self._events = self._left_out = 0
        self._tail.clear()

    def drain(self) -> None:
        """Take what the process has written up to now, so that it stands before the invocation's last lines.

        Most often that is nothing: to ask takes 2 us, and to read both pipes in vain 12.
        """
        for descriptor, _ in self._readable.poll(0):
            self._readers[descriptor].drain()
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            self.event(
                f"[redrive] {left_out} bytes of output were left out: more than {INVOCATION_BYTES_MAX} bytes"
                f" or {INVOCATION_EVENTS_MAX} lines\n"
            )

    def close(self) -> None:
        """Take what is left, and close the pipes."""
        self.drain()
        for descriptor, reader in self._readers.items():
            self._readable.unregister(descriptor)
            reader.close()
        self._readers.clear()

    def event(self, message: str, at: int | None = None) -> None:
        """Write one event of the platform's own."""
        self._tail += message.encode()
        if len(self._tail) > 2 * TAIL_BYTES:  # cut seldom: a cut copies what stays
            del self._tail[:-TAIL_BYTES]
        self._write(self._now() if at is None else at, message)

    def _take(self, message: bytes, at: int | None = None) -> None:
        """Write an event, unless the invocation has had all that it may write."""
        self._bytes += len(message)
        self._events += 1
        if self._is_spent():
            self._left_out += len(message)
            return
        self.event(message.decode(errors="replace"), at)

    def _is_spent(self) -> bool:
        return self._bytes > INVOCATION_BYTES_MAX or self._events > INVOCATION_EVENTS_MAX

    def _lines(self, waiting: bytes) -> bytes:
        """Take whole lines, and pieces of one that does not end; return the rest."""
        if self._is_spent():  # a gigabyte is counted, and not cut into lines
            self._left_out += len(waiting)
            return b""
        *lines, rest = waiting.split(b"\n", INVOCATION_EVENTS_MAX - self._events + 1)
        for line in lines:
            self._take(line + b"\n")
        if self._is_spent():
            self._left_out += len(rest)
            return b""
        if len(rest) >= EVENT_BYTES_MAX:
            self._take(rest)
            return b""
        return rest

    def _framed(self, waiting: bytes) -> bytes:
        """Take whole frames and return the rest; what is not a frame is taken as lines."""
        at = 0
        while len(waiting) - at >= _FRAME.size:
            kind, length, microseconds = _FRAME.unpack_from(waiting, at)
            if kind & _FRAME_MASK != _FRAME_KIND:
                return self._lines(waiting[at:])
            begin, end = at + _FRAME.size, at + _FRAME.size + length
            if length <= EVENT_BYTES_MAX and len(waiting) < end:
                break
            self._take(waiting[begin:end], microseconds // 1000)
            at = end
        return waiting[at:]


class _FrameReader:
    """The reading end of a pipe."""

    def __init__(self, descriptor: int, take: Callable[[bytes], bytes]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._waiting = b""
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def drain(self) -> None:
        """Take what was in the pipe; a process that goes on writing does not keep the server from everything else."""
        for _ in range(_PIPE_BYTES_MAX // _READ_BYTES + 1):
            if not self._read():
                return

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        if self._waiting:
            self._take(self._waiting + b"\n")

    def _read(self) -> bool:
        """Read a piece of what is there; True if there may be more."""
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:  # every writer is gone
            asyncio.get_running_loop().remove_reader(self._descriptor)
            return False
        self._waiting = self._take(self._waiting + data)
        return True
