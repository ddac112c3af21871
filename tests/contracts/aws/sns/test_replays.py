"""Archives and replays of FIFO topics, over the wire, on both stores and on a simulated clock."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from tests.contracts.aws.sns.client import Sns, Topic
from tests.contracts.aws.sqs.client import Queue, refused, text
from tests.services.server import Server

ARCHIVE = '{"MessageRetentionPeriod":"30"}'
MINUTE, DAY = 60, 86_400


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


@pytest.fixture
def topic(sns: Sns) -> Topic:
    return sns.topic(fifo=True, ContentBasedDeduplication="true", ArchivePolicy=ARCHIVE)


def _moment(server: Server, seconds: float) -> str:
    """A moment that is so many seconds from now."""
    at = datetime.fromtimestamp(server.now() + seconds, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _policy(server: Server, *, since: float, until: float | None = None) -> str:
    """A replay policy, in seconds from now."""
    policy = {"PointType": "Timestamp", "StartingPoint": _moment(server, since)}
    if until is not None:
        policy["EndingPoint"] = _moment(server, until)
    return orjson.dumps(policy).decode()


def _publish(topic: Topic, *bodies: str, group: str = "g", **params: Any) -> list[str]:
    return [topic.publish(body, MessageGroupId=group, **params)["MessageId"] for body in bodies]


def _drain(queue: Queue) -> list[dict[str, Any]]:
    """The notifications in a queue, in order, when nothing is under way any more."""
    queue.sqs.server.advance(0)
    found: list[dict[str, Any]] = []
    while messages := queue.receive():
        for message in messages:
            found.append(orjson.loads(message["Body"]))
            queue.delete(message)
    return found


def _texts(queue: Queue) -> list[tuple[str, bool]]:
    """Return the messages in a queue, and whether each is replayed."""
    return [(one["Message"], one.get("Replayed", False)) for one in _drain(queue)]


def _subscribe(topic: Topic, **attributes: str) -> tuple[Queue, str]:
    queue = topic.sns.sqs.fifo()
    return queue, topic.subscribe("sqs", queue.arn, **attributes)


def _set(topic: Topic, subscription: str, value: str) -> None:
    topic.sns.client.set_subscription_attributes(
        SubscriptionArn=subscription, AttributeName="ReplayPolicy", AttributeValue=value
    )


def _status(topic: Topic, subscription: str) -> str | None:
    shown = topic.sns.client.get_subscription_attributes(SubscriptionArn=subscription)["Attributes"]
    status: str | None = shown.get("ReplayStatus")
    return status


class TestReplays:
    def test_a_new_subscriber_gets_what_was_published_before(self, server: Server, topic: Topic) -> None:
        first = topic.queue(fifo=True)
        _publish(topic, "too old")
        server.advance(MINUTE)
        names = _publish(topic, "one", "two")
        server.advance(MINUTE)
        queue, subscription = _subscribe(topic, ReplayPolicy=_policy(server, since=-90))
        _publish(topic, "live")
        replayed = _drain(queue)
        assert [one["MessageId"] for one in replayed[:2]] == names
        originals = {one["MessageId"]: one for one in _drain(first)}
        for one in replayed[:2]:
            original = originals[one["MessageId"]] | {"UnsubscribeURL": one["UnsubscribeURL"]}
            assert one == original | {"Replayed": True}
        assert [one["Message"] for one in replayed[2:]] == ["live"]
        assert _status(topic, subscription) == "Completed"
        _publish(topic, "later")
        assert _texts(queue) == [("later", False)]

    def test_a_subscriber_gets_again_what_its_filter_lets_through(self, server: Server, topic: Topic) -> None:
        queue, subscription = _subscribe(topic, FilterPolicy='{"price":[{"numeric":[">",10]}]}')
        for price in ("5", "15", "25"):
            _publish(topic, price, MessageAttributes={"price": text(price, "Number")})
        assert _texts(queue) == [("15", False), ("25", False)]
        _set(topic, subscription, _policy(server, since=-MINUTE))
        assert _texts(queue) == [("15", True), ("25", True)]
        _set(topic, subscription, _policy(server, since=-MINUTE))  # once more: no deduplication is in the way
        assert _texts(queue) == [("15", True), ("25", True)]

    def test_long_replays_keep_the_order_of_groups(self, server: Server, topic: Topic) -> None:
        for start in range(0, 250, 10):
            entries = [
                {"Id": f"{number}", "Message": f"{number}", "MessageGroupId": f"g{number % 3}"}
                for number in range(start, start + 10)
            ]
            topic.call("publish_batch", PublishBatchRequestEntries=entries)
        queue, _ = _subscribe(topic, ReplayPolicy=_policy(server, since=-1))
        found = [int(body) for body, replayed in _texts(queue) if replayed]
        assert sorted(found) == list(range(250))
        for group in range(3):
            of_group = [number for number in found if number % 3 == group]
            assert of_group == sorted(of_group)

    def test_raw_deliveries_are_marked_by_an_attribute(self, server: Server, topic: Topic) -> None:
        _publish(topic, "raw", MessageAttributes={"n": text("7", "Number")})
        queue, _ = _subscribe(topic, RawMessageDelivery="true", ReplayPolicy=_policy(server, since=-MINUTE))
        server.advance(0)
        message = queue.one()
        assert message["Body"] == "raw"
        assert message["MessageAttributes"] == {"n": text("7", "Number"), "Replayed": text("true")}
        assert message["Attributes"]["MessageGroupId"] == "g"

    def test_standard_queues_get_them_too(self, server: Server, topic: Topic) -> None:
        _publish(topic, "one")
        queue = topic.queue(ReplayPolicy=_policy(server, since=-MINUTE))
        assert _texts(queue) == [("one", True)]


class TestEndingPoint:
    def test_a_replay_with_an_end_leaves_the_subscription_at_rest(self, server: Server, topic: Topic) -> None:
        queue, subscription = _subscribe(topic)
        _publish(topic, "one")
        server.advance(MINUTE)
        _publish(topic, "two")
        server.advance(MINUTE)
        assert len(_drain(queue)) == 2
        _set(topic, subscription, _policy(server, since=-150, until=-90))
        assert _texts(queue) == [("one", True)]
        assert _status(topic, subscription) == "Completed"
        for number in range(3):
            _publish(topic, f"missed {number}")
            server.advance(MINUTE)
        assert _drain(queue) == []
        _set(topic, subscription, _policy(server, since=-210))  # from the end of the one before
        _publish(topic, "live")
        assert [body for body, _ in _texts(queue)] == ["missed 0", "missed 1", "missed 2", "live"]
        _publish(topic, "later")
        assert _texts(queue) == [("later", False)]

    def test_an_end_that_is_to_come_is_waited_for(self, server: Server, topic: Topic) -> None:
        queue, subscription = _subscribe(topic)
        _set(topic, subscription, _policy(server, since=-1, until=MINUTE))
        assert _status(topic, subscription) in ("Pending", "In progress")
        _publish(topic, "in time")
        server.advance(MINUTE + 2)
        _publish(topic, "too late")
        server.advance(2)
        assert _texts(queue) == [("in time", True)]
        assert _status(topic, subscription) == "Completed"

    def test_without_a_policy_the_subscription_goes_on(self, server: Server, topic: Topic) -> None:
        queue, subscription = _subscribe(topic)
        _set(topic, subscription, _policy(server, since=-20, until=-10))
        server.advance(0)
        _publish(topic, "missed")
        _set(topic, subscription, "{}")
        _publish(topic, "next")
        assert _texts(queue) == [("next", False)]
        assert _status(topic, subscription) is None


class TestArchives:
    def test_messages_older_than_the_archive_keeps_are_removed(self, server: Server, topic: Topic) -> None:
        began = topic.attributes()["BeginningArchiveTime"]
        _publish(topic, "old")
        server.advance(20 * DAY)
        _publish(topic, "new")
        assert topic.attributes()["BeginningArchiveTime"] == began
        server.advance(11 * DAY)
        assert topic.attributes()["BeginningArchiveTime"] == _moment(server, -30 * DAY)
        queue, _ = _subscribe(topic, ReplayPolicy=_policy(server, since=-90 * DAY))
        assert _texts(queue) == [("new", True)]

    def test_a_policy_taken_away_forgets_everything(self, server: Server, topic: Topic) -> None:
        queue, subscription = _subscribe(topic)
        _publish(topic, "one")
        topic.set("ArchivePolicy", "{}")
        assert topic.attributes().keys().isdisjoint({"ArchivePolicy", "BeginningArchiveTime"})
        with refused("InvalidParameter", "Invalid parameter: ReplayPolicy: the topic has no archive policy"):
            _set(topic, subscription, _policy(server, since=-MINUTE))
        topic.set("ArchivePolicy", ARCHIVE)
        _drain(queue)
        _set(topic, subscription, _policy(server, since=-MINUTE))
        assert _texts(queue) == []

    def test_a_subscription_at_rest_goes_on_when_the_archive_ends(self, server: Server, topic: Topic) -> None:
        queue, subscription = _subscribe(topic)
        _set(topic, subscription, _policy(server, since=-20, until=-10))
        server.advance(0)
        topic.set("ArchivePolicy", "")
        server.advance(0)
        _publish(topic, "next")
        assert _texts(queue) == [("next", False)]

    def test_a_topic_that_archives_is_not_deleted(self, topic: Topic) -> None:
        with refused("InvalidState", "Cannot delete a topic with an active archive policy"):
            topic.call("delete_topic")
        topic.set("ArchivePolicy", "{}")
        topic.call("delete_topic")

    @pytest.mark.parametrize(
        "value", ["[]", '{"MessageRetentionPeriod":"0"}', '{"MessageRetentionPeriod":"366"}']
    )
    def test_malformed_archive_policies_are_refused(self, topic: Topic, value: str) -> None:
        with refused("InvalidParameter"):
            topic.set("ArchivePolicy", value)

    def test_standard_topics_have_no_archive(self, sns: Sns) -> None:
        with refused("InvalidParameter"):
            sns.topic(ArchivePolicy=ARCHIVE)

    @pytest.mark.parametrize(
        "policy",
        [
            '{"PointType":"Sequence","StartingPoint":"2026-01-01T00:00:00Z"}',
            '{"PointType":"Timestamp"}',
            '{"PointType":"Timestamp","StartingPoint":"yesterday"}',
            '{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00Z","EndingPoint":"2025-01-01T00:00:00Z"}',
            '{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00Z","Until":"2025-01-01T00:00:00Z"}',
        ],
    )
    def test_malformed_replay_policies_are_refused(self, topic: Topic, policy: str) -> None:
        _, subscription = _subscribe(topic)
        with refused("InvalidParameter"):
            _set(topic, subscription, policy)
