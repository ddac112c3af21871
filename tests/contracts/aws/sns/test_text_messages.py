"""Text messages from end to end: boto3, a whole server on each store, and a message centre that speaks SMPP."""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.contracts.aws.clients import client
from tests.contracts.aws.cloudwatch.client import Watch, pairs
from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import refused
from tests.services import smsc
from tests.services.message_centre import MessageCentre, answering_centre
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, serving
from tests.services.smsc import OK

QUEUE_RECORD: Final = "+493012345678"
ROLE: Final = "arn:aws:iam::000000000000:role/sms"
PRICE: Final = 0.125
DIRECT: Final = "sns/us-east-1/000000000000/DirectPublishToPhoneNumber"
MINUTE: Final = 60


Line = tuple[Server, MessageCentre]


@contextlib.contextmanager
def connected(store: str, directory: Path | None = None) -> Iterator[Line]:
    """A server and a message centre of its own."""
    with answering_centre() as centre:
        gateway = ("--sms-gateway", f"{centre.url}?sender=House", "--sms-part-price", str(PRICE))
        with serving(store, "--clock", "simulated", "--allow-reset", *gateway, directory=directory) as server:
            yield server, centre
            log = server.log.read_text()
    assert " ERROR " not in log, log[-5000:]
    assert smsc.PASSWORD not in log


@pytest.fixture(scope="module")
def line_on_sqlite() -> Iterator[Line]:
    directory = Path(tempfile.mkdtemp(prefix="sms-", dir=os.environ["REDRIVE_TESTS_RUN_DIRECTORY"]))
    with connected(f"sqlite:///{directory}/redrive.db", directory) as line:
        yield line


@pytest.fixture(scope="module")
def line_on_postgres(database_maker: DatabaseMaker) -> Iterator[Line]:
    with database_maker.database() as url, connected(url) as line:
        yield line


@pytest.fixture(params=["sqlite", "postgres"])
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    server, centre = request.getfixturevalue(f"line_on_{request.param}")
    centre.bound()
    yield server, centre
    centre.centre.answer = lambda _: OK
    centre.centre.messages.clear()
    server.reset()


@pytest.fixture
def server(line: Line) -> Server:
    return line[0]


@pytest.fixture
def centre(line: Line) -> MessageCentre:
    return line[1]


@pytest.fixture
def sns(server: Server) -> Sns:
    sns = Sns(server)
    sns.client.set_sms_attributes(
        attributes={
            "MonthlySpendLimit": "1000",
            "DeliveryStatusIAMRole": ROLE,
            "DeliveryStatusSuccessSamplingRate": "100",
        }
    )
    return sns


def entries(server: Server, group: str) -> list[dict[str, Any]]:
    logs = client(server.url, "logs", "json")
    return [
        orjson.loads(event["message"])
        for event in logs.filter_log_events(logGroupName=group, filterPattern="")["events"]
    ]


def attribute(name: str, value: str, kind: str = "String") -> dict[str, dict[str, str]]:
    return {name: {"DataType": kind, "StringValue": value}}


# ---- they arrive -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Your car is ready.", 1),
        ("Grüße aus Köln, 5 €", 1),
        ("Your car 🚗 is ready", 1),
        ("All cars are rented out. " * 60, 10),
        ("ご予約の車が用意できました 🚗 " * 20, 6),
    ],
)
def test_a_text_arrives_whatever_it_says(
    sns: Sns, server: Server, centre: MessageCentre, text: str, parts: int
) -> None:
    message_id = sns.client.publish(PhoneNumber=QUEUE_RECORD, Message=text)["MessageId"]
    server.advance(0)
    assert centre.centre.texts() == [text]
    assert len(centre.centre.messages) == parts
    (entry,) = entries(server, DIRECT)
    assert entry["notification"]["messageId"] == message_id
    assert set(entry["notification"]) == {"messageId", "timestamp"}
    assert entry["status"] == "SUCCESS"
    assert {name: value for name, value in entry["delivery"].items() if name != "dwellTimeMs"} == {
        "phoneCarrier": "Unknown Carrier",
        "mnc": 0,
        "numberOfMessageParts": parts,
        "destination": QUEUE_RECORD,
        "priceInUSD": PRICE * parts,
        "smsType": "Promotional",
        "mcc": 0,
        "providerResponse": "Message has been accepted by phone carrier",
    }


