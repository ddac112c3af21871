"""ReceiveMessage: claims as messages, with the attributes the receiver asked for.

Readers of encrypted messages need permission for their keys.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from redrive.access.principals import Principal
from redrive.aws.encryption.encryption import Encryption, reuse_ms
from redrive.aws.encryption.sealer import KEY
from redrive.aws.kit.call import Call, Presenters
from redrive.aws.kit.messages import is_id, sequence_number
from redrive.aws.sqs import message, names
from redrive.aws.sqs.access import QueueAccess, QueueQuotas
from redrive.aws.sqs.consumers import Consumers
from redrive.aws.sqs.errors import error, invalid, key_error, key_refusals
from redrive.aws.sqs.handles import Handles
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.messages import Cancellation
from redrive.model.delivery import SEAL_MARK, Delivery, is_sealed
from redrive.model.errors import KeyUnusable
from redrive.model.names import id_text
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)


class Readers:
    """Checks the rights of those who receive."""

    def __init__(self, engine: Engine, encryption: Encryption) -> None:
        self._engine = engine
        self._encryption = encryption

    async def check_first(self, call: Call, queue: Queue) -> None:
        """Refuse a receiver that may not read the first message, before anything is claimed: no receive is counted.

        Raises:
            AwsError: One of `Kms…`.
        """
        if not self._encryption.has_read(call.principal, queue):
            with key_refusals(call):
                await self._check_first(call.principal, queue)

    async def may_read(self, queue: Queue, principal: Principal) -> bool:
        """Returns whether a principal may read a queue, by the message that arrived first."""
        if KEY not in queue.attributes or self._encryption.has_read(principal, queue):
            return True
        try:
            await self._check_first(principal, queue)
        except KeyUnusable as refusal:
            _log_unreadable(queue, principal, refusal)
            return False
        return True

    async def _check_first(self, principal: Principal, queue: Queue) -> None:
        first = await self._engine.messages.peek(queue, 1)
        await self._encryption.check_reader(principal, queue.name.region, first, reuse_ms(queue))
        if first:
            self._encryption.note_reader(principal, queue)

    async def readable(self, call: Call, queue: Queue, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """The claimed messages that the receiver may read; the claims of the others end.

        Raises:
            AwsError: One of `Kms…`: it may read none.
        """
        readable, refusal = await self._readable(call.principal, call.region, queue, deliveries)
        if len(readable) < len(deliveries):
            unreadable = [delivery for delivery in deliveries if delivery not in readable]
            claims = [(delivery.seq, delivery.token or 0, 0) for delivery in unreadable]  # visible in 0 ms
            await self._engine.messages.extend(queue, claims)
        if not readable:
            raise key_error(refusal or KeyUnusable("The key of a message cannot be used."), call.id)
        return readable

    async def readable_by(
        self, queue: Queue, principal: Principal, deliveries: Sequence[Delivery]
    ) -> list[Delivery]:
        """The claimed messages that a principal may read; the others stay claimed for their time."""
        readable, refusal = await self._readable(principal, queue.name.region, queue, deliveries)
        if refusal is not None:
            _log_unreadable(queue, principal, refusal)
        return readable

    async def _readable(
        self, principal: Principal, region: str, queue: Queue, deliveries: Sequence[Delivery]
    ) -> tuple[list[Delivery], KeyUnusable | None]:
        """The messages that a principal may read, and the last refusal of a key; None: no key was refused."""
        reader = principal, region, queue
        latest_refusal = refusal_of_any = await self._refusal(reader, deliveries)  # None, nearly always
        readable: list[Delivery] = []
        for delivery in deliveries:
            refusal = await self._refusal(reader, [delivery]) if refusal_of_any else None
            latest_refusal = refusal or latest_refusal
            if refusal is None and not is_sealed(delivery):
                readable.append(delivery)
        return readable, latest_refusal

    async def _refusal(
        self, reader: tuple[Principal, str, Queue], deliveries: Sequence[Delivery]
    ) -> KeyUnusable | None:
        """The refusal of a reader whose rights do not cover the deliveries' keys; None: they do."""
        principal, region, queue = reader
        try:
            await self._encryption.check_reader(principal, region, deliveries, reuse_ms(queue))
        except KeyUnusable as refusal:
            return refusal
        return None


def _log_unreadable(queue: Queue, principal: Principal, refusal: KeyUnusable) -> None:
    logger.warning("queue.unreadable queue=%s caller=%s: %s", queue.name.key, principal.name, refusal)


