"""All extensions of a server: their common life, whether they are made at the start or when they are first asked for."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from redrive.composition.core import Core
from redrive.composition.deferred import Deferred
from redrive.composition.extension import Extension, LivesByTheClock
from redrive.model.errors import StoreUnavailable

logger = logging.getLogger(__name__)

_AGAIN_MS: Final = 1_000  # after which a store that was away is asked again


class Extensions:
    """The extensions of a server.

    Attributes:
        extensions: Those that were made, and what stands for the others.
        deferred: Those that can wait.
        by_the_clock: What the passing of simulated time sets off by itself; grows when an extension is made.
    """

    def __init__(self, core: Core, extensions: Sequence[Extension], deferred: Sequence[Deferred]) -> None:
        """Offer their services, and tell the engine of them.

        Args:
            core: What they are built on; its engine is not open yet.
            extensions: Those that are made.
            deferred: The others.
        """
        self._core = core
        self.deferred = deferred
        self._started = self._stopped = False
        self._is_outdated = False  # a document was written since `wake` began
        self._waking: asyncio.Task[None] | None = None
        self.extensions = [*extensions, *(each.stand_in for each in deferred)]
        self.by_the_clock: list[LivesByTheClock] = []
        for each in deferred:
            each.on_opened = self._add
        for extension in self.extensions:
            extension.register(core.engine)
            self._offer(extension)
        core.engine.resources.documents.on_forget(self._heard)

    def _offer(self, extension: Extension) -> None:
        self._core.services.update(extension.interface.services)
        self.by_the_clock += extension.lifecycle.lives_by_the_clock

    async def _add(self, extension: Extension) -> None:
        """Take an extension up that was made just now, and begin its work where the others' has begun."""
        for listener, names in extension.delivery.listeners:
            self._core.engine.watch(listener, *names)
        self.extensions.append(extension)
        self._offer(extension)
        if self._started and not self._stopped:
            for begin in extension.lifecycle.start:
                begin()

    # ---- those that work by themselves -----------------------------------------------------------------------------

    async def wake(self) -> None:
        """Make those whose work goes on by itself because of what the store holds."""
        for each in self.deferred:
            if not each.is_open and await self._has_work(each):
                await each.open()

    async def _has_work(self, deferred: Deferred) -> bool:
        documents = self._core.engine.resources.documents
        for kind in deferred.wakes:
            if await documents.find(kind, "", limit=1):
                return True
        return False

    def _heard(self, kind: str, _key: str) -> None:
        """Another node wrote a document: it may be the first that means work."""
        kinds = {wake.name for each in self.deferred if not each.is_open for wake in each.wakes}
        if kind in kinds or (not kind and kinds):
            self._is_outdated = True
            if self._waking is None or self._waking.done():
                self._waking = asyncio.get_running_loop().create_task(self._wake_again(), name="redrive-wake")

    async def _wake_again(self) -> None:
        """Look for work until nothing was written meanwhile: `wake` asks for one kind of documents after another."""
        while self._is_outdated:
            self._is_outdated = False
            try:
                await self.wake()
            except StoreUnavailable as error:
                logger.warning("services.unopened error=%s", error)
                self._is_outdated = True
                clock = self._core.runtime.clock
                await clock.sleep_until(clock.now() + _AGAIN_MS)
            except Exception:  # a fault of ours: the next news, or the next request, tries again
                logger.exception("services.unopened: work of other nodes is not resumed here yet")

    async def open_all(self) -> None:
        """Make all that are left."""
        for each in self.deferred:
            await each.open()

    # ---- their life ------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Do to the store what is done before anything is taken up; then make those that have work to take up."""
        for extension in list(self.extensions):
            for prepare in extension.lifecycle.prepare:
                await prepare()
        await self.wake()

    def start(self) -> None:
        """Begin what goes on by itself."""
        self._started = True
        for extension in self.extensions:
            for begin in extension.lifecycle.start:
                begin()

    def end_streams(self) -> None:
        """End answers that go on and on."""
        for extension in self.extensions:
            for end in extension.lifecycle.end_streams:
                end()

    async def stop(self) -> None:
        """End what calls the engine by itself."""
        self._stopped = True
        if self._waking is not None:
            self._waking.cancel()
        for extension in list(self.extensions):
            for stop in extension.lifecycle.stop:
                await stop()

    async def close(self) -> None:
        """Let go of the rest."""
        for extension in list(self.extensions):
            for endpoint in extension.delivery.endpoints.values():
                await endpoint.close()
            for close in extension.lifecycle.close:
                await close()
