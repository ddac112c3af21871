"""Trouble: clients at work while everything goes wrong."""

import asyncio
import contextlib
import json
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import Any

from redrive.model.errors import AlreadyExists
from redrive.model.topic import EVENTS, POLICY, Subscription, Topic
from tests.simulation.administrators import Administrator
from tests.simulation.clients import Consumer, Operator, Publisher, Sender
from tests.simulation.cluster import Cluster, named, undelivered
from tests.simulation.options import OUTAGE_MS_MAX
from tests.simulation.subscribers import LEASE_MS, LETTERED, SubscriptionPlan, TopicPlan

STEP_MS = 10_000  # mean time between two settings of some clock


class Trouble:
    """The first part of a run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._options = cluster.options
        self._rng = cluster.fork()

    async def happen(self) -> None:
        """Cause trouble until all has been sent and the time is up."""
        cluster, duration_ms = self._cluster, self._options.duration_ms
        async with asyncio.TaskGroup() as senders:
            passing = [senders.create_task(work) for work in self._passing_work()]
            for queue, plan in cluster.queues:
                sender = Sender(f"{queue.name.name}-s", cluster, cluster.fork())
                senders.create_task(sender.run(queue, plan, duration_ms))
            for topic in self._options.topics:
                senders.create_task(self._publish(topic))
            senders.create_task(self._end_passing(passing))

    async def _publish(self, plan: TopicPlan) -> None:
        """Make the topic, publish to it, and let some subscribe from the beginning and some meanwhile."""
        cluster, over_ms = self._cluster, self._options.duration_ms
        topic = await self._make_topic(plan)
        for box in plan.letter_boxes:
            operator = Operator(f"{box.name}-o", cluster, cluster.fork())
            await operator.subscribe(_subscription(topic, box, confirmed=False), box, None, 0)
        async with asyncio.TaskGroup() as busy:
            for one in plan.subscriptions:
                operator = Operator(f"{one.name}-o", cluster, cluster.fork())
                enters = next((queue.id for queue, _ in cluster.queues if queue.name.name == one.queue), None)
                after_ms = self._rng.uniform(0, over_ms / 2) if one.late else 0
                wanted = _subscription(topic, one, confirmed=True)
                busy.create_task(operator.subscribe(wanted, one, enters, after_ms))
            publisher = Publisher(f"{plan.name}-p", cluster, cluster.fork())
            busy.create_task(publisher.run(topic, plan, over_ms))

    async def _make_topic(self, plan: TopicPlan) -> Topic:
        wanted = Topic(0, named(plan.name), plan.dialect, ordered=plan.ordered)
        maker = Operator("t-o", self._cluster, self._rng)
        while True:
            with contextlib.suppress(AlreadyExists):
                await maker.ask(lambda engine: engine.resources.topics.create(wanted))
            topic = await maker.ask(lambda engine: engine.resources.topics.get(wanted.name))
            if topic is not None:
                return topic

    async def _end_passing(self, passing: list[asyncio.Task[None]]) -> None:
        await self._cluster.pause(self._options.duration_ms)
        for task in passing:
            task.cancel()

    def _passing_work(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Work that goes on until the faults stop."""
        cluster, options = self._cluster, self._options
        if options.death_ms:
            yield self._kill()
        if options.clock_steps:
            yield self._step_clocks()
        if options.outage_ms:
            yield self._take_the_store_away()
        yield from self._administration()
        for queue, plan in cluster.queues:
            for number in range(plan.consumers):
                name = f"{queue.name.name}-c{number}"
                yield Consumer(name, cluster, cluster.fork(), options.manners).run(queue)
            operator = Operator("operator", cluster, cluster.fork())
            if options.purge_ms:
                yield operator.purge(queue, options.purge_ms)
            if options.relabel_ms:
                yield operator.relabel(queue, options.relabel_ms)
        if options.redrive_ms:
            for dead in cluster.dead_letters.values():
                origins = [queue for queue, plan in cluster.queues if plan.dead_letters == dead.name.name]
                yield Operator("operator", cluster, cluster.fork()).redrive(dead, origins, options.redrive_ms)

    def _administration(self) -> Iterator[Coroutine[Any, Any, None]]:
        if every_ms := self._options.configure_ms:
            for name, other in (("a", "b"), ("b", "a")):
                administrator = Administrator(name, self._cluster, self._cluster.fork(), self._cluster.told)
                yield administrator.run(other, every_ms)

    async def _kill(self) -> None:
        while True:
            await self._cluster.pause(self._rng.expovariate(1 / self._options.death_ms))
            self._rng.choice(self._cluster.nodes).die("out of the blue")

    async def _take_the_store_away(self) -> None:
        cluster, faults = self._cluster, self._options.faults
        while True:
            await cluster.pause(LEASE_MS + self._rng.expovariate(1 / self._options.outage_ms))
            while not cluster.outside.is_asked:  # while nothing is pushed, nothing is lost by it
                await cluster.pause(10)
            cluster.faults = replace(faults, request_lost=1)
            cluster.trace.note("store", "is away")
            cluster.trace.mark("an outage")
            try:
                await cluster.pause(self._rng.uniform(0, OUTAGE_MS_MAX))
            finally:
                cluster.faults = faults

    async def _step_clocks(self) -> None:
        cluster = self._cluster
        while True:
            await cluster.pause(self._rng.expovariate(1 / STEP_MS))
            node = self._rng.choice(cluster.nodes)
            node.clock.skew_ms = cluster.skew_ms()
            cluster.trace.note(node.name, "sets its clock", node.clock.skew_ms)
            cluster.trace.mark("a clock was set")


def _subscription(topic: Topic, plan: SubscriptionPlan, *, confirmed: bool) -> Subscription:
    kinds = list(plan.kinds)
    events = topic.dialect == LETTERED
    wanted = {"includedEventTypes": kinds} if events else {"kind": kinds}
    return Subscription(
        id=plan.name,
        topic=topic.name,
        queue_id=0,
        owner="1",
        protocol="push",
        endpoint=plan.name,
        confirmed=confirmed,
        filter_text=json.dumps(wanted) if kinds else None,
        filter_language=EVENTS if events else POLICY,
        dead_letter=named(undelivered(topic.name.name)) if plan.dead_letters else None,
        attributes={"ordered": str(topic.ordered).lower()},
    )
