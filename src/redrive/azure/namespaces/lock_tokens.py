"""Lock tokens: a claim as a text for the receiver; sealed, as SQS's receipt handles are."""

import struct
from typing import Final, NamedTuple

from redrive.access.secret import InstallationSecret, Sealer
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue

_LAYOUT: Final = struct.Struct(">QQQQI")


class LockToken(NamedTuple):
    """The fields of a lock token.

    Attributes:
        text: The token as the receiver has it.
        seq: The delivery's sequence number.
        token: The claim token.
        first_received_at: Time of the first receipt (ms): a lock can be renewed for an hour from then.
        deliveries: Number of receipts, this one included.
    """

    text: str
    seq: int
    token: int
    first_received_at: int
    deliveries: int


class LockTokens:
    """Writes and reads lock tokens."""

    def __init__(self, secret: InstallationSecret) -> None:
        self._sealer = Sealer(secret, "lock tokens")

    def write(self, delivery: Delivery) -> str:
        """The token of a delivery just claimed."""
        return self._sealer.seal(
            _LAYOUT.pack(
                delivery.queue_id,
                delivery.seq,
                delivery.token or 0,
                delivery.first_claimed_at or 0,
                delivery.attempts,
            )
        )

    def read(self, text: str, queue: Queue) -> LockToken | None:
        """Return the claim in a token; None: not a token of this queue."""
        packed = self._sealer.unseal(text)
        if packed is None:
            return None
        queue_id, seq, token, first_received_at, deliveries = _LAYOUT.unpack(packed)
        if queue_id != queue.id:
            return None
        return LockToken(text, seq, token, first_received_at, deliveries)
