"""Parts of SNS that it could do without: mobile push, text messages, data protection. Each registers by one value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redrive.aws.sns.devices.applications import PlatformApplicationOperations
from redrive.aws.sns.devices.endpoints import PlatformEndpointOperations
from redrive.aws.sns.devices.platform import APPLICATION, DEVICE, OF_TOKEN
from redrive.aws.sns.devices.push import render
from redrive.aws.sns.notifications.notification_renderer import Render
from redrive.aws.sns.protection.audit import AuditLog
from redrive.aws.sns.protection.operations import DataProtectionOperations
from redrive.aws.sns.protection.screening import Screening
from redrive.aws.sns.sms.attributes import SMS_ATTRIBUTES, SmsAttributeOperations
from redrive.aws.sns.sms.sandbox import SANDBOX_NUMBER, SandboxOperations
from redrive.aws.sns.sms.telephones import CORRESPONDENT, OPT_OUT, SPENT, DirectTexts, OptOuts
from redrive.aws.sns.sms.text_messages import TextMessages
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.ports.facts import Listener


@dataclass(frozen=True, slots=True)
class SnsPart:
    """A part that adds to SNS."""

    operations: Sequence[object] = ()  # Objects with a method for each operation that the part carries out
    # By protocol, what makes requests of its deliveries.
    renderers: Mapping[str, Render] = field(default_factory=dict)
    # By protocol, told of its attempts and of what is published to one destination alone.
    logs: Mapping[str, Listener] = field(default_factory=dict)
    kinds: Sequence[DocumentKind[Any]] = ()  # The part's documents; a reset removes them
    screening: Screening | None = None  # Looks at what is published to topics with a data-protection policy


def mobile_push(engine: Engine) -> SnsPart:
    """Platform applications and their endpoints."""
    return SnsPart(
        operations=(PlatformApplicationOperations(engine), PlatformEndpointOperations(engine)),
        renderers={"application": render},
        kinds=(APPLICATION, DEVICE, OF_TOKEN),
    )


def text_messages(engine: Engine) -> SnsPart:
    """Attributes, opt-outs and the sandbox; texts as their accounts have set them."""
    documents = engine.resources.documents
    opt_outs = OptOuts(documents)
    return SnsPart(
        operations=(
            SmsAttributeOperations(documents),
            SandboxOperations(engine, DirectTexts(engine, opt_outs)),
            opt_outs,
        ),
        renderers={"sms": TextMessages(documents).render},
        kinds=(CORRESPONDENT, OPT_OUT, SANDBOX_NUMBER, SMS_ATTRIBUTES, SPENT),
    )


def data_protection(engine: Engine, audit_log: AuditLog) -> SnsPart:
    """Policies, carried out on what is published; findings go to the log."""
    return SnsPart(operations=(DataProtectionOperations(engine),), screening=Screening(engine, audit_log))
