"""Publishing to one telephone, without a topic."""

from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.sns.documents import destinations, names
from redrive.aws.sns.documents.direct import only_subscription, topic_of
from redrive.aws.sns.documents.errors import invalid
from redrive.aws.sns.notifications.published import PublishedMessage
from redrive.aws.sns.sms.opt_outs import OptOuts
from redrive.aws.sns.sms.text_messages import SMS_TYPE, TRANSACTIONAL
from redrive.engine.engine import Engine
from redrive.model.ids import id_text
from redrive.model.message import Publication
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription

_PHONES: Final = "sms"


class DirectTexts:
    """Writes to telephones whose owners have not opted out."""

    def __init__(self, engine: Engine, opt_outs: OptOuts) -> None:
        self._engine = engine
        self._opt_outs = opt_outs

    async def phone(self, call: Call, number: str) -> Subscription:
        """The one subscription that stands for a telephone; nothing is made yet.

        Raises:
            AwsError: See `check_phone`.
        """
        await self.check_phone(call, number)
        name = ResourceName(call.account, f"{call.region}:{_PHONES}", number)
        return only_subscription(name, _PHONES, number)

    async def check_phone(self, call: Call, number: str) -> None:
        """Refuse an invalid or opted-out telephone number.

        Raises:
            AwsError: `InvalidParameter`: it is not a telephone number, or its owner wants no messages.
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
        topic = await topic_of(self._engine.resources, await self.phone(call, number))
        message_id = self._engine.runtime.message_id()
        urgent = {SMS_TYPE: ("String", TRANSACTIONAL)}
        published = PublishedMessage(
            id_text(message_id), names.arn_of(topic.name), call.now, attributes=urgent
        )
        publication = Publication(message_id, text, {}, {}, published.envelope(), len(text.encode()))
        await self._engine.messages.publish(topic, [publication])
