"""Publishing to one device or telephone, without a topic.

Such a destination gets a topic of its own with one subscription, made at its first message and seen by nobody: what
is published to it is a delivery like any other, with attempts, retries and a log. Where the server has not been set up
to push to telephones, or cannot push to devices of a platform, each attempt says so.
"""

import contextlib
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.sns import destinations, names
from redrive.aws.sns.devices import platform
from redrive.aws.sns.devices.platform import APPLICATION, DEVICE
from redrive.aws.sns.errors import error, invalid
from redrive.aws.sns.published import PublishedMessage
from redrive.aws.sns.sms.opt_outs import OptOuts
from redrive.aws.sns.sms.text_messages import SMS_TYPE, TRANSACTIONAL
from redrive.aws.sns.topic_attributes import DIALECT
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import AlreadyExists
from redrive.model.ids import id_text
from redrive.model.message import Publication
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

_ONE: Final = "direct"  # the id of the only subscription
_PHONES: Final = "sms"


class Direct:
    """Finds the topic that stands for one destination."""

    def __init__(self, engine: Engine, opt_outs: OptOuts) -> None:
        """Publish through this engine, to telephones whose owners have not opted out."""
        self._engine = engine
        self._opt_outs = opt_outs

    async def endpoint(self, call: Call, arn: str) -> Subscription:
        """The one subscription that stands for a platform endpoint; nothing is made yet.

        Raises:
            AwsError: `InvalidParameter`: there is no such endpoint; `EndpointDisabled`;
                `PlatformApplicationDisabled`.
        """
        device_name = platform.device_in(call, arn, "Publish", "TargetArn")
        documents = self._engine.resources.documents
        device = await documents.get(DEVICE, device_name.key)
        application = await documents.get(APPLICATION, device_name.application.key)
        if device is None or application is None:
            raise invalid("TargetArn Reason: No endpoint found for the target arn specified")
        if application.attributes[platform.ENABLED] != "true":
            raise error("PlatformApplicationDisabled", "Platform application is disabled")
        if not device.enabled:
            raise error("EndpointDisabled", "Endpoint is disabled")
        return _only(device.topic, "application", arn)

    async def phone(self, call: Call, number: str) -> Subscription:
        """The one subscription that stands for a telephone; nothing is made yet.

        Raises:
            AwsError: See `check_phone`.
        """
        await self.check_phone(call, number)
        name = ResourceName(call.account, f"{call.region}:{_PHONES}", number)
        return _only(name, "sms", number)

    async def check_phone(self, call: Call, number: str) -> None:
        """Refuse a telephone that nobody may write to.

        Raises:
            AwsError: `InvalidParameter`: it is no telephone number, or its owner wants no messages.
        """
        if not destinations.is_phone(number):
            raise invalid(f"PhoneNumber Reason: {number} is not valid to publish to")
        if await self._opt_outs.has(call, number):
            raise invalid("PhoneNumber Reason: phone number is opted out")

    async def tell(self, call: Call, number: str, text: str) -> None:
        """Write to a telephone in the server's own words.

        Raises:
            AwsError: See `check_phone`.
        """
        topic = await self.topic(await self.phone(call, number))
        message_id = self._engine.runtime.message_id()
        urgent = {SMS_TYPE: ("String", TRANSACTIONAL)}
        published = PublishedMessage(
            id_text(message_id), names.arn_of(topic.name), call.now, attributes=urgent
        )
        publication = Publication(message_id, text, {}, {}, published.envelope(), len(text.encode()))
        await self._engine.messages.publish(topic, [publication])

    async def topic(self, only: Subscription) -> Topic:
        """The topic of a destination, made if this is its first message."""
        topics = self._engine.resources.topics
        topic = topics.known(only.topic) or await topics.get(only.topic)
        if topic is not None:
            return topic
        resources = self._engine.resources

        async def create(draft: Draft) -> Topic:
            topic = await resources.topics.create_in(draft, unmade(only))
            await resources.subscriptions.create_in(draft, only)
            return topic

        with contextlib.suppress(AlreadyExists):
            return await resources.write(create)
        return await self.topic(only)


def unmade(only: Subscription) -> Topic:
    """The topic of a destination before its first message."""
    return Topic(0, only.topic, DIALECT)


def _only(topic: ResourceName, protocol: str, endpoint: str) -> Subscription:
    return Subscription(_ONE, topic, 0, topic.account, protocol, endpoint)
