"""Protocols of subscriptions, a row each: the form of their endpoints, their retries, and what they are sent."""

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from redrive.aws.sns.documents import names
from redrive.aws.sns.documents.errors import error, invalid
from redrive.aws.wire.arn import Arn, parse_arn, read_arn
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import Batch, Plan
from redrive.model.retry_plans import CUSTOMER_ENDPOINT, HTTP_DEFAULT, MANAGED_ENDPOINT, PLANS
from redrive.model.topic import Topic

HTTP: Final = frozenset({"http", "https"})
ENDPOINT_CHARS_MAX: Final = 2048
MAILS_PER_SECOND: Final = 10  # for each subscription ("Amazon SNS endpoints and quotas")

# What can be written behind "To:" as it stands (RFC 5322, 3.2.3: atoms with dots between them), in a domain with a dot.
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_EMAIL: Final = re.compile(rf"{_ATOM}(\.{_ATOM})*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
# Digits of a telephone number, with single separators between them where a person wrote them. E.164 ends at 15
# digits; a number of 19 was recorded as good enough.
_PHONE: Final = re.compile(r"\+?[1-9][0-9]{1,18}")
_BETWEEN: Final = re.compile(r"[./-]")
_SEPARATED: Final = re.compile(r"\+?[0-9]+([./-][0-9]+)*")


class MessageForm(enum.Enum):
    """The form in which an endpoint is sent a message."""

    TEXT = enum.auto()  # Its text, unless `SnsPart.renderers` has the protocol
    NOTIFICATION = enum.auto()  # The signed document, or in raw delivery the text, with SNS's headers
    MAIL = enum.auto()  # Its text with a link to leave
    MAIL_DOCUMENT = enum.auto()  # The signed document as a mail
    EVENT = enum.auto()  # A function's event
    RECORD = enum.auto()  # A line of a stream


@dataclass(frozen=True, slots=True, kw_only=True)
class SnsProtocol:
    """A protocol of subscriptions."""

    # Refuses an endpoint that it cannot reach, by the protocol and the endpoint.
    check: Callable[[str, str], None]
    plan: Plan  # How often it is tried and how fast; a delivery policy replaces that of HTTP
    form: MessageForm = MessageForm.TEXT  # What its endpoints are sent
    # An endpoint has to agree first, and may leave by a link: what it gets is seen by people, as what a
    # queue, a function or a telephone gets never is.
    asks: bool = False
    raw: bool = False  # It can deliver the message alone
    # Endpoints are those of Amazon's services: they take large messages, and give their requests ids.
    of_service: bool = False
    own_text: bool = True  # A message may have its own text for it; mobile platforms have one each
    needs_role: bool = False  # A subscription names the role that messages are handed over by
    # Beginning of the attributes by which a topic asks for a log of deliveries; empty: there is no log.
    feedback: str = ""
    set_up_by: str = ""  # The option that lets this server push to its endpoints; empty: it needs none

    @property
    def schedule_name(self) -> str:
        """The name of its retry schedule among the published ones."""
        return next(name for name, row in PLANS.items() if row.schedule is self.plan.schedule)


def check_endpoint(topic: Topic, protocol: str, endpoint: str) -> None:
    """Refuse a protocol SNS does not have, or an endpoint the protocol cannot reach.

    Raises:
        AwsError: `InvalidParameter`.
    """
    if protocol not in PROTOCOLS:
        raise invalid(f"Amazon SNS does not support this protocol string: {protocol}")
    if topic.ordered and protocol != "sqs":
        raise invalid(f"Invalid protocol type: {protocol}")
    if len(endpoint) > ENDPOINT_CHARS_MAX:
        raise invalid(f"Endpoint Reason: must have at most {ENDPOINT_CHARS_MAX} characters")
    PROTOCOLS[protocol].check(protocol, endpoint)
    if protocol == "sqs" and endpoint.endswith(names.FIFO_SUFFIX) and not topic.ordered:
        raise invalid(
            "Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics"
        )


def agrees(protocol: str, endpoint: str, account: str) -> bool:
    """Returns whether an endpoint needs not be asked: a resource of the subscriber's account, or of no account (SMS)."""
    if PROTOCOLS[protocol].asks:
        return False
    return not endpoint.startswith("arn:") or parse_arn(endpoint).account == account


def is_phone(text: str) -> bool:
    """Returns whether a text is a telephone number that can be published to: `+49301234567`."""
    return _PHONE.fullmatch(text) is not None


def without_separators(text: str) -> str:
    """A telephone number without the separators between its digits."""
    return _BETWEEN.sub("", text)


def _check_url(protocol: str, endpoint: str) -> None:
    try:
        url = urlsplit(endpoint)
        host = url.hostname or ""
        url.port  # noqa: B018 - raises ValueError for an invalid one
    except ValueError:
        raise invalid("Endpoint must match the specified protocol") from None
    if url.scheme != protocol or not host or "_" in host or not endpoint.isprintable() or " " in endpoint:
        raise invalid("Endpoint must match the specified protocol")


def _check_email(_: str, endpoint: str) -> None:
    if not _EMAIL.fullmatch(endpoint):
        raise invalid("Email address")


def _check_phone(_: str, endpoint: str) -> None:
    if not (_SEPARATED.fullmatch(endpoint) and is_phone(without_separators(endpoint))):
        raise error("InvalidParameter", f"Invalid SMS endpoint: {endpoint}")


def _check_queue(_: str, endpoint: str) -> None:
    if names.queue_in(endpoint) is None:
        raise invalid("SQS endpoint ARN")


def _check_function(_: str, endpoint: str) -> None:
    if not _arn_of_service(endpoint, invalid("Lambda endpoint ARN"), "lambda").resource.startswith(
        "function:"
    ):
        raise invalid("Lambda endpoint ARN")


def _check_stream(_: str, endpoint: str) -> None:
    if not _arn_of_service(endpoint, invalid("Firehose endpoint ARN"), "firehose").resource.startswith(
        "deliverystream/"
    ):
        raise invalid("Firehose endpoint ARN")


def _check_application(_: str, endpoint: str) -> None:
    refusal = invalid(f"Application endpoint arn invalid:{endpoint}")
    if not _arn_of_service(endpoint, refusal, "sns").resource.startswith("endpoint/"):
        raise refusal


def _arn_of_service(endpoint: str, refusal: AwsError, service: str) -> Arn:
    parsed = read_arn(endpoint)
    if parsed is None or parsed.service != service:
        raise refusal
    return parsed


_MANAGED: Final = Plan(MANAGED_ENDPOINT)
_CUSTOMER: Final = Plan(CUSTOMER_ENDPOINT)
# A call of PutRecordBatch takes 500 records and 4 MiB, in base 64 and with all that a notification adds. Eight at once
# keep up with any stream, and of the largest messages hold no more than a hundred MiB.
_STREAM: Final = Plan(
    MANAGED_ENDPOINT,
    throttled_schedule=CUSTOMER_ENDPOINT,
    concurrency_max=8,
    batch=Batch(deliveries_max=500, bytes_target=2_500_000),
)
_HTTP: Final = SnsProtocol(
    check=_check_url,
    plan=Plan(HTTP_DEFAULT),
    form=MessageForm.NOTIFICATION,
    asks=True,
    raw=True,
    feedback="HTTP",
)
_MAIL: Final = SnsProtocol(
    check=_check_email,
    plan=replace(_CUSTOMER, rate_max=MAILS_PER_SECOND),
    form=MessageForm.MAIL,
    asks=True,
    set_up_by="--smtp-host",
)
#: By their names.
PROTOCOLS: Final[Mapping[str, SnsProtocol]] = {
    "http": _HTTP,
    "https": _HTTP,
    "firehose": SnsProtocol(
        check=_check_stream,
        plan=_STREAM,
        form=MessageForm.RECORD,
        raw=True,
        of_service=True,
        needs_role=True,
        feedback="Firehose",
        set_up_by="firehose=URL in --aws-endpoints",
    ),
    "lambda": SnsProtocol(
        check=_check_function,
        plan=_MANAGED,
        form=MessageForm.EVENT,
        of_service=True,
        feedback="Lambda",
        set_up_by="--functions on, or lambda=URL in --aws-endpoints",
    ),
    "application": SnsProtocol(
        check=_check_application, plan=_CUSTOMER, own_text=False, feedback="Application"
    ),
    "sqs": SnsProtocol(check=_check_queue, plan=_MANAGED, raw=True, of_service=True, feedback="SQS"),
    "email": _MAIL,
    "email-json": replace(_MAIL, form=MessageForm.MAIL_DOCUMENT),
    "sms": SnsProtocol(check=_check_phone, plan=_CUSTOMER, set_up_by="--sms-gateway"),
}
