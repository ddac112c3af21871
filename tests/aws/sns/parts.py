"""SNS with all its parts, as the server puts it together."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from redrive.access.secret import InstallationSecret
from redrive.access.signing_pair import SigningPair, make_pair
from redrive.aws.sns.dialect import SnsDeliveryProfile
from redrive.aws.sns.notifications.notification import Links, UnsubscribeTokens
from redrive.aws.sns.notifications.notification_renderer import NotificationRenderer, Signer, certificate_path
from redrive.aws.sns.parts import SnsPart, data_protection, mobile_push, text_messages
from redrive.aws.sns.protection.audit import AuditLog
from redrive.engine.engine import Engine
from redrive.engine.ports import Clock
from redrive.testing import SimulatedClock

BASE_URL: Final = "http://sns.test"
SECRET: Final = InstallationSecret(b"s" * 32)
TOKENS: Final = UnsubscribeTokens(SECRET)
_MADE_AT: Final = 1_767_225_600_000


@cache
def signing_pair() -> SigningPair:
    """One key for all tests: making one takes up to 300 ms."""
    return make_pair(_MADE_AT)


def sns_profile(
    *,
    open_queues: bool,
    parts: Sequence[SnsPart] = (),
    base_url: str = BASE_URL,
    clock: Clock | None = None,
) -> SnsDeliveryProfile:
    """The delivery profile of topics; without parts, for the protocols that take notifications."""
    renderer = notification_renderer(signing_pair(), base_url, parts)
    return SnsDeliveryProfile(renderer, clock or SimulatedClock(), open_queues=open_queues)


def sns_parts(engine: Engine, audit_log: AuditLog) -> list[SnsPart]:
    """The parts of SNS besides topics and subscriptions."""
    return [mobile_push(engine), text_messages(engine), data_protection(engine, audit_log)]


def notification_renderer(
    pair: SigningPair, base_url: str, parts: Sequence[SnsPart] = ()
) -> NotificationRenderer:
    """Renders what subscribers get."""
    renderers = {protocol: render for part in parts for protocol, render in part.renderers.items()}
    return NotificationRenderer(Links(base_url, certificate_path(pair), TOKENS), Signer(pair), renderers)
