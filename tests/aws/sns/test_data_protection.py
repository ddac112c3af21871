"""Messages on a topic with a data-protection policy: refused, masked, redacted or audited."""

import threading
from typing import Any

import orjson
import pytest

from redrive.aws.sns.protection.identifiers.custom import CustomFinder
from redrive.aws.sns.protection.screening import _CHARS_AT_ONCE
from redrive.model.metric import MINUTE_MS, Series, Statistics
from redrive.model.protection import Span
from tests.aws.sns.stage import ACCOUNT, OTHER, REGION, Stage, invalid, queue_arn, refused, topic_arn
from tests.aws.sns.test_data_protection_policies import ARN, LOGS, custom, policy

CARD = "4539894458086459"
TEXT = f"My credit card number is {CARD}"
MASK = {"Deidentify": {"MaskConfig": {"MaskWithCharacter": "#"}}}
REDACT = {"Deidentify": {"RedactConfig": {}}}
DENY: dict[str, Any] = {"Deny": {}}
AUDIT = {"Audit": {"SampleRate": "99", "FindingsDestination": LOGS, "NoFindingsDestination": LOGS}}
WITHHELD = "The topic's data protection policy prohibits this message from being published to"


def statement(
    operation: dict[str, Any], *identifiers: str, outbound: bool = False, **others: Any
) -> dict[str, Any]:
    names = [name if name.islower() else ARN + name for name in identifiers or ("CreditCardNumber",)]
    direction = "Outbound" if outbound else "Inbound"
    return {"Operation": operation, "DataIdentifier": names, "DataDirection": direction, **others}


async def protected(stage: Stage, *statements: dict[str, Any], **others: Any) -> str:
    """A topic with a policy of these statements; its ARN."""
    made = await stage.call("CreateTopic", Name="orders", DataProtectionPolicy=policy(*statements, **others))
    arn: str = made["TopicArn"]
    return arn


async def bodies(stage: Stage, name: str = "q") -> list[str]:
    return [delivery.body for delivery in await stage.in_queue(name)]


def root(account: str) -> str:
    return f"arn:aws:iam::{account}:root"


