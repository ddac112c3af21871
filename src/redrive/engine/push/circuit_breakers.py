"""Circuit breakers: kept in the store, remembered here, the same on every node.

A breaker opens when its endpoint fails: a document is written. It is half open when its time is over: one node
probes with one delivery. It closes when a delivery is taken: the document is removed. Failures in between are counted in
memory alone, so that a failing endpoint costs the store two writes and not one for each failure. A node that dies
forgets at most a row of failures that had not opened one yet.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from redrive.engine.configuration.directory import Directory, DocumentKind
from redrive.model.attempt import Attempt, Reason
from redrive.model.circuit import CircuitPolicy, OpenCircuit, after_failure
from redrive.model.errors import Conflict, NotFound
from redrive.model.topic import Subscription

logger = logging.getLogger(__name__)

ONE_BY_ONE_MAX = 100  # states read so when all are asked for; of more that changed, all are read together

CIRCUIT = DocumentKind.of("probation", OpenCircuit)  # as stores have it


@dataclass(frozen=True, slots=True)
class Failing:
    """The consecutive failures of an endpoint that this node has seen."""

    failures: int  # Number of consecutive failures
    reason: Reason  # Reason of the last failure
    status: int  # Its status code, or 0
    since: int = 0  # When the first of them ended (ms); 0: not known


class CircuitBreakers:
    """The circuit breakers that are open or half open, by their subscriptions' keys."""

    def __init__(self, directory: Directory, node: str) -> None:
        self._directory = directory
        self._node = node
        self._states: dict[str, OpenCircuit] = {}  # by subscription
        self._failing: dict[str, Failing] = {}  # by subscription
        self._news_count = 0  # changes that other nodes told of
        # Keys that changed since they were read, with the number of the news.
        self._unread_since: dict[str, int] = {}  # by subscription, the number of the news about it
        self._all_unread_since = 1  # the number of the news that any may have changed; 0: all were read
        self._reading = asyncio.Lock()
        directory.on_change_elsewhere(self._forget)

    def _forget(self, kind: str, key: str) -> None:
        """A document changed (with no key: any of them may have): read it before it is used again."""
        if kind not in ("", CIRCUIT.name):
            return
        self._news_count += 1
        if key:
            self._unread_since[key] = self._news_count
        else:
            self._all_unread_since = self._news_count

    async def of(self, subscription: Subscription) -> OpenCircuit | None:
        """The state of a subscription's breaker; None: it is closed."""
        key = subscription.key
        await self._read_all()
        while (news := self._unread_since.get(key)) is not None:
            await self._read(key, news)
        state = self._states.get(key)
        return None if state is None or state.endpoint != subscription.endpoint else state

    def knows_nothing_of(self, subscription: Subscription) -> bool:
        """True if a success at the subscription's endpoint changes nothing here: it is not known to fail."""
        if not self._failing and not self._states:  # nearly always: a key takes a microsecond, twice a push
            return True
        return subscription.key not in self._failing and subscription.key not in self._states

    async def all(self) -> Mapping[str, OpenCircuit]:
        """Every breaker that is not closed, by its subscription's key."""
        if len(self._unread_since) > ONE_BY_ONE_MAX:
            self._forget(CIRCUIT.name, "")
        await self._read_all()
        for key, news in list(self._unread_since.items()):
            await self._read(key, news)
        return self._states

    async def _read_all(self) -> None:
        """Read every state: at the beginning, and when it is not known which changed."""
        while self._all_unread_since:
            async with self._reading:  # others wait meanwhile: what is remembered is out of date
                if not (unread_since := self._all_unread_since):
                    return  # another task read them while this one waited
                news_before = self._news_count
                self._states = dict(await self._directory.entries(CIRCUIT))
                self._unread_since = {
                    key: news for key, news in self._unread_since.items() if news > news_before
                }
                if self._all_unread_since == unread_since:
                    self._all_unread_since = 0

    async def _read(self, key: str, news: int) -> None:
        """Read one state, which news of that number said had changed; unless it changed again meanwhile."""
        state = await self._directory.get(CIRCUIT, key)
        if self._unread_since.get(key) != news:
            return
        del self._unread_since[key]
        if state is None:
            self._states.pop(key, None)
        else:
            self._states[key] = state

    async def probe(self, subscription: Subscription, lease_ms: int, now: int) -> bool:
        """Claim the probe of a half-open breaker; True if this node has it, and no other for `lease_ms`.

        Nodes compete for the document's version. That is one write, each time that the breaker lets a probe through.
        """

        def with_prober(current: OpenCircuit) -> OpenCircuit:
            if not current.may_probe(self._node, now):
                return current
            return replace(current, prober=self._node, probing_until=now + lease_ms)

        try:
            state = await self._directory.update(CIRCUIT, subscription.key, with_prober)
        except NotFound:
            return True  # the breaker was closed meanwhile, so the endpoint is served as usual
        finally:  # also where the write failed: another node may have changed the document
            self._forget(CIRCUIT.name, subscription.key)
        return state.prober == self._node and state.may_probe(self._node, now)

    async def note(
        self, subscription: Subscription, policy: CircuitPolicy | None, attempt: Attempt, now: int
    ) -> None:
        """Take the result of an attempt that ended at `now` (ms): a success closes the breaker, a failure may open it.

        A success is noted when it is settled, which a store that is away may delay: one from before the failures began
        says nothing of the endpoint now.
        """
        key = subscription.key
        if attempt.delivered:
            if not self._has_failed_since(key, now):
                self._failing.pop(key, None)
                if key in self._states:
                    await self.close(subscription)
            return
        if policy is None:  # failures are counted, for those who ask, but open nothing
            if key in self._states:
                await self.close(subscription)
            self._count(key, 0, attempt, now)
            return
        before = await self.of(subscription)
        counted = 0 if before is None else before.failures  # by another node, or before this node was started
        failures = self._count(key, counted, attempt, now if before is None else before.since)
        after = after_failure(policy, before, failures, attempt, now)
        if after is not None and after != before:
            await self._write(key, replace(after, endpoint=subscription.endpoint))
            logger.warning(
                "circuit.opened subscription=%s reason=%s status=%d failures=%d seconds=%d",
                key,
                after.reason,
                after.status,
                after.failures,
                (after.until - now) // 1000,
            )

    def _has_failed_since(self, key: str, moment: int) -> bool:
        known = self._states.get(key), self._failing.get(key)
        return any(failures is not None and failures.since > moment for failures in known)

    def _count(self, key: str, counted: int, attempt: Attempt, since: int) -> int:
        """Count a failure, where another node may have `counted` some; return how many there are in a row."""
        known = self._failing.get(key)
        failures = max(0 if known is None else known.failures, counted) + 1
        self._failing[key] = Failing(
            failures, attempt.reason, attempt.status, since if known is None else known.since
        )
        return failures

    @property
    def rows_of_failures(self) -> Mapping[str, Failing]:
        """The row of failures of each endpoint that is in one, by its subscription's key."""
        return self._failing

    def failing(self, subscription: Subscription) -> Failing | None:
        """The row of failures that a subscription's endpoint is in; None: its last attempt was none."""
        return self._failing.get(subscription.key)

    async def close(self, subscription: Subscription) -> bool:
        """Close a subscription's breaker; whether it was open."""
        self._failing.pop(subscription.key, None)
        return await self.forget(subscription.key)

    async def reopen(self, subscription: Subscription, state: OpenCircuit) -> None:
        """Open a subscription's breaker again as it was before somebody closed it."""
        await self._write(subscription.key, replace(state, endpoint=subscription.endpoint))

    async def forget(self, key: str) -> bool:
        """Remove the state of a subscription, which may be gone itself; True if there was a state."""
        self._states.pop(key, None)
        try:
            return await self._directory.remove(CIRCUIT, key)
        finally:
            self._forget(CIRCUIT.name, key)  # what was read meanwhile may be from before

    async def sweep(self, is_there: Callable[[str], Awaitable[bool]]) -> None:
        """Remove the states of subscriptions that are gone: an attempt may end, and fail, after they are."""
        for key in {**self._failing, **await self.all()}:
            if not await is_there(key):
                self._failing.pop(key, None)
                if key in self._states:
                    await self.forget(key)

    async def _write(self, key: str, state: OpenCircuit) -> None:
        """Write an open circuit down; of two nodes that do, the later end stands."""
        self._states[key] = state
        try:
            await self._directory.update(CIRCUIT, key, lambda current: _longer(current, state))
        except NotFound:
            with contextlib.suppress(Conflict):  # another node was faster, and says much the same
                await self._directory.create(CIRCUIT, key, state)
        finally:
            self._forget(CIRCUIT.name, key)  # what was read meanwhile may be from before


def _longer(current: OpenCircuit, state: OpenCircuit) -> OpenCircuit:
    """The later end, where two nodes open the same breaker at the same time."""
    outlasts = current.endpoint == state.endpoint and current.until > state.until
    return current if outlasts else state
