"""Asynchronous invocations: an event is a delivery, on disk before its caller is answered."""

import logging

from redrive.aws.gateway.rounds import ROUNDS_MAX, Rounds
from redrive.aws.lambda_.documents import backlogs
from redrive.aws.lambda_.documents.errors import error
from redrive.aws.lambda_.documents.lookup import function_in
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference
from redrive.aws.lambda_.documents.records import FunctionRecord
from redrive.aws.lambda_.invocations import events
from redrive.aws.lambda_.invocations.events import InvocationEvent
from redrive.aws.lambda_.invocations.metrics import InvocationMetrics
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.topic import Topic

logger = logging.getLogger(__name__)


class AsyncInvocations:
    """Takes events for functions."""

    def __init__(self, engine: Engine, metrics: InvocationMetrics, rounds: Rounds) -> None:
        """Publish events through this engine, and count them; `rounds` tells which ones functions sent in a loop."""
        self._engine = engine
        self._rounds = rounds
        self._metrics = metrics

    async def accept(
        self,
        function: FunctionRecord,
        reference: FunctionReference,
        payload: bytes,
        request_id: str,
        trace: str | None = None,
    ) -> None:
        """Take an event, JSON in UTF-8; it is on disk when this returns.

        Raises:
            AwsError: The function is gone meanwhile, or it is invoked in a loop.
        """
        if self._rounds.of(trace) > ROUNDS_MAX:
            raise self._loop(function)
        reference = FunctionReference(function.name, reference.qualifier or LATEST)
        topic = await self._topic(reference)
        event = InvocationEvent(request_id, reference.arn, trace)
        message_id = self._engine.runtime.message_id()
        await self._engine.messages.publish(topic, [events.publication(message_id, payload.decode(), event)])
        self._metrics.count(function.name, "AsyncEventsReceived", 1, self._engine.clock.now())

    def _loop(self, function: FunctionRecord) -> AwsError:
        logger.warning(
            "lambda.loop function=%s: %d runs of functions in a row were each begun by a destination of the one before;"
            " change the destinations",
            function.name.key,
            ROUNDS_MAX + 1,
        )
        return error(
            "RecursiveInvocationException",
            "Lambda has detected your function being invoked in a recursive loop with other Amazon Web Services"
            " resources and stopped your function's invocation.",
        )

    async def _topic(self, reference: FunctionReference) -> Topic:
        """The topic of the events, which the first of them makes."""
        topics = self._engine.resources.topics
        name = backlogs.topic_of(reference.name, reference.qualifier or LATEST)
        known_topic = topics.known(name) or await topics.get(name)
        if known_topic is not None:
            return known_topic

        async def decide(draft: Draft) -> Topic | None:
            function = await function_in(draft, reference)
            await backlogs.begin_in(draft, self._engine.resources, function, reference.qualifier or LATEST)
            return await topics.get_in(draft, name)

        topic = await self._engine.resources.write(decide)
        if topic is None:
            raise ValueError(f"{name.key} was made, and is not there")
        return topic
