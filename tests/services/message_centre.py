"""A message centre that answers in a thread beside, for tests of whole servers."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

from tests.services import smsc
from tests.services.smsc import Smsc, message_centre

T = TypeVar("T")


class MessageCentre:
    """A centre that can go away and come back under its port."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open = contextlib.AsyncExitStack()
        self.centre = Smsc()
        self.start()

    @property
    def url(self) -> str:
        return f"smpp://{smsc.USER}:{quote(smsc.PASSWORD, safe='')}@127.0.0.1:{self.centre.port}"

    def start(self) -> None:
        self.centre = self.run(self._open.enter_async_context(message_centre(port=self.centre.port)))

    def stop(self) -> None:
        self.run(self._open.aclose())

    def bound(self) -> None:
        """Wait until somebody is."""
        self.run(asyncio.wait_for(self.centre.bound.wait(), 40))

    def tell(self, source: str, text: str) -> int:
        """A telephone writes; the status of the answer."""
        return self.run(self.centre.tell(source, text.encode(), source_addr_ton=1))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextlib.contextmanager
def answering_centre() -> Iterator[MessageCentre]:
    """A centre as long as the block."""
    centre = MessageCentre()
    try:
        yield centre
    finally:
        centre.close()
