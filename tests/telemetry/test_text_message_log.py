"""Entries about text messages, held to the example of "Viewing CloudWatch metrics and logs for SMS deliveries"."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest

from redrive.aws.cloudwatch.metrics.own_metrics import MetricName, names_of, series_of, unit_of
from redrive.aws.sns.direct_log import TextMessageLog
from redrive.aws.sns.notifications.notification import PublishedMessage
from redrive.aws.sns.status_log import StatusLog
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery, Outcome, Transition
from redrive.model.metric import MetricPoint, Series
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

ACCOUNT, REGION = "123456789012", "us-west-2"
QUEUE_RECORD = "+493012345678"
ALL = {
    "DeliveryStatusIAMRole": "arn:aws:iam::123456789012:role/sms",
    "DeliveryStatusSuccessSamplingRate": "100",
}
DIRECT = ResourceName(ACCOUNT, f"{REGION}:sms", QUEUE_RECORD)
TOPIC = ResourceName(ACCOUNT, REGION, "news")
TOLD = (("message_id", "id-1"), ("type", "Transactional"), ("parts", "2"), ("price", "0.0129"))
OK = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 40, (*TOLD, ("spent", "1.5")))
BUSY = Attempt(AttemptResult.FAILED, Reason.THROTTLED, 429, "ESME_RTHROTTLED", 40, TOLD)


class Kept:
    """The written lines and counted points."""

    def __init__(self, attributes: Mapping[str, str] | None) -> None:
        self.lines: list[tuple[ResourceName, str, int, dict[str, Any]]] = []
        self.points: list[MetricPoint] = []
        self.asked: list[str] = []
        self._attributes = attributes
        texts = TextMessageLog(self, random.Random(7), "stream", self.known, self.count)
        self.log = StatusLog(self, random.Random(7), "stream", {"sms": texts})

    def known(self, key: str) -> Mapping[str, str] | None:
        self.asked.append(key)
        return self._attributes

    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        self.lines.append((group, stream, at, orjson.loads(message)))

    def count(self, points: Sequence[MetricPoint]) -> None:
        self.points += points

    def values(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        return {(one.series.name, one.series.dimensions): one.statistics.total for one in self.points}


def fact(attempt: Attempt, outcome: Outcome, topic: ResourceName = DIRECT, text: str = "hello") -> Attempted:
    headers = PublishedMessage("34d9b400-c6dd-5444-820d-fbeb0f1f54cf", "arn", 0).envelope()
    sent_at = 1_467_074_434_558
    delivery = Delivery(
        2, 1, 0, 3, 9, sent_at, sent_at, None, bytes(15) + b"\1", None, None, None, headers, text
    )
    whose = Subscription("direct", topic, 2, ACCOUNT, "sms", QUEUE_RECORD)
    return Attempted(Topic(1, topic, "sns"), whose, delivery, attempt, Transition(outcome), sent_at + 639)


def test_the_entry_of_a_success() -> None:
    kept = Kept(ALL)
    kept.log.attempted(fact(OK, Outcome.DELIVERED))
    ((group, stream, at, entry),) = kept.lines
    assert group == ResourceName(ACCOUNT, REGION, f"sns/{REGION}/{ACCOUNT}/DirectPublishToPhoneNumber")
    assert (stream, at) == ("stream", 1_467_074_435_197)
    assert entry == {
        "notification": {
            "messageId": "34d9b400-c6dd-5444-820d-fbeb0f1f54cf",
            "timestamp": "2016-06-28 00:40:34.558",
        },
        "delivery": {
            "phoneCarrier": "Unknown Carrier",
            "mnc": 0,
            "numberOfMessageParts": 2,
            "destination": QUEUE_RECORD,
            "priceInUSD": 0.0129,
            "smsType": "Transactional",
            "mcc": 0,
            "providerResponse": "Message has been accepted by phone carrier",
            "dwellTimeMs": 599,
        },
        "status": "SUCCESS",
    }
    assert kept.asked == [f"{ACCOUNT}/{REGION}"]


def test_every_failed_attempt_has_an_entry() -> None:
    kept = Kept({**ALL, "DeliveryStatusSuccessSamplingRate": "0"})
    for outcome in (Outcome.RETRY, Outcome.DROPPED):
        kept.log.attempted(fact(BUSY, outcome))
    kept.log.attempted(fact(OK, Outcome.DELIVERED))
    assert [group.name.rpartition("/")[2] for group, *_ in kept.lines] == ["Failure", "Failure"]
    entry = kept.lines[0][3]
    assert (entry["status"], entry["delivery"]["providerResponse"]) == ("FAILURE", "ESME_RTHROTTLED")


def test_a_topic_s_telephones_are_in_its_own_groups() -> None:
    kept = Kept(ALL)
    kept.log.attempted(fact(OK, Outcome.DELIVERED, TOPIC))
    ((group, _, _, entry),) = kept.lines
    assert group.name == f"sns/{REGION}/{ACCOUNT}/news"
    assert entry["notification"]["topicArn"] == f"arn:aws:sns:{REGION}:{ACCOUNT}:news"


def test_parts_of_an_unpushed_text_message_are_counted() -> None:
    kept = Kept(ALL)
    nowhere = Attempt(AttemptResult.REFUSED, Reason.MISSING, 0, "not set up")
    kept.log.attempted(fact(nowhere, Outcome.DROPPED, text="x" * 161))
    delivery = kept.lines[0][3]["delivery"]
    assert (delivery["numberOfMessageParts"], delivery["priceInUSD"]) == (2, 0)


@pytest.mark.parametrize("attributes", [None, {}, {"DeliveryStatusSuccessSamplingRate": "100"}])
def test_without_a_logging_role_nothing_is_logged(attributes: Mapping[str, str] | None) -> None:
    kept = Kept(attributes)
    for attempt, outcome in ((OK, Outcome.DELIVERED), (BUSY, Outcome.DROPPED)):
        kept.log.attempted(fact(attempt, outcome))
    assert not kept.lines


def test_some_percent_of_the_successes() -> None:
    kept = Kept({**ALL, "DeliveryStatusSuccessSamplingRate": "30"})
    for _ in range(1000):
        kept.log.attempted(fact(OK, Outcome.DELIVERED))
    assert 250 < len(kept.lines) < 350


def test_success_rates_and_spending_are_counted() -> None:
    kept = Kept(None)
    kept.log.attempted(fact(BUSY, Outcome.RETRY))
    assert kept.points == []
    kept.log.attempted(fact(OK, Outcome.DELIVERED))
    assert kept.values() == {
        ("SMSSuccessRate", (("SMSType", "Transactional"),)): 1.0,
        ("SMSSuccessRate", (("PhoneNumber", QUEUE_RECORD),)): 1.0,
        ("SMSMonthToDateSpentUSD", ()): 1.5,
    }
    kept.points.clear()
    kept.log.attempted(fact(BUSY, Outcome.DEAD_LETTERED, TOPIC))
    assert kept.values() == {("SMSSuccessRate", (("SMSType", "Transactional"),)): 0.0}
    assert {(one.series.account, one.series.region) for one in kept.points} == {(ACCOUNT, REGION)}


def test_each_text_message_metric_is_found_by_its_name() -> None:
    kept = Kept(None)
    kept.log.attempted(fact(OK, Outcome.DELIVERED))
    for point in kept.points:
        (metric,) = names_of(point.series)
        assert series_of(ACCOUNT, REGION, metric) == [point.series]
        assert unit_of(metric) == ("Count" if metric.name == "SMSSuccessRate" else "None")
    for dimensions in ((), (("Country", "DE"),), (("TopicName", "news"),)):
        assert series_of(ACCOUNT, REGION, MetricName("AWS/SNS", "SMSSuccessRate", dimensions)) == []
    nobody: list[Series] = series_of(ACCOUNT, REGION, MetricName("AWS/SQS", "SMSMonthToDateSpentUSD"))
    assert all(names_of(one)[0].namespace != "AWS/SNS" for one in nobody)
