"""Replays: a subscription's `ReplayPolicy` and the state of the replay that it asks for.

https://docs.aws.amazon.com/sns/latest/dg/message-archiving-and-replay-subscriber.html
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from redrive.aws.sns.documents import json_text
from redrive.aws.sns.documents.errors import AttributeRefused
from redrive.engine.operations import Operations
from redrive.engine.resources import Draft
from redrive.model.task import ReplayState
from redrive.model.topic import Subscription, Topic

POLICY: Final = "ReplayPolicy"
STATUS: Final = "ReplayStatus"
_NAMES: Final = {"PointType", "StartingPoint", "EndingPoint"}
_STATUSES: Final = {
    ReplayState.PENDING: "Pending",
    ReplayState.RUNNING: "In progress",
    ReplayState.COMPLETED: "Completed",
    ReplayState.FAILED: "Failed",
}


class ReplaySpan(NamedTuple):
    """The time that is replayed: from a moment (ms), to another or until there is no more."""

    starts_at: int
    ends_at: int | None


def check(topic: Topic, value: str) -> str | None:
    """The text of a replay policy, as the subscription stores it; None if it asks for no replay.

    Raises:
        AttributeRefused: The policy is not acceptable, or there is nothing that could be replayed.
    """
    if not value:
        return None
    if not topic.archive_ms:
        raise AttributeRefused(f"{POLICY}: the topic has no archive policy")  # chosen
    document = json_text.read_object(POLICY, value, _NAMES)
    if not document:
        return None
    if document.get("PointType") != "Timestamp":
        raise AttributeRefused(f"{POLICY}: PointType must be Timestamp")  # chosen
    span = _span(document)
    if span.ends_at is not None and span.ends_at <= span.starts_at:
        raise AttributeRefused(f"{POLICY}: EndingPoint must be after StartingPoint")  # chosen
    return value


def _span(document: Mapping[str, Any]) -> ReplaySpan:
    ends_at = _read_moment(document, "EndingPoint") if "EndingPoint" in document else None
    return ReplaySpan(_read_moment(document, "StartingPoint"), ends_at)


def _read_moment(document: Mapping[str, Any], name: str) -> int:
    try:
        moment = datetime.fromisoformat(document.get(name, ""))
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise AttributeRefused(f"{POLICY}: {name} must be a UTC timestamp")  # chosen
    return int(moment.timestamp() * 1000)


async def follow_in(operations: Operations, draft: Draft, subscription: Subscription) -> None:
    """Begin the replay that the subscription's policy asks for, or end one where it asks for none.

    A subscription whose endpoint has not agreed yet gets nothing, nor what is replayed.
    """
    text = subscription.attributes.get(POLICY)
    if text is None:
        await operations.replays.end_in(draft, subscription)
    elif subscription.confirmed:
        await operations.replays.start_in(draft, subscription, *_span(orjson.loads(text)))


async def status(operations: Operations, subscription: Subscription) -> dict[str, str]:
    """`ReplayStatus`, where the subscription has a policy."""
    if POLICY not in subscription.attributes:
        return {}
    replay = await operations.replays.of(subscription)
    return {STATUS: _STATUSES.get(ReplayState.PENDING if replay is None else replay.state, "Pending")}
