"""Publications to ordered topics pass their gates, once each."""

from collections.abc import Sequence

from asyncpg import Connection

from redrive.engine.ports import Enqueued, OrderedPublication
from redrive.stores.postgres import arriving, deduplication, rows


async def publish(
    connection: Connection, calls: Sequence[Sequence[OrderedPublication]]
) -> list[list[Enqueued]]:
    """Let the publications of several calls through their gates; a repetition is answered with the original."""
    publications = [publication for call in calls for publication in call]
    new_deliveries = [
        new_delivery for publication in publications for new_delivery in publication.new_deliveries
    ]
    async with connection.transaction():
        await rows.lock_groups(connection, arriving.groups_of(new_deliveries))
        seqs = await rows.next_seqs(connection, len(publications))
        memories = [
            deduplication.Memory(
                publication.topic_id,
                publication.key,
                publication.message_id,
                seq,
                publication.now,
                publication.until,
            )
            for publication, seq in zip(publications, seqs, strict=True)
        ]
        answers = await deduplication.remember(connection, memories)
        passing = [
            new_delivery
            for publication, answer in zip(publications, answers, strict=True)
            if not answer.repeated
            for new_delivery in publication.opened(answer.seq)
        ]
        await arriving.add_locked(connection, passing)
    left = iter(answers)
    return [[next(left) for _ in call] for call in calls]
