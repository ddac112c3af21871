"""Amazon SNS, and the parts that it could do without: mobile push, text messages, data protection."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.sns import parts
from redrive.aws.sns.confirmations import latest_token
from redrive.aws.sns.devices.push import DeviceEndpoint
from redrive.aws.sns.dialect import SnsDeliveryProfile
from redrive.aws.sns.direct_log import DeviceLog, TextMessageLog
from redrive.aws.sns.facade import Sns
from redrive.aws.sns.notifications.notification import (
    CONFIRMATION_ENVELOPE,
    ENVELOPE,
    Links,
    UnsubscribeTokens,
)
from redrive.aws.sns.notifications.notification_renderer import (
    PATH_BEGINNING,
    NotificationRenderer,
    Signer,
    certificate_path,
)
from redrive.aws.sns.parts import SnsPart
from redrive.aws.sns.protection.audit import AuditLog
from redrive.aws.sns.service import SERVICE
from redrive.aws.sns.sms.attributes import SMS_ATTRIBUTES
from redrive.aws.sns.sms.telephones import Telephones
from redrive.aws.sns.status_log import StatusLog
from redrive.aws.wire.errors import AwsError
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.endpoints.on_use import EndpointOnUse
from redrive.endpoints.sms.gateway import MEMORY, read_gateway
from redrive.endpoints.sms.outbox import SentText, SmsOutbox
from redrive.engine.ports import Endpoint
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.runtime.machine import SystemClock
from redrive.server.owned import OwnedRoutes, json_answer, parameters
from redrive.settings import read_push_endpoints

if TYPE_CHECKING:  # for servers with a message centre alone
    from redrive.endpoints.sms.endpoint import SmsEndpoint

# As LocalStack has it. Who has a token can confirm the subscription of somebody else's endpoint: for tests alone.
_TOKENS: Final = "/_aws/sns/subscription-tokens"
_TEXTS: Final = "/_aws/sns/sms-messages"


def extension(core: Core, sns_parts: Sequence[SnsPart], encryption: Encryption | None = None) -> Extension:
    """SNS; notifications are signed with the installation's key, whose certificate is served here.

    `encryption` knows the keys of topics.
    """
    settings, signer = core.settings, Signer(core.pair)
    path = certificate_path(core.pair)
    renderers = {protocol: render for part in sns_parts for protocol, render in part.renderers.items()}
    links = Links(core.base_url, path, UnsubscribeTokens(core.secret))
    renderer = NotificationRenderer(links, signer, renderers)
    profile = SnsDeliveryProfile(
        renderer,
        core.runtime.clock,
        open_queues=settings.auth == "off",
        client_errors_delivered=settings.client_errors_count_as_delivered,
    )
    logs = {protocol: log for part in sns_parts for protocol, log in part.logs.items()}
    status_log = StatusLog(core.telemetry.logs, core.runtime.rng, core.stream, logs)

    async def certificate(request: Request) -> Response:
        if request.path != path:
            return Response(404, b"", "text/plain")
        return Response(200, core.pair.pem, "application/x-pem-file")

    async def subscription_token(request: Request) -> Response:
        """The latest token for the confirmation of a subscription, for its owner or, without `auth`, for anybody."""
        arn = unquote(request.path.removeprefix(f"{_TOKENS}/"))
        try:
            caller = await core.authentication.caller(request, "sns")
        except AwsError as error:
            return json_answer(error.status, {"message": error.message})
        is_owned = settings.auth == "off" or f":{caller.principal.account}:" in arn
        token = await latest_token(core.engine.resources.documents, arn) if is_owned else None
        if token is None:
            return json_answer(404, {"message": f"no token for {arn}"})
        return json_answer(200, {"subscription_token": token, "subscription_arn": arn})

    async def close() -> None:
        signer.close()

    return Extension(
        interface=Interface(
            services={
                "sns": Sns(
                    core.engine,
                    sns_parts,
                    core.secret,
                    core.sessions.identities,
                    settings.filter_policies_max,
                    encryption,
                )
            },
            paths={
                PATH_BEGINNING: certificate,
                **({_TOKENS: subscription_token} if settings.allow_reset else {}),
            },
            kinds=[*SERVICE.documents, *(kind for part in sns_parts for kind in part.kinds)],
        ),
        delivery=DeliveryParts(
            profiles={"sns": profile},
            listeners=[(status_log, ("sns",))],
            presenters={ENVELOPE: renderer.present, CONFIRMATION_ENVELOPE: renderer.present},
        ),
        lifecycle=Lifecycle(close=(close,)),
    )


def mobile_push(core: Core) -> Extension:
    """Mobile push of SNS, through the services of the platforms; its outcome is logged and counted."""
    urls = read_push_endpoints(core.settings.push_endpoints)
    services = EndpointOnUse(lambda: _push_services(core, urls))
    devices = DeviceEndpoint(core.engine, services)
    telemetry = core.telemetry
    log = DeviceLog(telemetry.logs, core.runtime.rng, core.stream, devices.application_of, telemetry.count)
    return Extension(
        delivery=DeliveryParts(
            endpoints={"application": devices},
            sns=replace(parts.mobile_push(core.engine), logs={"application": log}),
        ),
        lifecycle=Lifecycle(close=(services.close,)),
    )


def _push_services(core: Core, urls: Mapping[str, str]) -> Endpoint:
    from redrive.endpoints.push.endpoint import PushEndpoint  # noqa: PLC0415 - which brings JWT and X.509

    return PushEndpoint(SystemClock().now, core.runtime.rng, urls, core.ca_file)


def text_messages(core: Core) -> Extension:
    """Text messages of SNS, through the message centre, which is told who opts out."""
    outbox = SmsOutbox() if core.settings.sms_gateway == MEMORY else None
    centre = _message_centre(core) if outbox is None else None
    documents, telemetry = core.engine.resources.documents, core.telemetry
    price = Decimal(core.settings.sms_part_price)
    telephones = Telephones(outbox or centre, documents, core.runtime.clock.now, price)
    if centre is not None:
        centre.reader = telephones.receive
    attributes = partial(documents.known, SMS_ATTRIBUTES)
    log = TextMessageLog(telemetry.logs, core.runtime.rng, core.stream, attributes, telemetry.count)
    return Extension(
        interface=Interface() if outbox is None else _outbox_interface(core, outbox),
        delivery=DeliveryParts(
            endpoints={"sms": telephones}, sns=replace(parts.text_messages(core.engine), logs={"sms": log})
        ),
        lifecycle=Lifecycle(start=() if centre is None else (centre.start,)),
    )


def _outbox_interface(core: Core, outbox: SmsOutbox) -> Interface:
    """LocalStack's route to the texts that were sent, by account, region and number; DELETE forgets them."""

    def region_and_texts(request: Request, owner: ResourceName) -> tuple[str, list[SentText]]:
        query, account = parameters(request), owner.account
        if core.settings.auth == "off":
            account = query.get("accountId", account)
        region = query.get("region", core.settings.region)
        return region, list(outbox.of(account, region, query.get("phoneNumber")))

    async def show(request: Request, owner: ResourceName) -> Response:
        region, texts = region_and_texts(request, owner)
        return json_answer(200, {"sms_messages": _by_number(texts), "region": region})

    async def forget(request: Request, owner: ResourceName) -> Response:
        _, texts = region_and_texts(request, owner)
        for text in texts:
            outbox.texts.remove(text)
        return Response(204, b"")

    routes = OwnedRoutes(core.authentication, {("GET", _TEXTS): show, ("DELETE", _TEXTS): forget})
    return Interface(paths={_TEXTS: routes.answer}, reset=(outbox.clear,))


def _by_number(texts: Iterable[SentText]) -> dict[str, list[dict[str, str]]]:
    """Texts by the number that they were sent to, as LocalStack shows them."""
    messages: dict[str, list[dict[str, str]]] = {}
    for text in texts:
        message = {"PhoneNumber": text.number, "MessageId": text.message_id, "Message": text.message}
        messages.setdefault(text.number, []).append(message)
    return messages


def _message_centre(core: Core) -> "SmsEndpoint | None":
    """The message centre that the settings name, if any."""
    if not core.settings.sms_gateway:
        return None
    from redrive.endpoints.sms.endpoint import SmsEndpoint  # noqa: PLC0415 - as above

    return SmsEndpoint(SystemClock().now, read_gateway(core.settings.sms_gateway), core.ca_file)


def data_protection(core: Core) -> Extension:
    """Data protection of SNS; findings go to the log groups that policies name."""
    telemetry = core.telemetry
    audit_log = AuditLog(telemetry.logs, telemetry.count, core.runtime.rng, core.stream)
    return Extension(delivery=DeliveryParts(sns=parts.data_protection(core.engine, audit_log)))