MESSAGES_MAX = 10
WAIT_SECONDS_MAX = 20
VISIBILITY_SECONDS_MAX = 43_200
ATTRIBUTES = frozenset(
    {
        "SenderId",
        "SentTimestamp",
        "ApproximateReceiveCount",
        "ApproximateFirstReceiveTimestamp",
        "SequenceNumber",
        "MessageDeduplicationId",
        "MessageGroupId",
        "AWSTraceHeader",
        "DeadLetterQueueSourceArn",
    }
)
# Names of queue attributes are accepted in the deprecated AttributeNames and select nothing.
_QUEUE_ATTRIBUTES = frozenset(
    {
        "Policy",
        "VisibilityTimeout",
        "MaximumMessageSize",
        "MessageRetentionPeriod",
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "CreatedTimestamp",
        "LastModifiedTimestamp",
        "QueueArn",
        "ApproximateNumberOfMessagesDelayed",
        "DelaySeconds",
        "ReceiveMessageWaitTimeSeconds",
        "RedrivePolicy",
        "FifoQueue",
        "ContentBasedDeduplication",
        "KmsMasterKeyId",
        "KmsDataKeyReusePeriodSeconds",
        "DeduplicationScope",
        "FifoThroughputLimit",
        "RedriveAllowPolicy",
        "SqsManagedSseEnabled",
    }
)

Sources = Mapping[int, str]  # ARNs of queues by their numbers
_NO_SOURCES: Final[Sources] = {}


class Receiving:
    """Receives messages from queues."""

    def __init__(
        self,
        engine: Engine,
        access: QueueAccess,
        quotas: QueueQuotas,
        handles: Handles,
        presenters: Presenters,
        encryption: Encryption | None = None,
        consumers: Consumers | None = None,
    ) -> None:
        self._consumers = Consumers() if consumers is None else consumers
        self._readers = None if encryption is None else Readers(engine, encryption)
        self._engine = engine
        self._handles = handles
        self._access = access
        self._quotas = quotas
        self._showing = Showing(engine, presenters)

    async def receive_message(self, call: Call, params: Structure) -> Structure:
        url = params["QueueUrl"]
        queue = self._access.if_open(call, url) or await self._access.at(call, url, "ReceiveMessage")
        self._quotas.take(queue, "ReceiveMessage", call.now)
        system_attributes = _system_attribute_names(
            _attribute_names(params, "AttributeNames"),
            _attribute_names(params, "MessageSystemAttributeNames"),
        )
        visibility = params.get("VisibilityTimeout")
        wait = params.get("WaitTimeSeconds")
        readers = self._readers
        if readers is not None and KEY in queue.attributes:
            await readers.check_first(call, queue)
        cancellation = Cancellation()
        call.request.on_gone = cancellation.happen
        deliveries = await self._engine.messages.receive(
            queue,
            _checked_number(params.get("MaxNumberOfMessages")),
            lease_ms=None if visibility is None else _checked_visibility(visibility) * 1000,
            wait_ms=None if wait is None else _checked_wait(wait) * 1000,
            attempt_id=_attempt_id(queue, params.get("ReceiveRequestAttemptId")),
            cancellation=cancellation,
        )
        request = call.request
        self._consumers.note(
            queue.id,
            call.principal.name,
            request.client_host,
            request.headers.get("user-agent", ""),
            len(deliveries),
            call.now,
        )
        if not deliveries:
            return {}
        if readers is not None:
            for delivery in deliveries:
                # An encrypted message is an `OpenedDelivery`, or still sealed: then its body has the mark.
                if type(delivery) is not Delivery or delivery.body[:1] == SEAL_MARK:
                    deliveries = await readers.readable(call, queue, deliveries)
                    break
        lease_ms = queue.lease_ms if visibility is None else visibility * 1000
        message_attributes = params.get("MessageAttributeNames") or ()
        write = self._handles.write
        showing = self._showing
        sources = (
            await showing.sources(deliveries)
            if "DeadLetterQueueSourceArn" in system_attributes
            else _NO_SOURCES
        )
        return {
            "Messages": [
                showing.to_structure(
                    queue,
                    delivery,
                    system_attributes,
                    message_attributes,
                    write(delivery, delivery.available_at - lease_ms),  # when it was claimed (ms)
                    sources,
                )
                for delivery in deliveries
            ]
        }