def test_a_text_message_carries_its_type_and_sender(sns: Sns, server: Server, centre: MessageCentre) -> None:
    publish = sns.client.publish
    publish(PhoneNumber=QUEUE_RECORD, Message="1")
    server.advance(0)
    sns.client.set_sms_attributes(
        attributes={"DefaultSenderID": "Rentals", "DefaultSMSType": "Transactional"}
    )
    publish(PhoneNumber=QUEUE_RECORD, Message="2")
    own = attribute("AWS.SNS.SMS.SenderID", "Cars") | attribute("AWS.SNS.SMS.SMSType", "Promotional")
    publish(PhoneNumber=QUEUE_RECORD, Message="3", MessageAttributes=own)
    number = own | attribute("AWS.MM.SMS.OriginationNumber", "+4915112345678")
    publish(PhoneNumber=QUEUE_RECORD, Message="4", MessageAttributes=number)
    server.advance(0)
    sent = {bytes(one.short_message): (one.source_addr, one.priority_flag) for one in centre.centre.messages}
    assert sent == {
        b"1": ("House", 0),
        b"2": ("Rentals", 1),
        b"3": ("Cars", 0),
        b"4": ("4915112345678", 0),
    }


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("AWS.SNS.SMS.SenderID", "no spaces", "String"),
        ("AWS.SNS.SMS.SenderID", "12345", "String"),
        ("AWS.SNS.SMS.SMSType", "Cheap", "String"),
        ("AWS.SNS.SMS.MaxPrice", "-1", "Number"),
        ("AWS.MM.SMS.OriginationNumber", "1234", "String"),
    ],
)
def test_attributes_that_nothing_can_be_sent_by(
    sns: Sns, server: Server, centre: MessageCentre, name: str, value: str, kind: str
) -> None:
    with refused("InvalidParameter", f"Invalid parameter: MessageAttributes Reason: {name} is invalid"):
        sns.client.publish(
            PhoneNumber=QUEUE_RECORD, Message="m", MessageAttributes=attribute(name, value, kind)
        )
    server.advance(0)
    assert not centre.centre.messages


def test_a_topic_has_telephones(sns: Sns, server: Server, centre: MessageCentre) -> None:
    topic = sns.topic()
    topic.subscribe("sms", "+49-30-12345678")
    topic.publish("hello", Subject="not shown")
    server.advance(0)
    assert centre.centre.texts() == ["hello"]
    assert centre.centre.messages[0].destination_addr == QUEUE_RECORD[1:]
    (entry,) = entries(server, f"sns/us-east-1/000000000000/{topic.arn.rpartition(':')[2]}")
    assert entry["notification"]["topicArn"] == topic.arn
    assert sns.client.list_topics()["Topics"] == [{"TopicArn": topic.arn}]


def test_a_code_is_sent_to_a_number_that_is_to_be_verified(
    sns: Sns, server: Server, centre: MessageCentre
) -> None:
    sns.client.create_sms_sandbox_phone_number(PhoneNumber=QUEUE_RECORD)
    server.advance(0)
    (code,) = re.findall(r"\d{6}", centre.centre.texts()[0])
    sns.client.verify_sms_sandbox_phone_number(PhoneNumber=QUEUE_RECORD, OneTimePassword=code)
    listed = sns.client.list_sms_sandbox_phone_numbers()["PhoneNumbers"]
    assert listed == [{"PhoneNumber": QUEUE_RECORD, "Status": "Verified"}]


# ---- they do not at first ------------------------------------------------------------------------------------------


