"""Event streams: answers that are a row of events, each a message of its own.

A message is its length, the length of its headers and the CRC of both, then headers and payload, then the CRC of all
(https://smithy.io/2.0/aws/amazon-eventstream.html).
"""

import struct
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

import orjson

from redrive.protocols.aws.wire.json_output import as_base64, writer
from redrive.protocols.aws.wire.shapes import Shape, Structure

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
Events = AsyncIterator[tuple[str, Structure]]
_BESIDES: Final = 16  # three lengths and sums before, and one behind
_STRING: Final = 7  # the type of a header's value


async def encoded(shape: Shape, events: Events) -> AsyncIterator[bytes]:
    """Events as messages.

    Args:
        shape: The union of all events, by their names.
        events: Each with its name and its members.
    """
    async for name, event in events:
        yield message(shape.members[name].shape, name, event)


def message(shape: Shape, name: str, event: Structure) -> bytes:
    """One event as a message: its payload is its one binary member, or its members as JSON."""
    raw = next((member.name for member in shape.members.values() if member.is_event_payload), None)
    if raw is not None:
        content_type, payload = "application/octet-stream", event.get(raw, b"")
    else:
        write = writer(shape)
        content_type = "application/json"
        payload = orjson.dumps(event if write is None else write(event), default=as_base64)
    headers = {":event-type": name, ":content-type": content_type, ":message-type": "event"}
    return framed(headers, payload)


def framed(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A message of these headers and this payload."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack("!II", _BESIDES + len(head) + len(payload), len(head))
    unsummed = b"".join((lengths, struct.pack("!I", zlib.crc32(lengths)), head, payload))
    return unsummed + struct.pack("!I", zlib.crc32(unsummed))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return struct.pack(f"!B{len(name)}sBH", len(name), name.encode(), _STRING, len(text)) + text
