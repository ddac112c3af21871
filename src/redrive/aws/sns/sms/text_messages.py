"""Attributes of a text message beside its text: sender, urgency and highest price.

A message's own attributes win over what `SetSMSAttributes` says for all ("Publishing SMS messages to a mobile phone").
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from redrive.aws.kit.messages import Attributes
from redrive.aws.sns.documents import destinations
from redrive.aws.sns.documents.errors import invalid
from redrive.aws.sns.notifications.notification import CONTENT_TYPE, PublishedMessage
from redrive.aws.sns.notifications.notification_renderer import TIMEOUT_MS
from redrive.aws.sns.sms.attributes import DEFAULT_SENDER, DEFAULT_TYPE, SENDER, SMS_ATTRIBUTES, TYPES
from redrive.engine.ports import PushRequest
from redrive.engine.resources import Documents
from redrive.model.delivery import Delivery
from redrive.model.topic import Subscription

SENDER_ID: Final = "AWS.SNS.SMS.SenderID"
SMS_TYPE: Final = "AWS.SNS.SMS.SMSType"
MAX_PRICE: Final = "AWS.SNS.SMS.MaxPrice"
ORIGINATION_NUMBER: Final = "AWS.MM.SMS.OriginationNumber"

TRANSACTIONAL: Final = "Transactional"
PROMOTIONAL: Final = "Promotional"
_PRIORITIES: Final = {PROMOTIONAL: "0", TRANSACTIONAL: "1"}  # SMPP's: 1 is the first above the normal

_ORIGINATION: Final = re.compile(r"\+?[0-9]{5,14}")
_PRICE: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

_RULES: Final[Mapping[str, Callable[[str], object]]] = {
    SENDER_ID: SENDER.fullmatch,
    SMS_TYPE: TYPES.__contains__,
    MAX_PRICE: _PRICE.fullmatch,
    ORIGINATION_NUMBER: _ORIGINATION.fullmatch,
}


def check_attributes(attributes: Attributes) -> None:
    """Refuse invalid values of attributes for text messages; raises AwsError (`InvalidParameter`)."""
    for name, rule in _RULES.items():
        if name in attributes and not rule(attributes[name].get("StringValue") or ""):
            raise invalid(f"MessageAttributes Reason: {name} is invalid")  # chosen


def account_and_region_of(subscription: Subscription) -> tuple[str, str]:
    """The account and the region that a telephone is written from."""
    topic = subscription.topic
    # The region of a single telephone's topic has `:sms` behind it.
    return topic.account, topic.region.partition(":")[0]


class TextMessages:
    """Knows what each account has set for its text messages."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def render(self, subscription: Subscription, delivery: Delivery) -> PushRequest:
        """The request of a text message."""
        headers = await self.headers(subscription, PublishedMessage.unpack(delivery.headers or b"{}"))
        number = destinations.without_separators(subscription.endpoint)
        return PushRequest(number, delivery.body.encode(), CONTENT_TYPE, headers, TIMEOUT_MS)

    async def headers(self, subscription: Subscription, published: PublishedMessage) -> dict[str, str]:
        """The headers beside the text, for the endpoint and for `Telephones`, which reads them first."""
        account, region = account_and_region_of(subscription)
        defaults = await self._documents.get(SMS_ATTRIBUTES, f"{account}/{region}") or {}
        values = {
            name: value
            for name, (_, value) in published.attributes.items()
            if name in _RULES and _RULES[name](value)
        }
        kind = values.get(SMS_TYPE) or defaults.get(DEFAULT_TYPE) or PROMOTIONAL
        sender = values.get(ORIGINATION_NUMBER) or values.get(SENDER_ID) or defaults.get(DEFAULT_SENDER) or ""
        headers = {
            "Account": account,
            "Region": region,
            "Type": kind,
            "Priority": _PRIORITIES[kind],
            "Sender": sender,
            "Message-ID": f"{published.id}.{subscription.id}",
        }
        return headers | ({"Price-Max": values[MAX_PRICE]} if MAX_PRICE in values else {})


def price_max(headers: Mapping[str, str]) -> Decimal | None:
    """The highest price of the message, in USD."""
    return Decimal(headers["Price-Max"]) if "Price-Max" in headers else None
