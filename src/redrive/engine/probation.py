"""Which endpoints are on probation: remembered here, kept in the store, the same on every node.

A state is written when a rest begins and removed when a delivery is taken; failures in between are counted in memory
alone, so that an endpoint that fails costs the store two writes and not one for each failure. A node that dies forgets
at most a row of failures that had not led to a rest yet.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from redrive.engine.directory import Directory, Kind
from redrive.model.attempt import Attempt
from redrive.model.errors import Conflict, NotFound
from redrive.model.probation import Probation, ProbationPolicy, after_failure
from redrive.model.topic import Subscription

logger = logging.getLogger(__name__)

PROBATION: Kind[Probation] = Kind("probation", Probation.to_document, Probation.from_document)


class Probations:
    """The endpoints that rest, by their subscriptions' keys."""

    def __init__(self, directory: Directory) -> None:
        """Keep the states in this directory."""
        self._directory = directory
        self._states: dict[str, Probation] = {}
        self._failures: dict[str, int] = {}
        self._stale = True
        self._reading = asyncio.Lock()
        directory.on_forget(self._forget)

    def _forget(self, kind: str, _: str) -> None:
        if kind in ("", PROBATION.name):
            self._stale = True

    async def of(self, subscription: Subscription) -> Probation | None:
        """Where a subscription's endpoint stands; None: it is served as usual."""
        state = (await self.all()).get(subscription.key)
        return None if state is None or state.endpoint != subscription.endpoint else state

    async def all(self) -> Mapping[str, Probation]:
        """Every endpoint on probation, by its subscription's key."""
        if self._stale or self._reading.locked():
            async with self._reading:  # also for who comes meanwhile: what is known is not so any more
                await self._read()
        return self._states

    async def _read(self) -> None:
        if self._stale:
            self._stale = False
            try:
                self._states = dict(await self._directory.entries(PROBATION))
            except BaseException:
                self._stale = True
                raise

    async def note(
        self, subscription: Subscription, policy: ProbationPolicy | None, attempt: Attempt, now: int
    ) -> None:
        """An attempt ended: a delivery that was taken ends the probation, one that failed may begin or prolong it."""
        key = subscription.key
        if attempt.delivered or policy is None:
            self._failures.pop(key, None)
            if key in self._states:
                await self.lift(subscription)
            return
        before = await self.of(subscription)
        counted = 0 if before is None else before.failures  # by another node, or before this one was begun
        failures = self._failures[key] = max(self._failures.get(key, 0), counted) + 1
        after = after_failure(policy, before, failures, attempt, now)
        if after is not None and after != before:
            await self._write(key, replace(after, endpoint=subscription.endpoint))
            logger.warning(
                "endpoint.resting subscription=%s reason=%s status=%d failures=%d seconds=%d",
                key,
                after.reason,
                after.status,
                after.failures,
                (after.until - now) // 1000,
            )

    async def lift(self, subscription: Subscription) -> bool:
        """End a probation; whether there was one."""
        self._failures.pop(subscription.key, None)
        return await self.forget(subscription.key)

    async def forget(self, key: str) -> bool:
        """Remove the state of a subscription, which need not be there any more; whether there was one."""
        self._states.pop(key, None)
        try:
            return await self._directory.remove(PROBATION, key)
        finally:
            self._stale = True  # what was read meanwhile may be from before

    async def sweep(self, is_there: Callable[[str], Awaitable[bool]]) -> None:
        """Forget the endpoints of subscriptions that are gone: an attempt may end, and fail, after those are."""
        for key in {**self._failures, **await self.all()}:
            if not await is_there(key):
                self._failures.pop(key, None)
                if key in self._states:
                    await self.forget(key)

    async def _write(self, key: str, state: Probation) -> None:
        self._states[key] = state
        try:
            await self._directory.update(PROBATION, key, lambda current: _longer(current, state))
        except NotFound:
            with contextlib.suppress(Conflict):  # another node was faster, and says much the same
                await self._directory.create(PROBATION, key, state)
        finally:
            self._stale = True  # what was read meanwhile may be from before


def _longer(current: Probation, state: Probation) -> Probation:
    """What two nodes that found a failure at the same moment agree on."""
    outlasts = current.endpoint == state.endpoint and current.until > state.until
    return current if outlasts else state
