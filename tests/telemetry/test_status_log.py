"""Delivery-status entries, held to the three of the AWS blog's article on dead-letter queues and to recorded ones."""

import random
from dataclasses import replace
from datetime import datetime
from hashlib import md5
from typing import Any
from uuid import UUID

import orjson
import pytest

from redrive.aws.sns.notifications.notification import Confirmation, PublishedMessage
from redrive.aws.sns.status_log import StatusLog
from redrive.engine.ports.facts import Accepted, Attempted, DeadLettered
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery, Outcome, Transition
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic
from tests.aws.sns.parts import sns_profile

HERE = ResourceName("123456789012", "us-east-1", "Rental-Orders")
ROLE = "arn:aws:iam::123456789012:role/feedback"
LOGGED = {
    f"{protocol}{name}": value
    for protocol in ("SQS", "HTTP", "Lambda", "Firehose", "Application")
    for name, value in [
        ("SuccessFeedbackRoleArn", ROLE),
        ("FailureFeedbackRoleArn", ROLE),
        ("SuccessFeedbackSampleRate", "100"),
    ]
}
TOPIC = Topic(1, HERE, "sns", attributes=LOGGED)
DEAD_LETTERS = HERE._replace(name="Rental-Fulfilment-Fanout-DLQ")
POLICY = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:123456789012:Rental-Fulfilment-Fanout-DLQ"}'
QUEUE = Subscription(
    id="s",
    topic=HERE,
    queue_id=2,
    owner=HERE.account,
    protocol="sqs",
    endpoint="arn:aws:sqs:us-east-1:123456789012:Rental-Fulfilment",
    dead_letter=DEAD_LETTERS,
    attributes={"RedrivePolicy": POLICY},
)
PROFILE = sns_profile(open_queues=True)
MISSING = PROFILE.refusal(PROFILE.context(TOPIC, QUEUE), None, "")
assert MISSING is not None


