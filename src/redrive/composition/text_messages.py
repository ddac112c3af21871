"""Text messages: SNS's settings for them, and the line to a message centre, if one is named."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Final

from redrive.aws.sns.parts import text_messages
from redrive.aws.sns.sms.attributes import SMS_ATTRIBUTES
from redrive.aws.sns.sms.log import TextMessageLog
from redrive.aws.sns.sms.telephones import Telephones
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.endpoints.sms.gateway import MEMORY, read_gateway
from redrive.endpoints.sms.outbox import Outbox, Text
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.runtime.machine import SystemClock
from redrive.server.owned import OwnedRoutes, json_answer, parameters

if TYPE_CHECKING:  # for servers with a message centre alone
    from redrive.endpoints.sms.endpoint import SmsEndpoint

_TEXTS: Final = "/_aws/sns/sms-messages"


def extension(core: Core) -> Extension:
    """Texts go through the message centre, and it hears who opts out."""
    outbox = Outbox() if core.settings.sms_gateway == MEMORY else None
    centre = _message_centre(core) if outbox is None else None
    documents, telemetry = core.engine.resources.documents, core.telemetry
    price = Decimal(core.settings.sms_part_price)
    telephones = Telephones(outbox or centre, documents, core.runtime.clock.now, price)
    if centre is not None:
        centre.reader = telephones.heard
    attributes = partial(documents.known, SMS_ATTRIBUTES)
    log = TextMessageLog(telemetry.logs, core.runtime.rng, core.stream, attributes, telemetry.count)
    return Extension(
        interface=Interface() if outbox is None else _outbox_interface(core, outbox),
        delivery=DeliveryParts(
            endpoints={"sms": telephones},
            sns=replace(text_messages(core.engine), logs={"sms": log}),
        ),
        lifecycle=Lifecycle(
            start=() if centre is None else (centre.start,),
        ),
    )


def _outbox_interface(core: Core, outbox: Outbox) -> Interface:
    """LocalStack's route to the texts that were sent, by account, region and number; DELETE forgets them."""

    def chosen(request: Request, owner: ResourceName) -> tuple[str, list[Text]]:
        query, account = parameters(request), owner.account
        if core.settings.auth == "off":
            account = query.get("accountId", account)
        region = query.get("region", core.settings.region)
        return region, list(outbox.of(account, region, query.get("phoneNumber")))

    async def show(request: Request, owner: ResourceName) -> Response:
        region, texts = chosen(request, owner)
        return json_answer(200, {"sms_messages": _by_number(texts), "region": region})

    async def forget(request: Request, owner: ResourceName) -> Response:
        for text in chosen(request, owner)[1]:
            outbox.texts.remove(text)
        return Response(204, b"")

    routes = OwnedRoutes(core.authentication, {("GET", _TEXTS): show, ("DELETE", _TEXTS): forget})
    return Interface(paths={_TEXTS: routes.answer}, reset=(outbox.clear,))


def _by_number(texts: Iterable[Text]) -> dict[str, list[dict[str, str]]]:
    messages: dict[str, list[dict[str, str]]] = {}
    for text in texts:
        message = {"PhoneNumber": text.number, "MessageId": text.message_id, "Message": text.message}
        messages.setdefault(text.number, []).append(message)
    return messages


def _message_centre(core: Core) -> "SmsEndpoint | None":
    if not core.settings.sms_gateway:
        return None
    from redrive.endpoints.sms.endpoint import SmsEndpoint  # noqa: PLC0415 - as above

    return SmsEndpoint(SystemClock().now, read_gateway(core.settings.sms_gateway), core.ca_file)