def test_a_throttled_text_is_delivered_later(sns: Sns, server: Server, centre: MessageCentre) -> None:
    tries: list[Any] = []

    def busy(message: Any) -> int:
        tries.append(message)
        return smsc.THROTTLED

    centre.centre.answer = busy
    sns.client.publish(PhoneNumber=QUEUE_RECORD, Message="patience")
    server.advance(45)
    assert len(tries) > 3  # at once, and after some 10, 20 and 30 s
    centre.centre.answer = lambda _: OK
    server.advance(10 * MINUTE)
    assert centre.centre.texts() == ["patience"]
    failures = entries(server, f"{DIRECT}/Failure")
    assert {entry["delivery"]["providerResponse"] for entry in failures} == {"ESME_RTHROTTLED"}
    assert len(failures) == len(tries)
    (entry,) = entries(server, DIRECT)
    assert 45_000 < entry["delivery"]["dwellTimeMs"] < 10 * MINUTE * 1000


def test_after_six_hours_it_is_given_up(sns: Sns, server: Server, centre: MessageCentre) -> None:
    tries: list[Any] = []

    def busy(message: Any) -> int:
        tries.append(message)
        return smsc.SYSTEM_ERROR

    centre.centre.answer = busy
    sns.client.publish(PhoneNumber=QUEUE_RECORD, Message="m")
    server.advance(5 * 3600)
    before = len(tries)
    server.advance(4 * 3600)
    assert before < len(tries) == 51  # 50 retries
    watch = Watch(server)
    assert sum(watch.sums("AWS/SNS", "SMSSuccessRate", SMSType="Promotional")) == 0


def test_a_number_that_does_not_exist_is_not_tried_again(
    sns: Sns, server: Server, centre: MessageCentre
) -> None:
    topic = sns.topic()
    dead = sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    topic.subscribe("sms", QUEUE_RECORD, RedrivePolicy=policy)
    centre.centre.answer = lambda _: (smsc.INVALID_DESTINATION, "no such number")
    topic.publish("hello")
    server.advance(0)
    (letter,) = dead.receive()
    assert orjson.loads(letter["Body"])["Message"] == "hello"
    (entry,) = entries(server, f"sns/us-east-1/000000000000/{topic.arn.rpartition(':')[2]}/Failure")
    assert entry["delivery"]["providerResponse"] == "ESME_RINVDSTADR: no such number"
    assert entry["status"] == "FAILURE"


def test_text_messages_are_delivered_after_the_gateway_was_away(
    sns: Sns, server: Server, centre: MessageCentre
) -> None:
    centre.stop()
    said = len(server.log.read_text())
    for number in range(3):
        sns.client.publish(PhoneNumber=QUEUE_RECORD, Message=f"number {number}")
    server.advance(15)
    assert re.search(
        r"WARNING redrive.endpoints.sms.endpoint sms.(lost|away) gateway=smpp://redrive@127.0.0.1:\d+: ",
        server.log.read_text()[said:],
    )
    (first, *_) = entries(server, f"{DIRECT}/Failure")
    assert first["status"] == "FAILURE"
    centre.start()
    centre.bound()
    server.advance(10 * MINUTE)
    assert sorted(centre.centre.texts()) == ["number 0", "number 1", "number 2"]


# ---- opting out ----------------------------------------------------------------------------------------------------


def test_a_number_that_answers_stop_gets_no_more_messages(
    sns: Sns, server: Server, centre: MessageCentre
) -> None:
    topic = sns.topic()
    topic.subscribe("sms", QUEUE_RECORD)
    other = sns.elsewhere(region="eu-west-1")
    sns.client.publish(PhoneNumber=QUEUE_RECORD, Message="one")
    server.advance(0)
    assert centre.tell(QUEUE_RECORD[1:], "When is my car ready?") == OK
    assert sns.client.check_if_phone_number_is_opted_out(phoneNumber=QUEUE_RECORD)["isOptedOut"] is False
    assert centre.tell(QUEUE_RECORD[1:], " Stop. ") == OK
    assert sns.client.check_if_phone_number_is_opted_out(phoneNumber=QUEUE_RECORD)["isOptedOut"] is True
    assert sns.client.list_phone_numbers_opted_out()["phoneNumbers"] == [QUEUE_RECORD]
    assert other.client.list_phone_numbers_opted_out()["phoneNumbers"] == []  # never wrote to it
    with refused("InvalidParameter", "Invalid parameter: PhoneNumber Reason: phone number is opted out"):
        sns.client.publish(PhoneNumber=QUEUE_RECORD, Message="two")
    topic.publish("three")
    server.advance(0)
    assert centre.centre.texts() == ["one"]
    (entry,) = entries(server, f"sns/us-east-1/000000000000/{topic.arn.rpartition(':')[2]}/Failure")
    assert entry["delivery"]["providerResponse"] == "Phone number is opted out"
    sns.client.opt_in_phone_number(phoneNumber=QUEUE_RECORD)
    topic.publish("four")
    server.advance(0)
    assert centre.centre.texts() == ["one", "four"]


