"""Topics of this server as destinations: whether an event can go there.

The event is published there by the transaction that ends its delivery; see `EventProfile.follow_ups`.
"""

from http import HTTPStatus
from typing import Final

from redrive.azure.eventgrid import names
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import PushRequest
from redrive.engine.resources import Topics
from redrive.model.attempt import Attempt, AttemptResult, Reason


class TopicEndpoint:
    """Takes an event where its topic stands (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    async def push(self, push_request: PushRequest) -> Attempt:
        """Say whether it can go there."""
        resource = ArmId.parse(push_request.endpoint)
        name = None if resource is None else names.topic_name(resource)
        topic = None if name is None else await self._topics.get(name)
        return _MISSING if topic is None else _TAKEN

    async def close(self) -> None:
        """There is nothing to let go of."""


_TAKEN: Final = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, HTTPStatus.OK, "", 0)
_MISSING: Final = Attempt(
    AttemptResult.FAILED, Reason.MISSING, HTTPStatus.NOT_FOUND, "The topic does not exist.", 0
)
