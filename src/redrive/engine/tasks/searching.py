"""Searching: deliveries as a search looks at them."""

from collections.abc import Sequence
from dataclasses import replace

from redrive.engine.ports import QueueStore
from redrive.model.delivery import Delivery


async def add_attempts(store: QueueStore, deliveries: Sequence[Delivery]) -> list[Delivery]:
    """The deliveries; dead letters that were pushed come with the number of their pushes, from the notes (one read).

    `attempts` as stored counts how often a dead letter was received since, as clients of SQS see it.
    """
    keys = {each.seq: (each.origin, each.message_id) for each in deliveries if each.origin is not None}
    notes = await store.notes_of_each(list(keys.values())) if keys else {}
    attempts = {seq: max(note.number for note in notes[key]) for seq, key in keys.items() if notes.get(key)}
    return [
        replace(each, attempts=attempts[each.seq]) if each.seq in attempts else each for each in deliveries
    ]