class Showing:
    """Renders deliveries as messages."""

    def __init__(self, engine: Engine, presenters: Presenters) -> None:
        """Look up queues' names in an engine; presenters render the messages of other services."""
        self._queues = engine.resources.queues
        self._presenters = presenters

    async def sources(self, deliveries: Sequence[Delivery]) -> Sources:
        """The ARNs of the queues that the deliveries were dead-lettered from, by the queues' numbers."""
        origins = {delivery.origin for delivery in deliveries if delivery.origin is not None}
        origin_names = {origin: await self._queues.name_of(origin) for origin in origins}
        return {origin: names.arn_of(name) for origin, name in origin_names.items() if name is not None}

    def to_structure(
        self,
        queue: Queue,
        delivery: Delivery,
        system_attributes: Collection[str],
        message_attributes: Collection[str],
        handle: str,
        sources: Sources,
    ) -> Structure:
        """A delivery as a message of SQS. It is no coroutine, since a receive calls it for each message.

        Args:
            queue: Its queue.
            delivery: The delivery.
            system_attributes: Names of the system attributes to show.
            message_attributes: Names and patterns of the message attributes to show.
            handle: Its receipt handle.
            sources: The result of `sources`, where the dead-letter source is shown.
        """
        headers = message.unpack(delivery.headers)
        body, all_attributes = delivery.body, headers.get("attributes", {})
        if present := self._presenters.get(headers.get("envelope", "")):
            body, all_attributes = present(delivery)
        description: Structure = {
            "MessageId": id_text(delivery.message_id),
            "ReceiptHandle": handle,
            "MD5OfBody": message.digest_of_body(body),
            "Body": body,
        }
        if system_attributes:
            description["Attributes"] = _system_attributes(
                queue, delivery, headers, system_attributes, sources
            )
        attributes = message.select(all_attributes, message_attributes)
        if attributes:
            description["MessageAttributes"] = attributes
            description["MD5OfMessageAttributes"] = message.digest_of_attributes(attributes)
        return description


def _system_attributes(
    queue: Queue,
    delivery: Delivery,
    headers: Mapping[str, Any],
    attribute_names: Collection[str],
    sources: Sources,
) -> dict[str, str]:
    first = delivery.first_claimed_at
    everything = {
        "SenderId": headers.get("sender", queue.name.account),
        "SentTimestamp": str(delivery.sent_at),
        "ApproximateReceiveCount": str(delivery.attempts),
        "ApproximateFirstReceiveTimestamp": None if first is None else str(first),
        "SequenceNumber": sequence_number(delivery.seq) if queue.ordered else None,
        "MessageDeduplicationId": delivery.deduplication_id if queue.ordered else None,
        "MessageGroupId": delivery.group_id,
        "AWSTraceHeader": headers.get("trace"),
        "DeadLetterQueueSourceArn": None if delivery.origin is None else sources.get(delivery.origin),
    }
    return {
        name: value for name, value in everything.items() if value is not None and name in attribute_names
    }


def _attribute_names(params: Structure, member: str) -> tuple[str, ...]:
    """A list of names, empty if it is absent; a long one without repeats, since it becomes a key of a cache."""
    names = params.get(member) or ()
    return tuple(names) if len(names) <= len(ATTRIBUTES) else tuple(dict.fromkeys(names))


@lru_cache(maxsize=256)
def _system_attribute_names(deprecated: tuple[str, ...], current: tuple[str, ...]) -> frozenset[str]:
    """The system attributes asked for by either list of names; raises AwsError if one is unknown."""
    names = {*deprecated, *current}
    for name in sorted(names):
        if name != "All" and name not in ATTRIBUTES and name not in _QUEUE_ATTRIBUTES:
            raise error("InvalidAttributeName", f"Unknown Attribute {name}.")
    return ATTRIBUTES if "All" in names else frozenset(names) & ATTRIBUTES


def _checked_number(number: int | None) -> int:
    if number is None:
        return 1
    if not 1 <= number <= MESSAGES_MAX:
        raise invalid("MaxNumberOfMessages", number, f"Must be between 1 and {MESSAGES_MAX}, if provided.")
    return number


def _checked_wait(seconds: int) -> int:
    if not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise invalid("WaitTimeSeconds", seconds, f"Must be >= 0 and <= {WAIT_SECONDS_MAX}, if provided.")
    return seconds


def _checked_visibility(seconds: int) -> int:
    if not 0 <= seconds <= VISIBILITY_SECONDS_MAX:
        raise invalid(
            "VisibilityTimeout", seconds, f"Must be between 0 and {VISIBILITY_SECONDS_MAX}, if provided."
        )
    return seconds


def _attempt_id(queue: Queue, attempt_id: str | None) -> str | None:
    if attempt_id is None:
        return None
    if not queue.ordered:
        raise invalid(
            "ReceiveRequestAttemptId",
            attempt_id,
            "The request includes a parameter that is not valid for this queue type.",
        )
    if not is_id(attempt_id):
        raise message.malformed_id("ReceiveRequestAttemptId", attempt_id)
    return attempt_id