def test_every_account_that_wrote_to_it(sns: Sns, server: Server, centre: MessageCentre) -> None:
    others = [sns.elsewhere(account="210987654321"), sns.elsewhere(region="eu-west-1")]
    for one in (sns, *others):
        one.client.publish(PhoneNumber=QUEUE_RECORD, Message="hello")
    server.advance(0)
    assert centre.tell(QUEUE_RECORD[1:], "STOP") == OK
    assert centre.tell(QUEUE_RECORD[1:], "STOP") == OK
    for one in (sns, *others):
        assert one.client.list_phone_numbers_opted_out()["phoneNumbers"] == [QUEUE_RECORD]


# ---- what it costs -------------------------------------------------------------------------------------------------


def test_no_more_is_spent_than_may_be(sns: Sns, server: Server, centre: MessageCentre) -> None:
    sns.client.set_sms_attributes(attributes={"MonthlySpendLimit": "1"})
    for number in range(9):
        sns.client.publish(PhoneNumber=QUEUE_RECORD, Message=f"number {number}")
        server.advance(0)
    assert len(centre.centre.messages) == 8  # at 0.125 USD
    (entry,) = entries(server, f"{DIRECT}/Failure")
    assert entry["delivery"]["providerResponse"] == "No quota left for account"
    watch = Watch(server)
    query = {"Namespace": "AWS/SNS", "MetricName": "SMSMonthToDateSpentUSD", "Dimensions": []}
    (row,) = watch.rows({"Id": "m", "MetricStat": {"Metric": query, "Period": 300, "Stat": "Maximum"}})
    assert max(row["Values"]) == 1.0
    server.advance(31 * 24 * 3600)
    sns.client.publish(PhoneNumber=QUEUE_RECORD, Message="next month")
    server.advance(0)
    assert centre.centre.texts()[-1] == "next month"


def test_no_message_is_dearer_than_it_may_be(sns: Sns, server: Server, centre: MessageCentre) -> None:
    for text, most in (("x" * 161, "0.25"), ("y" * 161, "0.249")):
        sns.client.publish(
            PhoneNumber=QUEUE_RECORD,
            Message=text,
            MessageAttributes=attribute("AWS.SNS.SMS.MaxPrice", most, "Number"),
        )
    server.advance(0)
    assert centre.centre.texts() == ["x" * 161]
    (entry,) = entries(server, f"{DIRECT}/Failure")
    assert entry["delivery"]["providerResponse"] == "This delivery would exceed max price"


def test_the_success_rate_of_text_messages_is_counted(
    sns: Sns, server: Server, centre: MessageCentre
) -> None:
    answers = iter([OK, smsc.INVALID_DESTINATION, OK])
    centre.centre.answer = lambda _: next(answers)
    for number in range(3):
        sns.client.publish(
            PhoneNumber=QUEUE_RECORD,
            Message=f"number {number}",
            MessageAttributes=attribute("AWS.SNS.SMS.SMSType", "Transactional"),
        )
        server.advance(0)
    watch = Watch(server)
    assert watch.listed(Namespace="AWS/SNS", MetricName="SMSSuccessRate") == [
        f"AWS/SNS SMSSuccessRate PhoneNumber={QUEUE_RECORD}",
        "AWS/SNS SMSSuccessRate SMSType=Transactional",
    ]
    for dimension in ({"SMSType": "Transactional"}, {"PhoneNumber": QUEUE_RECORD}):
        (point,) = watch.statistics(
            "SMSSuccessRate",
            "Average",
            "SampleCount",
            namespace="AWS/SNS",
            period=600,
            Dimensions=pairs(dimension),
        )
        assert point == {"Average": pytest.approx(2 / 3), "SampleCount": 3.0, "Unit": "Count"}
