"""Documents that a killed server has left in its store: the engine's, and those of its facades."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from redrive.aws.sns.devices.platform import APPLICATION, DEVICE, OF_TOKEN, TOKEN, token_key
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.documents import NAMESPACE
from redrive.engine.ports import DocumentKind, Resource, Store
from redrive.runtime.machine import SystemClock
from redrive.stores.postgres.store import PostgresStore
from redrive.stores.sqlite.store import SqliteStore
from tests.simulation.documents import Configuration, read_configuration

_FACADES: Final[Sequence[DocumentKind[Any]]] = (APPLICATION, DEVICE, OF_TOKEN, NAMESPACE)


async def read_stored(url: str) -> "Stored":
    """Read a store that no server has open."""
    path = url.removeprefix("sqlite:///")
    store: Store = SqliteStore(Path(path)) if path != url else PostgresStore(url, SystemClock(), "reader")
    await store.open()
    try:
        configuration = await read_configuration(store.find)
        beside = {kind.name: await store.find(kind.name, "") for kind in _FACADES}
        return Stored(configuration.found | beside)
    finally:
        await store.close()


class Stored(Configuration):
    """The stored configuration, facades' own documents included."""

    def __init__(self, found: dict[str, Sequence[Resource]]) -> None:
        super().__init__(found)
        self._dead_letters = {
            key for key, queue in self.queues.items() if queue.name.name.startswith(f"{names.DEAD_LETTERS}:")
        }

    @override
    def half_written(self) -> list[str]:
        return [*super().half_written(), *self._event_subscriptions(), *self._devices()]

    def _event_subscriptions(self) -> Iterator[str]:
        wanted = set()
        for key, one in self.subscriptions.items():
            if names.is_dead_letter_store(one.id):
                beside = f"{one.topic.key}/{names.of_dead_letter_store(one.id)}"
                if beside not in self.subscriptions:
                    yield f"container {key} without the event subscription {beside}"
            elif one.dead_letter is not None:
                wanted.add(one.dead_letter.key)
                if f"{one.topic.key}/{names.dead_letter_store(one.id)}" not in self.subscriptions:
                    yield f"event subscription {key} without its container"
        if wanted != self._dead_letters:
            yield f"dead-letter queues {self._dead_letters} for {wanted}"
        for key in self.topics:
            within_domain = key.rpartition("/")[2].count(":") > 1 and "/domains:" in key
            if within_domain and not any(one.startswith(f"{key}/") for one in self.subscriptions):
                yield f"domain topic {key} without an event subscription"

    def _devices(self) -> Iterator[str]:
        applications, tokens = self.all_of(APPLICATION), self.all_of(OF_TOKEN)
        devices = self.all_of(DEVICE)
        for key, device in devices.items():
            if device.application.key not in applications:
                yield f"device {key} without its application"
            if tokens.get(token_key(device.application, device.attributes[TOKEN])) != device.id:
                yield f"device {key} is not found by its token"
        if len(tokens) != len(devices):
            yield f"{len(tokens)} tokens of {len(devices)} devices"
