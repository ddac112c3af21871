"""Telephones: opt-outs, spending, and text messages published to one telephone.

It stands before the endpoint that hands text messages in. What it turns down is told in the words of "Amazon SNS SMS
delivery failure reasons". A price is known where the settings name one; without it a part costs nothing, so nothing
is ever too expensive.
"""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from string import whitespace
from typing import Final, NamedTuple

from redrive.aws.kit.call import Call
from redrive.aws.sns.documents import destinations, names
from redrive.aws.sns.documents.direct import only_subscription, topic_of
from redrive.aws.sns.documents.errors import PAGES, invalid
from redrive.aws.sns.documents.message import SMS_CHARS_MAX
from redrive.aws.sns.notifications.notification import PublishedMessage
from redrive.aws.sns.sms.attributes import MONTHLY_LIMIT, MONTHLY_LIMIT_DEFAULT, SMS_ATTRIBUTES
from redrive.aws.sns.sms.text_messages import SMS_TYPE, TRANSACTIONAL, price_max
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind, Endpoint, PushRequest
from redrive.engine.resources import Documents
from redrive.model.attempt import NO_ENDPOINT, Attempt, AttemptResult, Reason
from redrive.model.errors import Conflict, RedriveError
from redrive.model.names import ResourceName, id_text
from redrive.model.text_parts import parts_of
from redrive.model.topic import Publication, Subscription

logger = logging.getLogger(__name__)

OPT_OUT: Final[DocumentKind[str]] = DocumentKind(
    "sns_opt_out", lambda number: {"number": number}, lambda document: document["number"]
)


def key_of(account: str, region: str, number: str) -> str:
    """The key of a telephone number, with its plus sign or without."""
    return f"{account}/{region}/{number.removeprefix('+')}"


class OptOuts:
    """The numbers of each account's region that have opted out."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def has(self, call: Call, number: str) -> bool:
        """True if a number's owner wants no messages from the caller's account."""
        return await self._documents.get(OPT_OUT, key_of(call.account, call.region, number)) is not None

    async def check_if_phone_number_is_opted_out(self, call: Call, params: Structure) -> Structure:
        return {"isOptedOut": await self.has(call, _number(params))}

    async def list_phone_numbers_opted_out(self, call: Call, params: Structure) -> Structure:
        operation, prefix = "ListPhoneNumbersOptedOut", key_of(call.account, call.region, "")
        after = PAGES.after(operation, params)
        opt_outs = await self._documents.find(OPT_OUT, prefix, after, PAGES.size + 1)
        return PAGES.of(operation, params, opt_outs, str, lambda number: f"{prefix}{number}")

    async def opt_in_phone_number(self, call: Call, params: Structure) -> Structure:
        await self._documents.remove(OPT_OUT, key_of(call.account, call.region, _number(params)))
        return {}


def _number(params: Structure) -> str:
    number: str = params["phoneNumber"]
    if not destinations.is_phone(number):
        raise invalid("PhoneNumber Reason: input incorrectly formatted")
    return number


# "Opting out of receiving SMS messages".
STOP_WORDS: Final = frozenset(
    {
        *("ARRET", "ARRÊT", "CANCEL", "END", "OPT-OUT", "OPTOUT", "QUIT", "REMOVE", "STOP", "TD"),
        "UNSUBSCRIBE",
    }
)
_AROUND: Final = whitespace + "\"'.!"


class Spent(NamedTuple):
    """The spending of an account's region in a month, as `2026-11`, in USD."""

    month: str
    usd: Decimal


class Correspondent(NamedTuple):
    """An account's region that has written to a telephone."""

    account: str
    region: str


SPENT: Final[DocumentKind[Spent]] = DocumentKind(
    "sns_sms_spent",
    lambda spent: {"month": spent.month, "usd": str(spent.usd)},
    lambda document: Spent(document["month"], Decimal(document["usd"])),
)
CORRESPONDENT: Final[DocumentKind[Correspondent]] = DocumentKind(
    "sns_sms_correspondent",
    lambda correspondent: correspondent._asdict(),
    lambda document: Correspondent(**document),
)