class Lines:
    """Collects the log's lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[ResourceName, str, int, str]] = []

    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        self.lines.append((group, stream, at, message))

    def one(self) -> dict[str, Any]:
        ((_, _, _, message),) = self.lines
        entry: dict[str, Any] = orjson.loads(message)
        return entry


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def log(lines: Lines) -> StatusLog:
    return StatusLog(lines, random.Random(7), "stream")


def moment(text: str) -> int:
    return round(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


def message(message_id: str, sent_at: int, attempts: int = 1) -> Delivery:
    headers = PublishedMessage(message_id, "arn", sent_at).envelope()
    return Delivery(
        2, 1, 0, attempts, 9, sent_at, sent_at, None, bytes(15) + b"\1", None, None, None, headers, "hello"
    )


def accepted(*identifiers: tuple[str, str], status: int = 200, response: str = "") -> Attempt:
    return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, status, response, 51, identifiers)


def attempted(
    attempt: Attempt, subscription: Subscription = QUEUE, topic: Topic = TOPIC, attempts: int = 1
) -> Attempted:
    outcome = Outcome.DELIVERED if attempt.delivered else Outcome.DEAD_LETTERED
    delivery = message("e8c2bb09-235c-5f5d-b583-efd8df0f7d74", 1_000, attempts)
    return Attempted(topic, subscription, delivery, attempt, Transition(outcome), 1_058)


def of(protocol: str, endpoint: str) -> Subscription:
    return replace(QUEUE, protocol=protocol, endpoint=endpoint, dead_letter=None, attributes={})


# ---- the article's entries -------------------------------------------------------------------------------------

SUCCESS = r"""
{
  "notification": {
    "messageMD5Sum": "7bb3327ac55e49485bad42e159ca4d4b",
    "messageId": "e8c2bb09-235c-5f5d-b583-efd8df0f7d74",
    "topicArn": "arn:aws:sns:us-east-1:123456789012:Rental-Orders",
    "timestamp": "2019-10-04 05:13:55.876"
  },
  "delivery": {
    "deliveryId": "6adf232e-fb12-5062-a564-27ff3741051f",
    "redrivePolicy": "{\"deadLetterTargetArn\": \"arn:aws:sqs:us-east-1:123456789012:Rental-Fulfilment-Fanout-DLQ\"}",
    "destination": "arn:aws:sqs:us-east-1:123456789012:Rental-Fulfilment",
    "providerResponse": "{\"sqsRequestId\":\"b2608a46-ccc4-51cc-003d-de972097debc\",\"sqsMessageId\":\"05fecd22-60a1-4d7d-bb79-026d49700b5a\"}",
    "dwellTimeMs": 58,
    "attempts": 1,
    "statusCode": 200
  },
  "status": "SUCCESS"
}
"""  # noqa: E501 - as printed

FAILURE = r"""
{
  "notification": {
    "messageMD5Sum": "81c395cbd350da6bedfe3b24db9517b0",
    "messageId": "9959db9d-25c8-57a6-9439-8e5be8f71a1f",
    "topicArn": "arn:aws:sns:us-east-1:123456789012:Rental-Orders",
    "timestamp": "2019-10-04 05:16:51.116"
  },
  "delivery": {
    "deliveryId": "be743821-4c2c-5acc-a586-6cf0807f6fb1",
    "redrivePolicy": "{\"deadLetterTargetArn\": \"arn:aws:sqs:us-east-1:123456789012:Rental-Fulfilment-Fanout-DLQ\"}",
    "destination": "arn:aws:sqs:us-east-1:123456789012:Rental-Fulfilment",
    "providerResponse": "{\"ErrorCode\":\"AWS.SimpleQueueService.NonExistentQueue\", \"ErrorMessage\":\"The specified queue does not exist or you do not have access to it.\",\"sqsRequestId\":\"Unrecoverable\"}",
    "dwellTimeMs": 53,
    "attempts": 1,
    "statusCode": 400
  },
  "status": "FAILURE"
}
"""  # noqa: E501 - as printed

DEAD_LETTER = r"""
{
  "notification": {
    "messageMD5Sum": "81c395cbd350da6bedfe3b24db9517b0",
    "messageId": "8959db9d-25c8-57a6-9439-8e5be8f71a1f",
    "topicArn": "arn:aws:sns:us-east-1:123456789012:Rental-Orders",
    "timestamp": "2019-10-04 05:16:52.876"
  },
  "delivery": {
    "deliveryId": "a877c79f-a3ee-5105-9bbd-92596eae0232",
    "destination":"arn:aws:sqs:us-east-1:123456789012:Rental-Fulfilment-Fanout-DLQ",
    "providerResponse": "{\"sqsRequestId\":\"8cef1af5-e86a-519e-ad36-4f33252aa5ec\",\"sqsMessageId\":\"2b742c5c-0750-4ec5-a717-b95897adda8e\"}",
    "dwellTimeMs": 51,
    "attempts": 1,
    "statusCode": 200
  },
  "status": "SUCCESS"
}
"""  # noqa: E501 - as printed


def check(lines: Lines, printed: str) -> None:
    """The entry is the article's, member by member and in its order, but for the message's text and the own id."""
    expected, entry = orjson.loads(printed), lines.one()
    expected["notification"]["messageMD5Sum"] = md5(b"hello").hexdigest()
    own_id = entry["delivery"]["deliveryId"]
    assert UUID(own_id).version == 5
    expected["delivery"]["deliveryId"] = own_id
    assert orjson.dumps(entry) == orjson.dumps(expected)


def test_the_article_s_success(log: StatusLog, lines: Lines) -> None:
    at = moment("2019-10-04 05:13:55.876")
    attempt = accepted(
        ("request_id", "b2608a46-ccc4-51cc-003d-de972097debc"),
        ("message_id", "05fecd22-60a1-4d7d-bb79-026d49700b5a"),
    )
    delivery = message("e8c2bb09-235c-5f5d-b583-efd8df0f7d74", at)
    ended_at = at + 58 + attempt.duration_ms
    log.attempted(Attempted(TOPIC, QUEUE, delivery, attempt, Transition(Outcome.DELIVERED), ended_at))
    check(lines, SUCCESS)
    assert lines.lines[0][:3] == (
        HERE._replace(name="sns/us-east-1/123456789012/Rental-Orders"),
        "stream",
        ended_at,
    )


def test_the_article_s_failure(log: StatusLog, lines: Lines) -> None:
    at = moment("2019-10-04 05:16:51.116")
    delivery = message("9959db9d-25c8-57a6-9439-8e5be8f71a1f", at)
    log.attempted(Attempted(TOPIC, QUEUE, delivery, MISSING, Transition(Outcome.DEAD_LETTERED), at + 53))
    check(lines, FAILURE)
    assert lines.lines[0][0].name == "sns/us-east-1/123456789012/Rental-Orders/Failure"


def test_the_article_s_dead_letter(log: StatusLog, lines: Lines) -> None:
    at = moment("2019-10-04 05:16:52.876")
    attempt = accepted(
        ("request_id", "8cef1af5-e86a-519e-ad36-4f33252aa5ec"),
        ("message_id", "2b742c5c-0750-4ec5-a717-b95897adda8e"),
    )
    delivery = message("8959db9d-25c8-57a6-9439-8e5be8f71a1f", at - 1_760)
    log.dead_lettered(DeadLettered(TOPIC, QUEUE, delivery, attempt, at + 51))
    check(lines, DEAD_LETTER)
    assert lines.lines[0][0].name == "sns/us-east-1/123456789012/Rental-Orders"


# ---- what endpoints say ----------------------------------------------------------------------------------------

_FUNCTION = of("lambda", "arn:aws:lambda:us-east-1:123456789012:function:f")


@pytest.mark.parametrize(
    ("subscription", "attempt", "said"),
    [
        (of("http", "http://a/"), accepted(response="OK"), "OK"),
        (of("https", "https://a/"), accepted(status=204), "No Content"),
        (
            of("http", "http://a/"),
            Attempt(AttemptResult.FAILED, Reason.TIMED_OUT, 0, "No answer", 9),
            "No answer",
        ),
        (of("http", "http://a/"), Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 599, "", 9), ""),
        (of("application", "arn:x"), accepted(response='{"messageId":"m"}'), '{"messageId":"m"}'),
        (_FUNCTION, accepted(("request_id", "r"), status=202), '{"lambdaRequestId":"r"}'),
        (
            _FUNCTION,
            Attempt(AttemptResult.FAILED, Reason.THROTTLED, 429, 'too "many"', 9),
            '{"ErrorCode":"Throttling", "ErrorMessage":"too \\"many\\"","lambdaRequestId":"Unrecoverable"}',
        ),
        (of("firehose", "arn:f"), accepted(("request_id", "r")), '{"firehoseRequestId":"r"}'),
    ],
)
def test_each_protocol_has_its_provider_response(
    log: StatusLog, lines: Lines, subscription: Subscription, attempt: Attempt, said: str
) -> None:
    log.attempted(attempted(attempt, subscription))
    delivery = lines.one()["delivery"]
    assert delivery["providerResponse"] == said
    assert (delivery["destination"], delivery["statusCode"]) == (subscription.endpoint, attempt.status)
    assert "redrivePolicy" not in delivery


def test_a_webhook_s_password_is_not_logged(log: StatusLog, lines: Lines) -> None:
    log.attempted(attempted(accepted(), of("https", "https://user:secret@example.com/hook")))
    assert lines.one()["delivery"]["destination"] == "https://user:****@example.com/hook"


def test_a_function_s_entry_does_not_count_attempts(log: StatusLog, lines: Lines) -> None:
    log.attempted(attempted(accepted(status=202), _FUNCTION))
    assert list(lines.one()["delivery"]) == [
        "deliveryId",
        "destination",
        "providerResponse",
        "dwellTimeMs",
        "statusCode",
    ]


def test_a_request_without_an_id_gets_one(log: StatusLog, lines: Lines) -> None:
    log.attempted(attempted(accepted(("message_id", "m"))))
    said = orjson.loads(lines.one()["delivery"]["providerResponse"])
    assert UUID(said["sqsRequestId"])
    assert said["sqsMessageId"] == "m"


def test_retries_share_an_id_and_count_up(log: StatusLog, lines: Lines) -> None:
    failed = Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 503, "busy", 9)
    for number in (1, 2):
        log.attempted(attempted(failed, of("http", "http://a/"), attempts=number))
    first, second = (orjson.loads(line[3])["delivery"] for line in lines.lines)
    assert first["deliveryId"] == second["deliveryId"]
    assert (first["attempts"], second["attempts"]) == (1, 2)


@pytest.mark.parametrize(("attributes", "expected"), [(LOGGED, 2), ({}, 0)])
def test_deliveries_accepted_by_queues_are_logged_each_if_configured(
    log: StatusLog, lines: Lines, attributes: dict[str, str], expected: int
) -> None:
    topic = replace(TOPIC, attributes=attributes)
    log.accepted(Accepted(topic, [], 0, lambda: [attempted(accepted(), topic=topic)] * 2, 1_058))
    assert len(lines.lines) == expected


# ---- who is logged ---------------------------------------------------------------------------------------------


def logged(attributes: dict[str, str], fact_of: Attempt, times: int = 1) -> int:
    lines = Lines()
    log = StatusLog(lines, random.Random(7), "stream")
    for _ in range(times):
        log.attempted(attempted(fact_of, topic=replace(TOPIC, attributes=attributes)))
    return len(lines.lines)


@pytest.mark.parametrize(
    ("attributes", "succeeded", "failed"),
    [
        ({}, 0, 0),
        ({"SQSFailureFeedbackRoleArn": ROLE}, 0, 1),
        ({"SQSSuccessFeedbackRoleArn": ROLE}, 0, 0),
        ({"SQSSuccessFeedbackRoleArn": ROLE, "SQSSuccessFeedbackSampleRate": "0"}, 0, 0),
        ({"SQSSuccessFeedbackRoleArn": ROLE, "SQSSuccessFeedbackSampleRate": "100"}, 1, 0),
        ({"SQSSuccessFeedbackSampleRate": "100"}, 0, 0),
        ({"HTTPFailureFeedbackRoleArn": ROLE}, 0, 0),
        ({"SQSFailureFeedbackRoleArn": ""}, 0, 0),
    ],
)
def test_a_topic_says_what_is_logged(attributes: dict[str, str], succeeded: int, failed: int) -> None:
    assert (logged(attributes, accepted()), logged(attributes, MISSING)) == (succeeded, failed)


def test_successes_are_sampled_and_failures_are_not() -> None:
    attributes = LOGGED | {"SQSSuccessFeedbackSampleRate": "20"}
    assert 150 < logged(attributes, accepted(), times=1000) < 250
    assert logged(attributes, MISSING, times=100) == 100


@pytest.mark.parametrize("protocol", ["email", "email-json", "sms"])
def test_other_protocols_are_not_logged(log: StatusLog, lines: Lines, protocol: str) -> None:
    log.attempted(attempted(accepted(), of(protocol, "somebody")))
    assert lines.lines == []


def test_a_lost_dead_letter_is_a_failure(log: StatusLog, lines: Lines) -> None:
    log.dead_lettered(DeadLettered(TOPIC, QUEUE, message("m", 1), MISSING, 60))
    assert lines.one()["status"] == "FAILURE"
    assert lines.lines[0][0].name.endswith("/Failure")


def test_asking_an_endpoint_whether_it_agrees_is_not_logged(log: StatusLog, lines: Lines) -> None:
    asking = Confirmation("SubscriptionConfirmation", "m", "t", "s", "token", 1).pack()
    fact = attempted(accepted())
    log.attempted(replace(fact, delivery=replace(fact.delivery, headers=asking)))
    assert lines.lines == []
