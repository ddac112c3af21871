"""A message: what was published, before it is owed to anyone."""

import hashlib
from dataclasses import dataclass


@dataclass(slots=True)
class Message:
    """What a sender hands over.

    Attributes:
        id: 16 bytes, made by the runtime's id maker.
        body: The text.
        headers: What the accepting facade keeps beside the body, in its own encoding; opaque to the engine.
        group_id: The message group, None for none.
        deduplication_id: As the sender gave it.
        delay_ms: How long it waits before it may be claimed; None for the queue's own delay.
    """

    id: bytes
    body: str
    headers: bytes | None = None
    group_id: str | None = None
    deduplication_id: str | None = None
    delay_ms: int | None = None


def id_text(message_id: bytes) -> str:
    """A message id as UUIDs are written; `uuid.UUID` says the same eight times as slowly."""
    digits = message_id.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def content_deduplication_id(body: str) -> str:
    """The id a body stands for: SHA-256 of the body alone, never of its attributes (SQS FIFO document)."""
    return hashlib.sha256(body.encode()).hexdigest()
