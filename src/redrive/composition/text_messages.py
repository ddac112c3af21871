"""Text messages: SNS's settings for them, and the line to a message centre, if one is named."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

from redrive.aws.sns.sms.attributes import SMS_ATTRIBUTES
from redrive.aws.sns.sms.log import TextMessageLog
from redrive.aws.sns.sms.part import text_messages
from redrive.aws.sns.sms.telephones import Telephones
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Lifecycle
from redrive.endpoints.sms.endpoint import SmsEndpoint
from redrive.endpoints.sms.gateway import read_gateway
from redrive.runtime.clock import SystemClock


def extension(core: Core) -> Extension:
    """Texts go through the message centre, and it hears who opts out."""
    centre = _message_centre(core)
    documents, telemetry = core.engine.resources.documents, core.telemetry
    price = Decimal(core.settings.sms_part_price)
    telephones = Telephones(centre, documents, core.runtime.clock.now, price)
    if centre is not None:
        centre.reader = telephones.heard
    attributes = partial(documents.known, SMS_ATTRIBUTES)
    log = TextMessageLog(telemetry.logs, core.runtime.chance, core.stream, attributes, telemetry.count)
    return Extension(
        delivery=DeliveryParts(
            endpoints={"sms": telephones},
            sns=replace(text_messages(core.engine), logs={"sms": log}),
        ),
        lifecycle=Lifecycle(
            start=() if centre is None else (centre.start,),
        ),
    )


def _message_centre(core: Core) -> SmsEndpoint | None:
    if not core.settings.sms_gateway:
        return None
    return SmsEndpoint(SystemClock().now, read_gateway(core.settings.sms_gateway), core.ca_file)
