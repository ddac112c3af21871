"""Receipt handles: a claim, as a string the receiver gives back."""

import struct
from base64 import b64decode, urlsafe_b64encode
from typing import NamedTuple

from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.protocols.aws.sqs.errors import error
from redrive.protocols.aws.wire.errors import AwsError

_LAYOUT = struct.Struct(">BQQQQ")
_VERSION = 1


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


def write(delivery: Delivery, claimed_at: int) -> str:
    """The handle of a delivery just claimed."""
    packed = _LAYOUT.pack(_VERSION, delivery.queue_id, delivery.seq, delivery.token or 0, claimed_at)
    return urlsafe_b64encode(packed).decode()


def read(text: str, queue: Queue) -> Handle:
    """Reads a receipt handle.

    Raises:
        AwsError: The text is not a receipt handle of this queue.
    """
    try:
        version, queue_id, seq, token, claimed_at = _LAYOUT.unpack(b64decode(text, b"-_", validate=True))
    except (ValueError, struct.error):
        raise _invalid(text) from None
    if version != _VERSION or queue_id != queue.id or max(seq, token, claimed_at) >= 1 << 63:
        raise _invalid(text)
    return Handle(seq, token, claimed_at)


def _invalid(text: str) -> AwsError:
    return error(
        "ReceiptHandleIsInvalid", f'The input receipt handle "{text}" is not a valid receipt handle.'
    )