class TestInbound:
    async def test_a_denied_message_is_not_published(self, stage: Stage) -> None:
        topic = await protected(stage, statement(DENY))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        with refused("AuthorizationError", f"{WITHHELD} {topic}", 403):
            await stage.publish(topic, TEXT)
        await stage.publish(topic, "nothing to see")
        assert await bodies(stage) == ["nothing to see"]

    @pytest.mark.parametrize(
        ("operation", "text", "kept"),
        [
            (MASK, TEXT, f"My credit card number is {'#' * 16}"),
            (REDACT, TEXT, "My credit card number is "),
            (MASK, f'{{"card":{CARD},"n":1}}', f'{{"card":"{"#" * 16}","n":1}}'),
            (REDACT, f'{{"card":"{CARD}"}}', '{"card":""}'),
        ],
    )
    async def test_a_de_identified_message_is_so_for_all(
        self, stage: Stage, operation: dict[str, Any], text: str, kept: str
    ) -> None:
        topic = await protected(stage, statement(operation))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        await stage.subscribe(
            topic,
            "firehose",
            "arn:aws:firehose:us-east-1:123456789012:deliverystream/s",
            SubscriptionRoleArn="arn:aws:iam::123456789012:role/r",
        )
        await stage.publish(topic, text)
        assert await bodies(stage) == [kept]
        assert (await stage.asked("firehose"))["Message"] == kept

    async def test_of_what_is_sensitive_as_a_whole_nothing_is_left_to_publish(self, stage: Stage) -> None:
        topic = await protected(stage, statement(REDACT, "x"), Configuration=custom(("x", "[a-z ]+")))
        with refused("AuthorizationError", f"{WITHHELD} {topic}", 403):
            await stage.publish(topic, "nothing else")

    async def test_subjects_and_attributes_are_not_looked_at(self, stage: Stage) -> None:
        topic = await protected(stage, statement(DENY))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        attribute = {"DataType": "String", "StringValue": TEXT}
        await stage.publish(topic, "x", Subject=TEXT, MessageAttributes={"card": attribute})
        assert await bodies(stage) == ["x"]

    @pytest.mark.parametrize(
        ("principals", "concerned"),
        [
            (["*"], True),
            ([ACCOUNT], True),
            ([root(ACCOUNT)], True),
            ([OTHER], False),
            ([root(OTHER), ACCOUNT], True),
        ],
    )
    async def test_a_statement_is_about_its_principals(
        self, stage: Stage, principals: list[str], concerned: bool
    ) -> None:
        topic = await protected(stage, statement(MASK, Principal=principals))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        await stage.publish(topic, TEXT)
        assert (await bodies(stage) == [TEXT]) is not concerned

    async def test_of_a_batch_the_denied_entries_fail_alone(self, stage: Stage) -> None:
        topic = await protected(stage, statement(DENY), statement(MASK, "EmailAddress"))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        entries = [
            {"Id": "a", "Message": "for a@b.cd"},
            {"Id": "b", "Message": TEXT},
            {"Id": "c", "Message": "c"},
        ]
        answer = await stage.call("PublishBatch", TopicArn=topic, PublishBatchRequestEntries=entries)
        assert [one["Id"] for one in answer["Successful"]] == ["a", "c"]
        (failure,) = answer["Failed"]
        assert failure == {
            "Id": "b",
            "SenderFault": True,
            "Code": "AuthorizationError",
            "Message": f"{WITHHELD} {topic}",
        }
        assert await bodies(stage) == ["for ######", "c"]

    async def test_each_text_of_a_structured_message_is_looked_at(self, stage: Stage) -> None:
        topic = await protected(stage, statement(REDACT))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        await stage.subscribe(topic, "http", "http://a.test")
        texts = {"default": "d", "sqs": TEXT, "http": CARD, "n": 1, "email": f"card {CARD}"}
        await stage.publish(topic, orjson.dumps(texts).decode(), MessageStructure="json")
        assert await bodies(stage) == ["My credit card number is "]

    async def test_a_protocol_whose_text_is_cut_out_as_a_whole_gets_the_default(self, stage: Stage) -> None:
        topic = await protected(stage, statement(REDACT, "x"), Configuration=custom(("x", "[x-z]+")))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        await stage.publish(topic, '{"default":"dz","sqs":"xyz"}', MessageStructure="json")
        assert await bodies(stage) == ["d"]
        with refused("AuthorizationError", f"{WITHHELD} {topic}", 403):
            await stage.publish(topic, '{"default":"z","sqs":"s"}', MessageStructure="json")

    async def test_filters_on_the_body_see_what_is_left(self, stage: Stage) -> None:
        topic = await protected(stage, statement(MASK))
        scope = {"FilterPolicyScope": "MessageBody"}
        await stage.subscribe(
            topic, "sqs", await stage.queue("a"), FilterPolicy=f'{{"card":["{CARD}"]}}', **scope
        )
        await stage.subscribe(
            topic, "sqs", await stage.queue("b"), FilterPolicy='{"card":[{"prefix":"#"}]}', **scope
        )
        await stage.publish(topic, f'{{"card":"{CARD}"}}')
        assert (len(await bodies(stage, "a")), len(await bodies(stage, "b"))) == (0, 1)

    async def test_the_first_statement_goes_first(self, stage: Stage) -> None:
        both = custom(("ab", "ab"), ("bc", "bc"))
        topic = await protected(stage, statement(MASK, "bc"), statement(REDACT, "ab"), Configuration=both)
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        await stage.publish(topic, "-abc-ab-")
        assert await bodies(stage) == ["-###--"]

    async def test_a_large_message_is_looked_at_beside_the_loop(self, stage: Stage) -> None:
        topic = await protected(stage, statement(MASK))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        long = "x " * _CHARS_AT_ONCE
        await stage.publish(topic, long + TEXT)
        assert await bodies(stage) == [long + TEXT.replace(CARD, "#" * 16)]

    async def test_a_custom_identifier_is_never_looked_for_in_the_loop(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A custom expression may take seconds for a text of any length."""
        looking: list[threading.Thread] = []

        def find(_: CustomFinder, text: bytes) -> list[Span]:
            looking.append(threading.current_thread())
            return []

        monkeypatch.setattr(CustomFinder, "find", find)
        topic = await protected(
            stage, statement(DENY, "x"), Configuration=custom(("x", "[ab]*a[ab]{300}c|b"))
        )
        await stage.publish(topic, "b")
        assert looking
        assert threading.current_thread() not in looking


class TestAudit:
    async def test_findings_are_written_down_before_anything_is_done_about_them(self, stage: Stage) -> None:
        audit = statement(AUDIT, "CreditCardNumber", "EmailAddress", "Ssn-US")
        topic = await protected(stage, statement(MASK), audit)
        text = rf'{{"to":"\u0061@b.cd","cards":["visa {CARD}"]}}'
        published = await stage.publish(topic, text)
        (line,) = stage.lines
        assert (line.group, line.stream, line.at) == (
            (ACCOUNT, REGION, "/aws/vendedlogs/findings"),
            "node",
            stage.clock.now(),
        )
        assert line.record == {
            "messageId": published["MessageId"],
            "auditTimestamp": "2026-01-01T00:00:00Z",
            "callerPrincipal": root(ACCOUNT),
            "resourceArn": topic_arn("orders"),
            "dataIdentifiers": [
                {"name": "CreditCardNumber", "count": 1, "detections": [_place(text, CARD)]},
                {"name": "EmailAddress", "count": 1, "detections": [_place(text, r"\u0061@b.cd")]},
            ],
        }

    async def test_a_denied_message_is_audited_too(self, stage: Stage) -> None:
        topic = await protected(stage, statement(DENY), statement(AUDIT))
        with refused("AuthorizationError", f"{WITHHELD} {topic}", 403):
            await stage.publish(topic, TEXT)
        assert [line.record["dataIdentifiers"][0]["name"] for line in stage.lines] == ["CreditCardNumber"]

    @pytest.mark.parametrize(
        ("destinations", "text", "lines", "counter"),
        [
            ({"FindingsDestination": LOGS}, TEXT, 1, "messages_with_findings"),
            ({"FindingsDestination": LOGS}, "x", 0, None),
            ({"NoFindingsDestination": LOGS}, TEXT, 0, None),
            ({"NoFindingsDestination": LOGS}, "x", 1, "messages_without_findings"),
            ({"FindingsDestination": {}}, TEXT, 0, "messages_with_findings"),
        ],
    )
    async def test_a_finding_with_a_destination_is_written_and_counted(
        self, stage: Stage, destinations: dict[str, Any], text: str, lines: int, counter: str | None
    ) -> None:
        topic = await protected(stage, statement({"Audit": {"SampleRate": "99", **destinations}}))
        await stage.publish(topic, text)
        assert len(stage.lines) == lines
        at = stage.clock.now() - stage.clock.now() % MINUTE_MS
        series = (
            [] if counter is None else [Series(ACCOUNT, REGION, ":topic", counter, (("topic", "orders"),))]
        )
        assert [point.series for point in stage.points] == series
        assert all(point.at == at and point.statistics == Statistics.of(1.0) for point in stage.points)

    async def test_of_a_batch_that_is_refused_nothing_is_written_down(self, stage: Stage) -> None:
        topic = await protected(stage, statement(AUDIT))
        entries = [{"Id": "a", "Message": TEXT}, {"Id": "b", "Message": "m", "MessageGroupId": "a b"}]
        with invalid(
            "MessageGroupId Reason: can only include alphanumeric and punctuation characters. 1 to 128 in length"
        ):
            await stage.call("PublishBatch", TopicArn=topic, PublishBatchRequestEntries=entries)
        assert stage.lines == []

    async def test_a_message_too_long_is_not_looked_at(self, stage: Stage) -> None:
        topic = await protected(stage, statement(AUDIT))
        with invalid("Message too long"):
            await stage.publish(topic, TEXT + "x" * 256 * 1024)
        assert stage.lines == []

    @pytest.mark.parametrize(("rate", "least", "most"), [(0, 0, 0), (20, 15, 70), (99, 190, 200)])
    async def test_as_many_are_looked_at_as_was_asked(
        self, stage: Stage, rate: int, least: int, most: int
    ) -> None:
        topic = await protected(
            stage, statement({"Audit": {"SampleRate": rate, "FindingsDestination": LOGS}})
        )
        for _ in range(200):
            await stage.publish(topic, TEXT)
        assert least <= len(stage.lines) <= most


def _place(text: str, part: str) -> dict[str, int]:
    return {"start": text.index(part), "end": text.index(part) + len(part)}


class TestOutbound:
    async def test_each_subscriber_gets_what_its_own_statements_leave(self, stage: Stage) -> None:
        topic = await protected(
            stage,
            statement(MASK, outbound=True, Principal=[OTHER]),
            statement(DENY, "EmailAddress", outbound=True, Principal=[root(OTHER)]),
        )
        await self._let_in(stage, topic)
        mine, theirs = (f"arn:aws:lambda:{REGION}:{account}:function:f" for account in (ACCOUNT, OTHER))
        await stage.subscribe(topic, "lambda", mine)
        await stage.subscribe(topic, "lambda", theirs, OTHER)
        await stage.publish(topic, TEXT)
        await stage.publish(topic, f"{TEXT} of a@b.cd")
        await stage.advance(0)
        got = [
            (push_request.endpoint, orjson.loads(push_request.body)["Records"][0]["Sns"]["Message"])
            for push_request in stage.endpoints["lambda"].push_requests
        ]
        assert sorted(got) == [
            (mine, TEXT),
            (mine, f"{TEXT} of a@b.cd"),
            (theirs, TEXT.replace(CARD, "#" * 16)),
        ]

    async def test_a_delivery_waits_as_it_will_be_pushed(self, stage: Stage) -> None:
        topic = await protected(stage, statement(REDACT, outbound=True))
        await stage.subscribe(topic, "email-json", "a@b.cd")
        arn = await stage.subscribe(topic, "lambda", "arn:aws:lambda:us-east-1:123456789012:function:f")
        await stage.publish(topic, TEXT)
        await stage.call("PutDataProtectionPolicy", ResourceArn=topic, DataProtectionPolicy="")
        record = (await stage.asked("lambda"))["Records"][0]
        assert (record["EventSubscriptionArn"], record["Sns"]["Message"]) == (
            arn,
            "My credit card number is ",
        )

    @pytest.mark.parametrize("raw", ["true", "false"])
    async def test_a_withheld_message_is_no_dead_letter(self, stage: Stage, raw: str) -> None:
        topic = await protected(stage, statement(DENY, outbound=True))
        letters = orjson.dumps({"deadLetterTargetArn": await stage.queue("dead")}).decode()
        await stage.subscribe(
            topic, "sqs", await stage.queue("q"), RedrivePolicy=letters, RawMessageDelivery=raw
        )
        await stage.publish(topic, TEXT)
        await stage.publish(topic, "x")
        assert await bodies(stage) == ["x"]
        assert await bodies(stage, "dead") == []

    async def test_a_dead_letter_is_de_identified_like_the_message(self, stage: Stage) -> None:
        topic = await protected(stage, statement(MASK, outbound=True))
        letters = orjson.dumps({"deadLetterTargetArn": await stage.queue("dead")}).decode()
        await stage.subscribe(topic, "sqs", queue_arn("missing"), RedrivePolicy=letters)
        await stage.publish(topic, TEXT)
        assert await bodies(stage, "dead") == [TEXT.replace(CARD, "#" * 16)]

    async def test_filters_on_the_body_see_what_was_published(self, stage: Stage) -> None:
        topic = await protected(stage, statement(MASK, outbound=True))
        await stage.subscribe(
            topic,
            "sqs",
            await stage.queue("q"),
            FilterPolicy=f'{{"card":["{CARD}"]}}',
            FilterPolicyScope="MessageBody",
        )
        await stage.publish(topic, f'{{"card":"{CARD}"}}')
        assert await bodies(stage) == [f'{{"card":"{"#" * 16}"}}']

    async def test_a_message_cut_out_as_a_whole_is_withheld(self, stage: Stage) -> None:
        topic = await protected(
            stage, statement(REDACT, "x", outbound=True), Configuration=custom(("x", "[a-z]+"))
        )
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        await stage.publish(topic, "all")
        await stage.publish(topic, "all?")
        assert await bodies(stage) == ["?"]

    async def test_each_subscriber_is_judged_by_the_text_it_gets(self, stage: Stage) -> None:
        topic = await protected(stage, statement(DENY, outbound=True))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        await stage.subscribe(topic, "lambda", "arn:aws:lambda:us-east-1:123456789012:function:f")
        texts = {"default": "d", "sqs": TEXT}
        await stage.publish(topic, orjson.dumps(texts).decode(), MessageStructure="json")
        assert await bodies(stage) == []
        assert (await stage.asked("lambda"))["Records"][0]["Sns"]["Message"] == "d"

    async def test_a_default_of_which_nothing_is_left_is_withheld(self, stage: Stage) -> None:
        topic = await protected(
            stage, statement(REDACT, "x", outbound=True), Configuration=custom(("x", "[x-z]+"))
        )
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        function = "arn:aws:lambda:us-east-1:123456789012:function:f"
        await stage.subscribe(topic, "lambda", function)
        await stage.publish(topic, '{"default":"z","sqs":"sx"}', MessageStructure="json")
        await stage.advance(0)
        assert await bodies(stage) == ["s"]
        assert stage.endpoints["lambda"].push_requests == []

    async def test_inbound_goes_before_outbound(self, stage: Stage) -> None:
        topic = await protected(stage, statement(MASK), statement(DENY, outbound=True))
        await stage.subscribe(topic, "sqs", await stage.queue("q"))
        await stage.publish(topic, TEXT)
        assert await bodies(stage) == [TEXT.replace(CARD, "#" * 16)]

    async def _let_in(self, stage: Stage, topic: str) -> None:
        statement = {"Effect": "Allow", "Principal": "*", "Action": "sns:Subscribe", "Resource": topic}
        await stage.call(
            "SetTopicAttributes",
            TopicArn=topic,
            AttributeName="Policy",
            AttributeValue=orjson.dumps({"Statement": statement}).decode(),
        )
