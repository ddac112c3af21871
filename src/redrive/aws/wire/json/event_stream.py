"""Event streams: answers that are a row of events, each its own message.

A message is its length, the length of its headers and the CRC of both, then headers and payload, then the CRC of all
(https://smithy.io/2.0/aws/amazon-eventstream.html).
"""

import struct
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Final

import orjson

from redrive.aws.wire.json.values import as_base64, writer
from redrive.aws.wire.shapes import Shape, Structure

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
Events = AsyncGenerator[tuple[str, Structure]]
_FRAME_BYTES: Final = 16  # three lengths and sums before, and one behind
_STRING: Final = 7  # the type of a header's value


async def encode_events(shape: Shape, events: Events, first: bytes = b"") -> AsyncIterator[bytes]:
    """Events as messages.

    Args:
        shape: The union of all events, by their names.
        events: Each with its name and its members; closed at the end, or when nobody reads on.
        first: A message that comes before them.
    """
    async with aclosing(events):
        if first:
            yield first
        async for name, event in events:
            yield message(shape.members[name].shape, name, event)


def initial_response(members: bytes) -> bytes:
    """The message that begins an answer of the RPC protocols: what the operation answers besides its events, as JSON."""
    return frame(
        {":event-type": "initial-response", ":content-type": "application/json", ":message-type": "event"},
        members,
    )


def message(shape: Shape, name: str, event: Structure) -> bytes:
    """One event as a message: its payload is its one binary member, or its members as JSON."""
    payload_name = next((member.name for member in shape.members.values() if member.is_event_payload), None)
    if payload_name is not None:
        content_type, payload = "application/octet-stream", event.get(payload_name, b"")
    else:
        write = writer(shape)
        content_type = "application/json"
        payload = orjson.dumps(event if write is None else write(event), default=as_base64)
    kind = "exception" if shape.is_exception else "event"
    return frame({f":{kind}-type": name, ":content-type": content_type, ":message-type": kind}, payload)


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A message of these headers and this payload."""
    header_bytes = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack("!II", _FRAME_BYTES + len(header_bytes) + len(payload), len(header_bytes))
    without_checksum = b"".join((lengths, struct.pack("!I", zlib.crc32(lengths)), header_bytes, payload))
    return without_checksum + struct.pack("!I", zlib.crc32(without_checksum))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return struct.pack(f"!B{len(name)}sBH", len(name), name.encode(), _STRING, len(text)) + text
