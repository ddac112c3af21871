"""The archive of an ordered topic: what was published there, kept so that it can be sent again.

It is a queue like any other, under the topic's own number: a publication enters it in the transaction of its
deliveries, nobody claims from it, and the sweep removes what is older than the topic keeps.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from redrive.engine.ports import Clock, NewDelivery, QueueStore
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery, as_replayed
from redrive.model.queue import DAY_MS
from redrive.model.topic import Attribute, Publication, Topic, deduplication_id

# A batch cut short is recognised when it is repeated, however long nodes were down.
REPEATED_MS: Final = DAY_MS
SAMPLED: Final = 1_000
SAMPLED_AT_ONCE: Final = 100  # 25 MB of the largest bodies


class Archived(NamedTuple):
    """One publication in an archive."""

    seq: int  # Row number in the archive
    sequence: int  # Sequence number that subscribers were given
    at: int  # When it was published (ms)
    publication: Publication  # The publication itself


def archive_rows(topic: Topic, publication: Publication, now: int) -> Sequence[NewDelivery]:
    """The row that a publication leaves in its topic's archive, where it has one."""
    if not topic.archive_ms:
        return ()
    headers: dict[str, Any] = {
        "group": publication.group_id,
        "bytes": publication.bytes_published,
        "attributes": {name: list(attribute) for name, attribute in publication.attributes.items()},
        "envelope": json.loads(publication.envelope),
    }
    if publication.bodies:
        headers["bodies"] = publication.bodies
    if publication.raw_refusal is not None:
        refusal = publication.raw_refusal
        headers["raw_refusal"] = [refusal.result.value, refusal.reason, refusal.status, refusal.response]
    return (
        NewDelivery(
            queue_id=topic.id,
            message_id=publication.id,
            body=publication.body,
            headers=_json_bytes(headers),
            available_at=now,
            enqueued_at=now,
            deduplication_id=deduplication_id(topic, publication),
        ),
    )


def read(row: Delivery) -> Archived:
    """The publication that a row of an archive holds."""
    headers = json.loads(row.headers or b"{}")
    refusal = headers.get("raw_refusal")
    publication = Publication(
        id=row.message_id,
        body=row.body,
        bodies=headers.get("bodies", {}),
        attributes={name: Attribute(*parts) for name, parts in headers["attributes"].items()},
        envelope=_json_bytes(headers["envelope"]),
        bytes_published=headers["bytes"],
        group_id=headers["group"],
        deduplication_id=row.deduplication_id,
        raw_refusal=None if refusal is None else _refusal(*refusal),
    )
    return Archived(row.seq, headers["sequence"], row.enqueued_at, publication)


def _json_bytes(document: dict[str, Any]) -> bytes:
    """JSON without blanks, as the envelopes of facades are."""
    return json.dumps(document, separators=(",", ":")).encode()


def _refusal(result: str, reason: str, status: int, response: str) -> Attempt:
    return Attempt(AttemptResult(result), Reason(reason), status, response)


def mark(new_delivery: NewDelivery, archived: Archived, replay: str) -> None:
    """Make the arrival of a publication one that is replayed: marked, and entering once in the replay of that name.

    It is told the publication's place, as at first. Its key is none that a sender can give.
    """
    headers = new_delivery.headers or b"{}"
    new_delivery.headers = as_replayed(b'{"sequence":%d,%b' % (archived.sequence, headers[1:]))
    new_delivery.deduplication_key = f"\n{replay}\n{archived.seq}"
    new_delivery.deduplicate_until = new_delivery.enqueued_at + REPEATED_MS


def sequence_of(row: Delivery) -> int:
    """The publication's place that a delivery of an ordered topic was told."""
    sequence: int = json.loads(row.headers or b"{}")["sequence"]
    return sequence


async def size(store: QueueStore, clock: Clock, topic: Topic) -> tuple[int, int]:
    """The number and the bytes of the publications in a topic's archive.

    The bytes are those of every publication up to a thousand; of more, what a thousand of them, spread evenly over the
    archive, come to on average: to read a year of them each hour would be the store's main work.
    """
    number = sum(await store.count(topic.id, clock.now()))
    sampled_bytes: list[int] = []
    oldest, last_seq = await store.oldest(topic.id), await store.last_seq()
    first_seq = last_seq if oldest is None else oldest.seq
    after = first_seq - 1
    for page in range(SAMPLED // SAMPLED_AT_ONCE):
        if number > SAMPLED:  # else each page follows the one before it
            after = first_seq + round((last_seq - first_seq) * (page + 0.5) * SAMPLED_AT_ONCE / SAMPLED)
        rows = await store.peek(topic.id, SAMPLED_AT_ONCE, after)
        if not rows:
            break
        sampled_bytes += [json.loads(row.headers or b"{}")["bytes"] for row in rows]
        after = rows[-1].seq
    bytes_each = sum(sampled_bytes) / len(sampled_bytes) if sampled_bytes else 0
    return number, round(number * bytes_each)
