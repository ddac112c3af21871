"""Log events that are owed to destinations, brought there by the engine like any delivery."""

import logging
from collections.abc import Mapping

from redrive.aws.gateway.owed_calls import asked_at, attempted
from redrive.aws.logs.destinations import LogDestination
from redrive.aws.logs.forwarded import Forwarded
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt
from redrive.model.names import ResourceName

logger = logging.getLogger(__name__)


class SubscribedEndpoint:
    """Brings log events to destinations (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, destinations: Mapping[str, LogDestination]) -> None:
        self._destinations = destinations

    async def push(self, push_request: PushRequest) -> Attempt:
        """Hand events over; a refusal is final, and the log says so."""
        forwarded = Forwarded.unpack(push_request.body)
        group = ResourceName(*asked_at(push_request), forwarded.group)
        service = forwarded.destination.split(":")[2]
        delivering = self._destinations[service].deliver(group, forwarded)
        error, attempt = await attempted(
            delivering, service, lambda refused: f"{refused.message} ({refused.code})"
        )
        if error is not None:
            logger.warning(
                "log_subscription.failed group=%s filter=%s destination=%s events=%d error=%s",
                group.key,
                forwarded.filter,
                forwarded.destination,
                len(forwarded.events),
                error,
            )
        return attempt

    async def close(self) -> None:
        """There is nothing to let go of."""
