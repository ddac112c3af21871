"""People who look at pages of the console: each asks again at its page's own pace, with the tag of what it has."""

import asyncio
import random
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final
from urllib.parse import urlsplit

import uvloop

from benchmarks.background import in_background

EACH: Final = 10  # people at each page
_NOT_MODIFIED: Final = 304
_OK: Final = 200


class People:
    """Ten people at each of some pages.

    Attributes:
        number: How many they are.
        answers: What they were answered, all together.
        unchanged: How many of these were 304.
    """

    def __init__(self, url: str, pages: Mapping[str, float], rng: random.Random) -> None:
        """Look at these paths of a server, each asked for anew after so many seconds."""
        address = urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 80
        self._pages = pages
        self._rng = rng
        self.number = len(pages) * EACH
        self.answers = 0
        self.unchanged = 0

    def looking(self) -> AbstractContextManager[None]:
        """Look for the time of a block, in a thread beside it."""
        return in_background(lambda ended: uvloop.run(self._look(ended)))

    async def _look(self, ended: threading.Event) -> None:
        people = [
            asyncio.create_task(self._one(path, seconds))
            for path, seconds in self._pages.items()
            for _ in range(EACH)
        ]
        await asyncio.to_thread(ended.wait)
        for person in people:
            person.cancel()
        for failed in await asyncio.gather(*people, return_exceptions=True):
            if isinstance(failed, Exception):
                raise failed

    async def _one(self, path: str, seconds: float) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        tag = "none"
        await asyncio.sleep(self._rng.uniform(0, seconds))  # they did not come at once
        while True:
            writer.write(
                f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAccept: text/html\r\n"
                f"X-Redrive-Part: live\r\nIf-None-Match: {tag}\r\n\r\n".encode()
            )
            status, tag = await self._answer(reader)
            assert status in (_OK, _NOT_MODIFIED), (path, status)
            self.answers += 1
            self.unchanged += status == _NOT_MODIFIED
            await asyncio.sleep(seconds)

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, str]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        named = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        await reader.readexactly(int(named.get("content-length", "0")))
        return int(head[0].split(" ")[1]), named.get("etag", "none")
