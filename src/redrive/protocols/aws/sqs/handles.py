"""Receipt handles: a claim, as a string the receiver gives back.

They are sealed: the numbers in them would tell every tenant how much all others send.
"""

import struct
from typing import Final, NamedTuple

from redrive.access.secret import InstallationSecret, Sealer
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.protocols.aws.sqs.errors import error
from redrive.protocols.aws.wire.errors import AwsError

_LAYOUT: Final = struct.Struct(">QQQQ")


class Handle(NamedTuple):
    """The claim that a receipt handle stands for.

    Attributes:
        seq: Number of the delivery in its queue.
        token: Of the claim.
        claimed_at: When the claim began (ms): it may be extended to twelve hours from here.
    """

    seq: int
    token: int
    claimed_at: int


class Handles:
    """Writes and reads receipt handles."""

    def __init__(self, secret: InstallationSecret) -> None:
        """Seal them with this secret."""
        self._sealer = Sealer(secret, "receipt handles")

    def write(self, delivery: Delivery, claimed_at: int) -> str:
        """The handle of a delivery just claimed."""
        return self._sealer.seal(
            _LAYOUT.pack(delivery.queue_id, delivery.seq, delivery.token or 0, claimed_at)
        )

    def read(self, text: str, queue: Queue) -> Handle:
        """Reads a receipt handle.

        Raises:
            AwsError: The text is not a receipt handle of this queue.
        """
        packed = self._sealer.unseal(text)
        if packed is None:
            raise _invalid(text)
        queue_id, seq, token, claimed_at = _LAYOUT.unpack(packed)
        if queue_id != queue.id:
            raise _invalid(text)
        return Handle(seq, token, claimed_at)


def _invalid(text: str) -> AwsError:
    return error(
        "ReceiptHandleIsInvalid", f'The input receipt handle "{text}" is not a valid receipt handle.'
    )
