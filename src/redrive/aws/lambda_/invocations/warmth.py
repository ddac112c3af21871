"""Warmth: a node keeps the environments ready that provisioned concurrency asks for."""

import asyncio
import logging
from typing import Final

from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.lambda_.documents.names import arn_of
from redrive.aws.lambda_.documents.ports import Runner
from redrive.aws.lambda_.documents.records import ALIAS, PROVISIONED, VERSION, Provisioned
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.engine.engine import Engine
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.model.function import FunctionVersion

logger = logging.getLogger(__name__)

_KINDS: Final = frozenset({ALIAS.name, PROVISIONED.name, VERSION.name, ""})
_AGAIN_MS: Final = 10_000  # until a store that was away is asked again


class Warmth:
    """Keeps environments, by configurations that any node may change."""

    def __init__(self, engine: Engine, lookup: Lookup, executor: Executor, runner: Runner) -> None:
        # Where configurations are kept; changes of them and of what they name are heard of
        self._engine = engine
        self._lookup = lookup
        self._executor = executor
        self._runner = runner
        self._kept: dict[str, tuple[FunctionVersion, int]] = {}
        self._following: asyncio.Task[None] | None = None
        self._is_outdated = False
        documents = engine.resources.documents
        documents.on_write(lambda kind, _key, _value: self._changed(kind))
        documents.on_forget(lambda kind, _key: self._changed(kind))

    def start(self) -> None:
        """Keep what is asked for now, and from now on what will be."""
        self._is_outdated = True
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def _changed(self, kind: str) -> None:
        if kind not in _KINDS or self._following is None:
            return
        self._is_outdated = True
        if self._following.done():
            self._following = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        while self._is_outdated:
            self._is_outdated = False
            try:
                await self._keep()
            except StoreUnavailable as error:
                logger.warning("provisioned.unread error=%s", error)
                self._is_outdated = True
                await self._engine.clock.sleep_until(self._engine.clock.now() + _AGAIN_MS)

    async def _keep(self) -> None:
        entries = await self._engine.resources.documents.entries(PROVISIONED)
        targets: dict[str, tuple[FunctionVersion, int]] = {}
        for key, config in entries:
            function = await self._function(config)
            if function is not None:
                targets[key] = function, config.wanted
        for key, pool in self._kept.items():
            if key not in targets or targets[key][0].key != pool[0].key:
                self._runner.keep(pool[0], 0)
        for key, now in targets.items():
            if self._kept.get(key) != now:
                self._runner.keep(*now)
        self._kept = targets

    async def _function(self, config: Provisioned) -> FunctionVersion | None:
        """The version that is meant now, ready to run; None: it is gone, or its code cannot be had."""
        target = await self._lookup.at(arn_of(config.function, config.qualifier))
        if target is None:
            return None
        try:
            return await self._executor.runnable(target.configuration, target.function.reserved)
        except StoreUnavailable:
            raise
        except (RedriveError, ValueError) as error:
            logger.warning("provisioned.unusable function=%s error=%s", config.key, error)
            return None

    def readiness(self, config: Provisioned) -> tuple[int, str]:
        """The number of environments that this node has ready of those that are wanted, and why it has no more."""
        pool = self._kept.get(config.key)
        if pool is None:
            return 0, ""
        ready, failure = self._runner.readiness(pool[0])
        return min(ready, config.wanted), failure

    async def close(self) -> None:
        """Follow no more."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