class Telephones:
    """`redrive.engine.ports.Endpoint`: hands on what may be sent."""

    def __init__(
        self, gateway: Endpoint | None, documents: Documents, now: Callable[[], int], part_price: Decimal
    ) -> None:
        """Hand on to this endpoint.

        Args:
            gateway: Takes requests with what `TextMessages.headers` made; None: they are not sent.
            documents: Has who opted out, and what was spent.
            now: Milliseconds since the epoch, for the month.
            part_price: What each part of a text costs, in USD.
        """
        self._gateway = gateway
        self._documents = documents
        self._now = now
        self._part_price = part_price

    async def push(self, push_request: PushRequest) -> Attempt:
        """Hand it on or refuse it; the attempt's identifiers also tell its type, number of parts and price."""
        text, headers = push_request.body.decode(), push_request.headers
        parts = len(parts_of(text).parts)
        price = self._part_price * parts
        attempt = await self._refusal(push_request, text, price)
        spending: tuple[tuple[str, str], ...] = ()
        if attempt is None:
            attempt = await self._hand_on(push_request)
            if attempt.delivered and price:
                spending = await self._spend(push_request, price)
        identifiers = (("type", headers["Type"]), ("parts", str(parts)), ("price", str(price)))
        return replace(attempt, identifiers=(*attempt.identifiers, *identifiers, *spending))

    @property
    def set_up(self) -> bool:
        """True if there is a message centre to hand text messages to."""
        return self._gateway is not None

    async def close(self) -> None:
        """Let go of the endpoint."""
        if self._gateway is not None:
            await self._gateway.close()

    async def receive(self, number: str, text: str) -> None:
        """Handle a text from a telephone: a word like STOP opts out of all senders that have written to it."""
        if text.strip(_AROUND).upper() not in STOP_WORDS:
            logger.debug("sms.heard number=%s: not an opt-out keyword", number)
            return
        correspondents = await self._documents.find(CORRESPONDENT, _digits(number) + "/")
        for account, region in correspondents:
            with contextlib.suppress(Conflict):  # said already
                await self._documents.create(OPT_OUT, key_of(account, region, number), number)
        logger.info("sms.opted_out number=%s accounts=%d", number, len(correspondents))

    # ---- may it be sent? -------------------------------------------------------------------------------------

    async def _refusal(self, push_request: PushRequest, text: str, price: Decimal) -> Attempt | None:
        """The refusal of a text, for its length, opt-out, price or quota; None: it is sent."""
        account, region = push_request.headers["Account"], push_request.headers["Region"]
        if len(text) > SMS_CHARS_MAX:
            return _TOO_LONG
        if await self._documents.get(OPT_OUT, key_of(account, region, push_request.endpoint)) is not None:
            return _OPTED_OUT
        highest_price = price_max(push_request.headers)
        if highest_price is not None and price > highest_price:
            return _TOO_EXPENSIVE
        if price and await self._spending(f"{account}/{region}") + price > await self._limit(account, region):
            return _NO_QUOTA
        return None

    async def _limit(self, account: str, region: str) -> Decimal:
        stored = await self._documents.get(SMS_ATTRIBUTES, f"{account}/{region}") or {}
        return Decimal(stored.get(MONTHLY_LIMIT, MONTHLY_LIMIT_DEFAULT))

    async def _spending(self, key: str) -> Decimal:
        spent = await self._documents.get(SPENT, key)
        return spent.usd if spent is not None and spent.month == self._month() else Decimal(0)

    def _month(self) -> str:
        return f"{datetime.fromtimestamp(self._now() // 1000, UTC):%Y-%m}"

    async def _hand_on(self, push_request: PushRequest) -> Attempt:
        if self._gateway is None:
            return NO_ENDPOINT
        await self._remember(push_request)
        return await self._gateway.push(push_request)

    # ---- what is kept of it ----------------------------------------------------------------------------------

    async def _remember(self, push_request: PushRequest) -> None:
        """Remember the sender of a text message: its receiver may opt out of it."""
        correspondent = Correspondent(push_request.headers["Account"], push_request.headers["Region"])
        key = f"{_digits(push_request.endpoint)}/{correspondent.account}/{correspondent.region}"
        if await self._documents.get(CORRESPONDENT, key) is None:
            with contextlib.suppress(Conflict):
                await self._documents.create(CORRESPONDENT, key, correspondent)

    async def _spend(self, push_request: PushRequest, price: Decimal) -> tuple[tuple[str, str], ...]:
        """Add a price to the month's spending; the sum as an identifier, none if it cannot be written."""
        key, month = f"{push_request.headers['Account']}/{push_request.headers['Region']}", self._month()

        def with_price(spent: Spent) -> Spent:
            return Spent(month, price + (spent.usd if spent.month == month else 0))

        try:
            spent = await self._documents.update_or_create(SPENT, key, Spent(month, price), with_price)
        except RedriveError as error:
            logger.warning("sms.spent_unwritten account=%s usd=%s: %s", key, price, error)
            return ()
        return (("spent", str(spent.usd)),)


def _digits(number: str) -> str:
    return number.removeprefix("+")


def _attempt(reason: Reason, status: HTTPStatus, text: str) -> Attempt:
    return Attempt(AttemptResult.REFUSED, reason, status, text)


_TOO_LONG: Final = _attempt(Reason.TOO_LARGE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Message body is invalid")
_OPTED_OUT: Final = _attempt(Reason.DENIED, HTTPStatus.FORBIDDEN, "Phone number is opted out")
_TOO_EXPENSIVE: Final = _attempt(
    Reason.CLIENT_ERROR, HTTPStatus.PAYMENT_REQUIRED, "This delivery would exceed max price"
)
_NO_QUOTA: Final = _attempt(Reason.CLIENT_ERROR, HTTPStatus.PAYMENT_REQUIRED, "No quota left for account")


_PHONES: Final = "sms"


class DirectTexts:
    """Writes to telephones whose owners have not opted out."""

    def __init__(self, engine: Engine, opt_outs: OptOuts) -> None:
        self._engine = engine
        self._opt_outs = opt_outs

    async def phone(self, call: Call, number: str) -> Subscription:
        """The subscription that stands for a telephone, which need not be stored yet.

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
        """Send a text of the server's own to a telephone.

        Raises:
            AwsError: See `check_phone`.
        """
        topic = await topic_of(self._engine.resources, await self.phone(call, number))
        message_id = self._engine.runtime.message_id()
        attributes = {SMS_TYPE: ("String", TRANSACTIONAL)}
        published = PublishedMessage(
            id_text(message_id), names.arn_of(topic.name), call.now, attributes=attributes
        )
        publication = Publication(message_id, text, {}, {}, published.envelope(), len(text.encode()))
        await self._engine.messages.publish(topic, [publication])
