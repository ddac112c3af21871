r"""Records as they wait: what came in one call is one delivery, each record in base64 on its own line.

So a call of 500 records is one row of the store and not 500: as durable, and claimed and settled as one.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import shake_256

from redrive.model.delivery import Delivery

_ID_BYTES = 111  # an id has 222 characters, as recorded


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """A record that waits to be delivered."""

    id: str  # Within its stream
    at: int  # When it came (ms)
    data: bytes  # Its content


def packed(records: Sequence[bytes]) -> str:
    """The records of a call as the body of a delivery."""
    return "\n".join([b64encode(record).decode() for record in records])


def unpacked(delivery: Delivery) -> list[WaitingRecord]:
    """The records of a delivery."""
    return [
        WaitingRecord(f"{delivery.seq:026d}{number:030d}", delivery.sent_at, b64decode(line))
        for number, line in enumerate(delivery.body.split("\n"))
    ]


def record_id(call: bytes, number: int) -> str:
    """The id that the caller gets of a record of a call."""
    return shake_256(call + number.to_bytes(2)).hexdigest(_ID_BYTES)
