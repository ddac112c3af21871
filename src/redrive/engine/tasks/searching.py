"""Searching: deliveries as a search looks at them."""

from collections.abc import Sequence
from dataclasses import replace

from redrive.engine.ports import QueueStore
from redrive.model.delivery import Delivery


async def add_attempts(store: QueueStore, deliveries: Sequence[Delivery]) -> list[Delivery]:
    """The deliveries with their attempts: one read finds those of dead letters that were pushed, in their notes.

    In its new queue a dead letter counts receives, as clients of SQS see them.
    """
    keys = {each.seq: (each.origin, each.message_id) for each in deliveries if each.origin is not None}
    notes = await store.notes_of_each(list(keys.values())) if keys else {}
    attempts = {seq: max(note.number for note in notes[key]) for seq, key in keys.items() if notes.get(key)}
    return [
        replace(each, attempts=attempts[each.seq]) if each.seq in attempts else each for each in deliveries
    ]
