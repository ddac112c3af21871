"""Every offered operation of every service is asked in one world, bent or not: nothing fails.

In small, in one process and in memory; `python -m tests.fuzz` asks hundreds of thousands of servers of their own.
"""

import asyncio
import logging
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from redrive.app import Server, assembled
from redrive.model.http import Response
from redrive.settings import Settings
from tests.fuzz.asking import PROTOCOLS, Asking
from tests.fuzz.grid_requests import arm_routes

_REQUESTS = 3_000  # 3 s


def offered(server: Server) -> dict[str, list[str]]:
    """The operations of each service."""
    services: dict[str, Any] = server.core.services
    return {name: sorted(services[name].operations) for name in PROTOCOLS}


async def test_nothing_fails_whatever_is_asked_of_whichever_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)  # blobs go beside the store
    settings = Settings(store="sqlite://:memory:", functions="on", forbid_private_endpoints=True)
    failed = []
    async with assembled(settings, "http://127.0.0.1:4566") as server:
        await server.open()
        await server.parts.open_all()
        asking = Asking(7, offered(server), arm_routes())
        for _ in range(_REQUESTS):
            asked = asking.next()
            async with asyncio.timeout(20):
                answer = server.router.answer(asked.request)
                response: Response = await answer if isinstance(answer, Awaitable) else answer
            if asked.is_failed_by(response):
                failed.append((asked.kind, asked.operation, asked.request, response.body[:300]))
            asking.answered(asked, response)
    assert failed == []
    complaints = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert complaints == []
    assert {kind for kind in PROTOCOLS if not asking.carried_out[kind]} == set()
