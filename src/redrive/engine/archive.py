"""The archive of an ordered topic: what was published there, kept so that it can be sent again.

It is a queue like any other, under the topic's own number: a publication enters it in the transaction of its
deliveries, nobody claims from it, and the sweep removes what is older than the topic keeps.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from redrive.engine.ports import Arrival
from redrive.engine.routing import deduplication_id
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Outcome
from redrive.model.filtering import Attribute
from redrive.model.message import Publication
from redrive.model.queue import DAY_MS
from redrive.model.topic import Topic

REPEATED_MS: Final = (
    DAY_MS  # a batch cut short is recognised when it is repeated, however long nodes were down
)
_REPLAYED: Final = b'{"replayed":true,'


class Archived(NamedTuple):
    """One publication out of an archive.

    Attributes:
        seq: Its row's place in the archive.
        sequence: Its own place among all that was published, which its subscribers were told.
        at: When it was published (ms).
        publication: What was published.
    """

    seq: int
    sequence: int
    at: int
    publication: Publication


def archived(topic: Topic, publication: Publication, now: int) -> Sequence[Arrival]:
    """What a publication leaves in its topic's archive, where it has one."""
    if not topic.archive_ms:
        return ()
    headers: dict[str, Any] = {
        "group": publication.group_id,
        "bytes": publication.bytes_published,
        "attributes": {name: list(one) for name, one in publication.attributes.items()},
        "envelope": json.loads(publication.envelope),
    }
    if publication.bodies:
        headers["bodies"] = publication.bodies
    if publication.raw_refusal is not None:
        refusal = publication.raw_refusal
        headers["raw_refusal"] = [refusal.outcome.value, refusal.reason, refusal.status, refusal.response]
    return (
        Arrival(
            queue_id=topic.id,
            message_id=publication.id,
            body=publication.body,
            headers=_written(headers),
            available_at=now,
            enqueued_at=now,
            deduplication_id=deduplication_id(topic, publication),
        ),
    )


def read(row: Delivery) -> Archived:
    """A row of an archive."""
    kept = json.loads(row.headers or b"{}")
    refusal = kept.get("raw_refusal")
    publication = Publication(
        id=row.message_id,
        body=row.body,
        bodies=kept.get("bodies", {}),
        attributes={name: Attribute(*one) for name, one in kept["attributes"].items()},
        envelope=_written(kept["envelope"]),
        bytes_published=kept["bytes"],
        group_id=kept["group"],
        deduplication_id=row.deduplication_id,
        raw_refusal=None if refusal is None else _refusal(*refusal),
    )
    return Archived(row.seq, kept["sequence"], row.enqueued_at, publication)


def _written(document: dict[str, Any]) -> bytes:
    """Without blanks, as the envelopes of facades are."""
    return json.dumps(document, separators=(",", ":")).encode()


def _refusal(outcome: str, reason: str, status: int, response: str) -> Attempt:
    return Attempt(Outcome(outcome), Reason(reason), status, response, 0)


def mark(arrival: Arrival, one: Archived, replay: str) -> None:
    """Make the arrival of a publication one that is replayed: marked, and entering once in the replay of that name.

    It is told the publication's place, as at first. Its key is none that a sender can give.
    """
    arrival.headers = b'%b"sequence":%d,%b' % (_REPLAYED, one.sequence, (arrival.headers or b"{}")[1:])
    arrival.deduplication_key = f"\n{replay}\n{one.seq}"
    arrival.deduplicate_until = arrival.enqueued_at + REPEATED_MS


def is_replayed(headers: bytes) -> bool:
    """Whether these are the headers of a replayed delivery."""
    return headers.startswith(_REPLAYED)


def sequence_of(row: Delivery) -> int:
    """The publication's place that a delivery of an ordered topic was told."""
    sequence: int = json.loads(row.headers or b"{}")["sequence"]
    return sequence
