"""Lock tokens: a claim, as a text that the receiver gives back."""

import struct
from base64 import b64decode, urlsafe_b64encode
from typing import Final, NamedTuple

from redrive.model.delivery import Delivery
from redrive.model.queue import Queue

_LAYOUT: Final = struct.Struct(">BQQQQI")
_VERSION: Final = 1


class LockToken(NamedTuple):
    """The fields of a lock token.

    Attributes:
        text: As the receiver has it.
        seq: Which delivery.
        token: Under which claim.
        first_received_at: When the event was received for the first time (ms): a lock is renewed for an hour.
        deliveries: How often it was received, this time included.
    """

    text: str
    seq: int
    token: int
    first_received_at: int
    deliveries: int


def write(delivery: Delivery) -> str:
    """The token of a delivery just claimed."""
    packed = _LAYOUT.pack(
        _VERSION,
        delivery.queue_id,
        delivery.seq,
        delivery.token or 0,
        delivery.first_claimed_at or 0,
        delivery.attempts,
    )
    return urlsafe_b64encode(packed).decode()


def read(text: str, queue: Queue) -> LockToken | None:
    """The fields of a token; None: malformed, or another subscription's."""
    try:
        version, queue_id, seq, token, first_received_at, deliveries = _LAYOUT.unpack(
            b64decode(text, b"-_", validate=True)
        )
    except (ValueError, struct.error):
        return None
    if version != _VERSION or queue_id != queue.id or max(seq, token, first_received_at) >= 1 << 63:
        return None
    return LockToken(text, seq, token, first_received_at, deliveries)
