"""Azure Event Grid, loaded at its first request.

The gateway is made at the first request, beside the event loop. The part in delivering is made at once when the engine
first needs it: for a subscription's backlog that it takes up, or for a message that a receiver is shown.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from redrive.azure.eventgrid import names
from redrive.azure.recognise import BODY_BYTES_MAX, is_for_azure
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface
from redrive.composition.extensions import Deferred
from redrive.engine.ports import FollowUp, PushRequest, SubscriptionContext
from redrive.engine.ports.facts import Attempted, Listener
from redrive.model.attempt import Attempt
from redrive.model.delivery import DeadLetterReason, Delivery
from redrive.model.http import Request, Response
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

if TYPE_CHECKING:  # what this module leaves for later
    from redrive.azure.gateway import AzureGateway
    from redrive.composition.event_grid_delivery import EventGridDelivery


class DeferredEventGrid(Deferred):
    """Event Grid (`redrive.server.app.Recognising`). It does nothing by itself but deliver, so no document wakes it."""

    name = "eventgrid"

    def __init__(self, core: Core) -> None:
        super().__init__()
        self._core = core
        self._delivery = delivery = _Delivery(core)
        self._gateway: AzureGateway | None = None
        self.stand_in = Extension(
            interface=Interface(protocols=(self,)),
            delivery=DeliveryParts(
                profiles={names.DIALECT: _DeferredProfile(delivery)},
                endpoints={names.TOPIC: _DeferredTopic(delivery)},
                listeners=[(_DeferredMeasures(delivery), ())],
                presenters={names.ENVELOPE: delivery.present},
            ),
        )

    def handles(self, request: Request) -> bool:
        """See `Recognising.handles`."""
        return is_for_azure(request.path, request.host)

    def body_bytes_max(self, request: Request) -> int:  # noqa: ARG002 - the same for all of Azure
        """See `Fallback.body_bytes_max`."""
        return BODY_BYTES_MAX

    def answer(self, request: Request) -> Awaitable[Response]:
        """See `Fallback.answer`."""
        return self._answer(request) if self._gateway is None else self._gateway.answer(request)

    async def _answer(self, request: Request) -> Response:
        await self.open()
        return await self.answer(request)

    @override
    def _load(self) -> Callable[[], Extension]:
        from redrive.composition.event_grid_gateway import DOCUMENTS, azure_gateway  # noqa: PLC0415 - see above

        def make() -> Extension:
            self._gateway = azure_gateway(self._core, self._delivery.parts)
            return Extension(Interface(protocols=(self._gateway,), kinds=DOCUMENTS))

        return make


class _Delivery:
    """The part in delivering."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @cached_property
    def parts(self) -> "EventGridDelivery":
        """The parts, made when one is first needed."""
        from redrive.composition.event_grid_delivery import event_grid_delivery  # noqa: PLC0415 - see above

        return event_grid_delivery(self._core)

    def present(self, delivery: Delivery) -> tuple[str, Mapping[str, Any]]:
        """See `Presenter`."""
        return self.parts.present(delivery)


class _DeferredProfile:
    """`redrive.engine.ports.DeliveryProfile`; the contexts that it makes have the profiles of their own."""

    name = names.DIALECT

    def __init__(self, delivery: _Delivery) -> None:
        self._delivery = delivery

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """See `DeliveryProfile.context`."""
        return self._delivery.parts.profile.context(topic, subscription)

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """See `DeliveryProfile.refusal`."""
        return context.profile.refusal(context, queue, body, headers)

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """See `DeliveryProfile.render`."""
        return await context.profile.render(context, deliveries)

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """See `DeliveryProfile.follow_ups`."""
        return self._delivery.parts.profile.follow_ups(fact)


class _DeferredTopic:
    """Topics of this server as destinations (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, delivery: _Delivery) -> None:
        self._delivery = delivery

    async def push(self, push_request: PushRequest) -> Attempt:
        """See `Endpoint.push`."""
        return await self._delivery.parts.endpoint.push(push_request)

    async def close(self) -> None:
        """Nothing has to be closed."""


class _DeferredMeasures(Listener):
    """Hears what is dropped from queues: of all facts this alone comes without a delivery of Event Grid's before it."""

    def __init__(self, delivery: _Delivery) -> None:
        self._delivery = delivery

    @override
    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        if names.is_namespace_topic(queue.name):
            self._delivery.parts.pull_measures.dropped(queue, messages, why, now)
