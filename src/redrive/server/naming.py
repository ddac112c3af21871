"""Names that operators give: a name, an ARN, or a queue's URL."""

from typing import Final
from urllib.parse import urlsplit

from redrive.aws.wire.arn import parse_arn
from redrive.model.names import ResourceName
from redrive.server.owned import ControlRefusal

_URL_PARTS: Final = 2  # of a queue's URL behind the host: account and name


def queue_named(where: ResourceName, text: object) -> ResourceName:
    """The queue that is meant.

    Args:
        where: Whose things are asked about.
        text: A name, an ARN or a URL.

    Raises:
        ControlRefusal: Nothing is named, or what is another account's.
    """
    name = _text("queue", text)
    if name.startswith("arn:"):
        return _by_arn(where, name, "sqs")
    if "://" in name:
        return _by_url(where, name)
    return where._replace(name=name)


def topic_named(where: ResourceName, text: object) -> ResourceName:
    """The topic that is meant, by name or ARN.

    Raises:
        ControlRefusal: Nothing is named, or what is another account's.
    """
    name = _text("topic", text)
    return _by_arn(where, name, "sns") if name.startswith("arn:") else where._replace(name=name)


def subscription_named(where: ResourceName, topic: object, name: object) -> tuple[ResourceName, str]:
    """The topic and the id of the subscription that is meant: both, or a subscription's ARN for the two.

    Raises:
        ControlRefusal: Nothing is named, or what is another account's.
    """
    whole = name if isinstance(name, str) and name.startswith("arn:") else topic
    if isinstance(whole, str) and whole.startswith("arn:"):
        topic_and_id = _by_arn(where, whole, "sns")
        topic_name, _, subscription_id = topic_and_id.name.partition(":")
        if subscription_id:
            return topic_and_id._replace(name=topic_name), subscription_id
    return topic_named(where, topic), _text("subscription", name)


def _text(kind: str, text: object) -> str:
    if not isinstance(text, str) or not text:
        raise ControlRefusal(f'"{kind}" must be a string that is not empty')
    return text


def _by_arn(where: ResourceName, text: str, service: str) -> ResourceName:
    try:
        arn = parse_arn(text)
    except ValueError as error:
        raise ControlRefusal(str(error)) from None
    if arn.service != service:
        raise ControlRefusal(f"{text} is of {arn.service}, not of {service}")
    return _own(where, ResourceName(arn.account, arn.region, arn.resource), text)


def _by_url(where: ResourceName, text: str) -> ResourceName:
    parts = urlsplit(text).path.strip("/").split("/")
    if len(parts) != _URL_PARTS:
        raise ControlRefusal(f"{text} is not the URL of a queue: http://HOST/ACCOUNT/NAME")
    return _own(where, ResourceName(parts[0], where.region, parts[1]), text)


def _own(where: ResourceName, queue_name: ResourceName, text: str) -> ResourceName:
    if queue_name.account != where.account:
        raise ControlRefusal(
            f"{text} belongs to account {queue_name.account}, and the request is made as account {where.account}"
        )
    return queue_name
