"""Quotas: how many requests the holders of keys have made in a day, a week or a month, by the engine's clock."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from redrive.aws.apigateway.control.records import UsagePlan
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft
from redrive.model.document import Document

PERIODS: Final = ("DAY", "WEEK", "MONTH")
_DAYS_KEPT: Final = 90


@dataclass(frozen=True, slots=True)
class Used(Document):
    """The requests that the holder of a key has made of a plan."""

    # Requests by day, as `YYYY-MM-DD`; those of the last three months.
    days: Mapping[str, int] = field(default_factory=dict)


USAGE: Final = DocumentKind.of("apigateway_usage", Used)


def usage_key(account: str, region: str, plan_id: str, key_id: str) -> str:
    """The key of what a key's holder has used of a plan."""
    return f"{account}/{region}/{plan_id}/{key_id}"


def period_of(moment: int, period: str) -> tuple[str, str]:
    """The first and the last day of the period that a moment (ms) is in; weeks begin on Sunday."""
    day = datetime.fromtimestamp(moment // 1000, UTC).date()
    if period == "WEEK":
        first = day - timedelta(days=(day.weekday() + 1) % 7)
        return str(first), str(first + timedelta(days=6))
    if period == "MONTH":
        first = day.replace(day=1)
        last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        return str(first), str(last)
    return str(day), str(day)


def days_of(used: Used, quota: Mapping[str, Any] | None, begin: str, end: str) -> list[list[int]]:
    """Pairs for each day: the requests, and how many were left then; -1 where there is no quota."""
    days: list[list[int]] = []
    try:
        day, last = date.fromisoformat(begin), date.fromisoformat(end)
    except ValueError:
        return days
    while day <= last and len(days) < _DAYS_KEPT:
        count = used.days.get(str(day), 0)
        left = -1
        if quota is not None:
            moment = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
            first, _ = period_of(moment, quota["period"])
            spent = sum(number for each, number in used.days.items() if first <= each <= str(day))
            left = max(int(quota["limit"]) - spent, 0)
        days.append([count, left])
        day += timedelta(days=1)
    return days


@dataclass(slots=True)
class _Counter:
    """The requests of one key that are about to be counted."""

    plan: UsagePlan  # As the latest request found it
    now: int  # When that came (ms)
    waiting: list[asyncio.Future[bool]] = field(default_factory=list)  # Those that the next write counts
    # Writes until nobody waits; its own task, which no caller's end takes with it.
    writing: asyncio.Task[None] | None = None


class UsageQuotas:
    """Counts requests against quotas: those that come together are one write."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counters: dict[str, _Counter] = {}

    async def spend(self, plan: UsagePlan, key_id: str, now: int) -> bool:
        """Count one request; False: the quota is used up.

        Raises:
            StoreUnavailable: It is unknown whether it was counted.
        """
        key = usage_key(plan.account, plan.region, plan.id, key_id)
        counter = self._counters.setdefault(key, _Counter(plan, now))
        counter.plan, counter.now = plan, now
        loop = asyncio.get_running_loop()
        counted: asyncio.Future[bool] = loop.create_future()
        counter.waiting.append(counted)
        if counter.writing is None:
            counter.writing = loop.create_task(self._write_all(key, counter))
        return await counted

    async def _write_all(self, key: str, counter: _Counter) -> None:
        try:
            while counter.waiting:
                await self._write(key, counter)
        finally:
            del self._counters[key]

    async def _write(self, key: str, counter: _Counter) -> None:
        batch, counter.waiting = counter.waiting, []
        quota: Mapping[str, Any] = counter.plan.settings["quota"]
        today = str(datetime.fromtimestamp(counter.now // 1000, UTC).date())
        first, last = period_of(counter.now, quota["period"])

        async def decide(draft: Draft) -> int:
            used = await draft.get(USAGE, key) or Used()
            spent = sum(count for day, count in used.days.items() if first <= day <= last)
            room = min(max(int(quota["limit"]) - spent, 0), len(batch))
            if room:
                days = {**used.days, today: used.days.get(today, 0) + room}
                draft.put(USAGE, key, replace(used, days=dict(sorted(days.items())[-_DAYS_KEPT:])))
            return room

        try:
            room = await self._engine.resources.write(decide)
        except Exception as error:  # noqa: BLE001 - each of those who wait raises it
            for each in batch:
                if not each.done():
                    each.set_exception(error)
            return
        for number, each in enumerate(batch):
            if not each.done():
                each.set_result(number < room)
