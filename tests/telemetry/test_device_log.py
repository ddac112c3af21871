"""Delivery logs of pushes to mobile devices, held to the examples of "Amazon SNS mobile app attributes"."""

import random
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from redrive.aws.sns.devices.platform import Application, ApplicationName
from redrive.aws.sns.direct_log import DeviceLog
from redrive.aws.sns.notifications.notification import PublishedMessage
from redrive.aws.sns.status_log import StatusLog
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery, Outcome, Transition
from redrive.model.metric import MetricPoint
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

ROLE = "arn:aws:iam::111122223333:role/feedback"
NAME = ApplicationName("111122223333", "us-east-1", "APNS_SANDBOX", "APNSPushApp")
ARN = "arn:aws:sns:us-east-1:111122223333:endpoint/APNS_SANDBOX/APNSPushApp/986cb8a1-4f6b-34b1-9a1b-d9e9cb553944"
TOPIC = ResourceName("111122223333", "us-east-1", "news")
GROUP = "sns/us-east-1/111122223333/app/APNS_SANDBOX/APNSPushApp"
TAKEN = Attempt(
    AttemptResult.DELIVERED, Reason.ACCEPTED, 200, '{"apns-id":"A1"}', 35, (("token", "the token"),)
)
GONE = Attempt(
    AttemptResult.REFUSED, Reason.MISSING, 400, '{"reason":"BadDeviceToken"}', 35, (("token", "the token"),)
)
ASKED = {
    "SuccessFeedbackRoleArn": ROLE,
    "FailureFeedbackRoleArn": ROLE,
    "SuccessFeedbackSampleRate": "100",
}


class Written:
    """Lines and points."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []
        self.points: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        assert (group.account, group.region, stream) == ("111122223333", "us-east-1", "stream")
        self.lines.append((group.name, orjson.loads(message)))

    def count(self, points: Sequence[MetricPoint]) -> None:
        for point in points:
            assert (point.series.account, point.series.region, point.at) == ("111122223333", "us-east-1", 0)
            key = (point.series.name, point.series.dimensions)
            self.points[key] = self.points.get(key, 0) + point.statistics.total


@pytest.fixture
def written() -> Written:
    return Written()


def log(written: Written, attributes: dict[str, str] | None) -> StatusLog:
    application = None if attributes is None else Application(NAME, attributes)
    devices = DeviceLog(written, random.Random(7), "stream", lambda _: application, written.count)
    return StatusLog(written, random.Random(7), "stream", {"application": devices})


def attempted(attempt: Attempt, outcome: Outcome = Outcome.DELIVERED, **topic_attributes: str) -> Attempted:
    headers = PublishedMessage("9655abe4-6ed6-5734-89f7-e6a6a42de02a", "arn", 1_000).envelope()
    delivery = Delivery(2, 1, 0, 3, 9, 1_000, 1_000, None, bytes(16), None, None, None, headers, "hello")
    subscription = Subscription("s", TOPIC, 2, TOPIC.account, "application", ARN)
    topic = Topic(1, TOPIC, "sns", attributes=topic_attributes)
    return Attempted(topic, subscription, delivery, attempt, Transition(outcome), 1_100)


def test_a_successful_push_is_logged_as_documented(written: Written) -> None:
    log(written, ASKED).attempted(attempted(TAKEN))
    ((group, entry),) = written.lines
    assert group == GROUP
    del entry["delivery"]["deliveryId"]
    assert entry == {
        "notification": {
            "messageId": "9655abe4-6ed6-5734-89f7-e6a6a42de02a",
            "timestamp": "1970-01-01 00:00:01.000",
        },
        "delivery": {
            "destination": ARN,
            "token": "the token",
            "providerResponse": '{"apns-id":"A1"}',
            "dwellTimeMs": 65,
            "attempts": 3,
            "statusCode": 200,
        },
        "status": "SUCCESS",
    }


def test_a_failure_has_a_group_of_its_own(written: Written) -> None:
    log(written, ASKED).attempted(attempted(GONE, Outcome.DROPPED))
    ((group, entry),) = written.lines
    assert group == f"{GROUP}/Failure"
    assert (entry["status"], entry["delivery"]["statusCode"], entry["delivery"]["token"]) == (
        "FAILURE",
        400,
        "the token",
    )


@pytest.mark.parametrize(
    ("attributes", "written_down"),
    [
        (None, []),
        ({}, []),
        ({"SuccessFeedbackRoleArn": ROLE}, []),
        ({"SuccessFeedbackRoleArn": ROLE, "SuccessFeedbackSampleRate": "0"}, []),
        ({"SuccessFeedbackSampleRate": "100"}, []),
        ({"SuccessFeedbackRoleArn": ROLE, "SuccessFeedbackSampleRate": "100"}, ["SUCCESS"]),
        ({"FailureFeedbackRoleArn": ROLE}, ["FAILURE", "FAILURE"]),
    ],
)
def test_pushes_are_logged_as_their_application_is_configured(
    written: Written, attributes: dict[str, str] | None, written_down: list[str]
) -> None:
    own = log(written, attributes)
    own.attempted(attempted(TAKEN))
    own.attempted(attempted(GONE, Outcome.RETRY))
    own.attempted(attempted(GONE, Outcome.DEAD_LETTERED))
    assert [entry["status"] for _, entry in written.lines] == written_down


def test_a_topic_may_ask_as_well(written: Written) -> None:
    log(written, ASKED).attempted(attempted(GONE, Outcome.DROPPED, ApplicationFailureFeedbackRoleArn=ROLE))
    groups = dict(written.lines)
    assert set(groups) == {f"{GROUP}/Failure", "sns/us-east-1/111122223333/news/Failure"}
    entry = groups["sns/us-east-1/111122223333/news/Failure"]
    assert entry["notification"]["topicArn"] == "arn:aws:sns:us-east-1:111122223333:news"
    assert entry["delivery"]["token"] == "the token"


def test_attempts_and_publications_to_devices_are_counted(written: Written) -> None:
    own = log(written, None)
    own.attempted(attempted(TAKEN))
    own.attempted(attempted(GONE, Outcome.RETRY))
    own.attempted(attempted(GONE, Outcome.DROPPED))
    device = Topic(1, ResourceName(NAME.account, "us-east-1:APNS_SANDBOX:APNSPushApp", "986cb8a1"), "sns")
    own.published(device, 2, 2, 30, 7)
    own.published(Topic(1, TOPIC, "sns"), 2, 2, 30, 7)
    application, kind = ("Application", "APNSPushApp"), ("Platform", "APNS_SANDBOX")
    assert written.points == {
        (name, dimensions): value
        for name, value in (
            ("NumberOfNotificationsDelivered", 1),
            ("NumberOfNotificationsFailed", 1),
            ("NumberOfMessagesPublished", 2),
            ("PublishSize", 30),
        )
        for dimensions in ((application,), (application, kind), (kind,))
    }
