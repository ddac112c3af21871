"""Every part is in its place before anybody is answered, and what was opened is closed whatever fails."""

import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from redrive.app import assembled
from redrive.engine.ports import DocumentKind
from redrive.model.names import ResourceName
from redrive.model.topic import Topic
from redrive.settings import Settings, SettingsInvalid
from redrive.stores.sqlite.store import SqliteStore

URL = "http://127.0.0.1:4566"
_WITH_KINDS = ("redrive.aws.", "redrive.azure.", "redrive.functions.", "redrive.console.views")


def kinds_of_documents() -> dict[str, DocumentKind[Any]]:
    """All that facades keep, wherever in their packages they say so."""
    modules = [module for name, module in sys.modules.items() if name.startswith(_WITH_KINDS)]
    values = [value for module in modules for value in vars(module).values()]
    return {value.name: value for value in values if isinstance(value, DocumentKind)}


async def test_a_reset_forgets_every_kind_of_document() -> None:
    async with assembled(Settings(store="sqlite://:memory:", functions="on"), URL) as server:
        await server.parts.open_all()
        forgotten = {kind.name for extension in server.extensions for kind in extension.interface.kinds}
    assert kinds_of_documents().keys() == forgotten


async def test_no_two_extensions_bring_the_same() -> None:
    async with assembled(Settings(store="sqlite://:memory:", functions="on"), URL) as server:
        for member in (
            "interface.services",
            "interface.paths",
            "delivery.profiles",
            "delivery.endpoints",
            "delivery.presenters",
        ):
            names = [name for extension in server.extensions for name in attrgetter(member)(extension)]
            assert len(names) == len(set(names)), member


async def test_nothing_can_be_added_once_the_engine_is_open() -> None:
    async with assembled(Settings(store="sqlite://:memory:"), URL) as server:
        await server.open()
        with pytest.raises(RuntimeError, match="the engine is open"):
            server.extensions[0].register(server.core.engine)


async def test_links_lead_to_the_public_url_or_to_where_the_server_listens() -> None:
    async with assembled(Settings(store="sqlite://:memory:"), URL) as server:
        assert server.core.base_url == URL
    public = Settings(store="sqlite://:memory:", public_url="https://queues.example/")
    async with assembled(public, URL) as server:
        assert server.core.base_url == "https://queues.example"


async def test_a_store_is_let_go_of_where_a_part_cannot_be_made(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/redrive.db"
    with pytest.raises(SettingsInvalid, match="cannot read endpoint_ca_file"):
        async with assembled(Settings(store=store, endpoint_ca_file=str(tmp_path / "absent.pem")), URL):
            raise AssertionError("it was made")
    again = SqliteStore(tmp_path / "redrive.db", alone=True)
    await again.open()
    await again.close()


async def test_topics_that_came_and_went_leave_no_counters() -> None:
    async with assembled(Settings(store="sqlite://:memory:"), URL) as server:
        await server.open()
        topics, telemetry = server.core.engine.resources.topics, server.core.telemetry
        for life in range(50):
            name = ResourceName("111111111111", "us-east-1", f"life-{life}")
            topic = await topics.create(Topic(0, name, "sns"))
            telemetry.metrics.published(topic, 1, 1, 10, server.core.runtime.clock.now())
            if life % 2:
                telemetry.metrics.take()  # as a flush does
            await topics.delete(topic)
        telemetry.metrics.take()
        assert list(telemetry.metrics.totals) == []
