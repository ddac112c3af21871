"""Publications to ordered topics pass their gates, once each."""

from collections.abc import Sequence

from asyncpg import Connection

from redrive.engine.ports import Enqueued, Gate
from redrive.stores.postgres import arriving, deduplication, rows


async def publish(connection: Connection, calls: Sequence[Sequence[Gate]]) -> list[list[Enqueued]]:
    """Let the publications of several calls through their gates; a repetition is answered with the original."""
    gates = [gate for call in calls for gate in call]
    arrivals = [arrival for gate in gates for arrival in gate.arrivals]
    async with connection.transaction():
        await rows.lock_groups(connection, arriving.groups_of(arrivals))
        seqs = await rows.next_seqs(connection, len(gates))
        memories = [
            deduplication.Memory(gate.topic_id, gate.key, gate.message_id, seq, gate.now, gate.until)
            for gate, seq in zip(gates, seqs, strict=True)
        ]
        answers = await deduplication.remember(connection, memories)
        passing = [
            arrival
            for gate, answer in zip(gates, answers, strict=True)
            if not answer.repeated
            for arrival in gate.opened(answer.seq)
        ]
        await arriving.add_locked(connection, passing)
    left = iter(answers)
    return [[next(left) for _ in call] for call in calls]
