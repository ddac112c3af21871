from typing import Any

import orjson
import pytest

from redrive.aws.kit.messages import sequence_number
from redrive.aws.sns.notifications.notification import PublishedMessage
from tests.aws.sns.stage import ACCOUNT, REGION, Stage, invalid, queue_arn, refused, topic_arn

FULL = 256 * 1024
NO_DEFAULT = "Message Structure - No default entry in JSON message body"


def text(value: str | None = None, data_type: str = "String") -> dict[str, Any]:
    return {"DataType": data_type} | ({} if value is None else {"StringValue": value})


class TestPublish:
    async def test_a_message_reaches_a_queue(self, stage: Stage) -> None:
        await stage.queue("q")
        topic = await stage.topic()
        subscription = await stage.subscribe(topic, "sqs", queue_arn("q"))
        answer = await stage.publish(
            topic,
            "hello",
            Subject="s",
            MessageAttributes={
                "a": text("v"),
                "b": {"DataType": "Binary", "BinaryValue": b"\x02\x03\x04"},
                "n": text("1.5", "Number.float"),
            },
            trace="Root=1-3152b799-8954dae64eda91bc9a23a7e8",
        )
        (delivery,) = await stage.in_queue("q")
        published = PublishedMessage.unpack(delivery.headers or b"")
        assert delivery.body == "hello"
        assert published == PublishedMessage(
            id=answer["MessageId"],
            topic=topic,
            sent_at=stage.clock.now(),
            subject="s",
            attributes={"a": ("String", "v"), "b": ("Binary", "AgME"), "n": ("Number.float", "1.5")},
            trace="Root=1-3152b799-8954dae64eda91bc9a23a7e8",
            subscription=subscription,
        )
        assert set(answer) == {"MessageId"}

    async def test_a_topic_chooses_how_it_is_signed(self, stage: Stage) -> None:
        await stage.queue("q")
        topic = await stage.topic(SignatureVersion="2")
        await stage.subscribe(topic, "sqs", queue_arn("q"))
        await stage.publish(topic)
        (delivery,) = await stage.in_queue("q")
        assert PublishedMessage.unpack(delivery.headers or b"").version == "2"

    async def test_a_topic_may_be_a_target(self, stage: Stage) -> None:
        topic = await stage.topic()
        assert "MessageId" in await stage.call("Publish", TargetArn=topic, Message="m")

    async def test_filters_see_attributes_or_the_body(self, stage: Stage) -> None:
        topic = await stage.topic()
        for name, policy, scope in (
            ("a", '{"store":["x"]}', "MessageAttributes"),
            ("b", '{"store":["x"]}', "MessageBody"),
            ("c", '{"n":[{"numeric":["<",5]}]}', "MessageAttributes"),
        ):
            await stage.queue(name)
            await stage.subscribe(topic, "sqs", queue_arn(name), FilterPolicy=policy, FilterPolicyScope=scope)
        await stage.publish(topic, MessageAttributes={"store": text("x")})
        await stage.publish(topic, '{"store":"x"}', MessageAttributes={"n": text("4.5", "Number")})
        assert [len(await stage.in_queue(name)) for name in "abc"] == [1, 1, 1]

    async def test_each_protocol_has_its_own_text(self, stage: Stage) -> None:
        await stage.queue("q")
        topic = await stage.topic()
        await stage.subscribe(topic, "sqs", queue_arn("q"))
        message = orjson.dumps({"default": "d", "sqs": '{"field": "value"}', "email": "e", "sms": 5}).decode()
        await stage.publish(topic, message, MessageStructure="json")
        await stage.publish(topic, '{"default":"only"}', MessageStructure="json")
        await stage.publish(topic, '{"default":"as it is"}', MessageStructure="unknown")
        bodies = [delivery.body for delivery in await stage.in_queue("q")]
        assert bodies == ['{"field": "value"}', "only", '{"default":"as it is"}']

    async def test_more_attributes_than_a_queue_takes_are_a_dead_letter_of_raw_delivery(
        self, stage: Stage
    ) -> None:
        for name in ("raw", "whole", "dead"):
            await stage.queue(name)
        topic = await stage.topic()
        dead_letters = orjson.dumps({"deadLetterTargetArn": queue_arn("dead")}).decode()
        await stage.subscribe(
            topic, "sqs", queue_arn("raw"), RawMessageDelivery="true", RedrivePolicy=dead_letters
        )
        await stage.subscribe(topic, "sqs", queue_arn("whole"))
        ten = {f"name-{number}": text("v") for number in range(10)}
        await stage.publish(topic, "ten", MessageAttributes=ten)
        await stage.publish(topic, "eleven", MessageAttributes=ten | {"one-more": text("v")})
        bodies = {
            name: [delivery.body for delivery in await stage.in_queue(name)]
            for name in ("raw", "whole", "dead")
        }
        assert bodies == {"raw": ["ten"], "whole": ["ten", "eleven"], "dead": ["eleven"]}

    async def test_a_group_of_a_standard_topic_is_kept(self, stage: Stage) -> None:
        await stage.queue("q")
        topic = await stage.topic()
        await stage.subscribe(topic, "sqs", queue_arn("q"))
        await stage.publish(topic, MessageGroupId="g")
        (delivery,) = await stage.in_queue("q")
        assert delivery.group_id == "g"

    @pytest.mark.parametrize(
        ("params", "reason"),
        [
            ({"Message": ""}, "Empty message"),
            ({"Message": "x" * (FULL + 1)}, "Message too long"),
            ({"Message": "ä" * (FULL // 2 + 1)}, "Message too long"),
            ({"Message": "x" * (FULL - 8), "MessageAttributes": {"a": text("vv")}}, "Message too long"),
            ({"Subject": ""}, "Subject"),
            ({"Subject": "x" * 101}, "Subject"),
            ({"Subject": "a\nb"}, "Subject"),
            ({"Subject": "a\x7fb"}, "Subject"),
            ({"Message": '{"sqs":"x"}', "MessageStructure": "json"}, NO_DEFAULT),
            ({"Message": '{"default":5}', "MessageStructure": "json"}, NO_DEFAULT),
            (
                {"Message": '{"default":', "MessageStructure": "json"},
                "Message Structure - JSON message body failed to parse",
            ),
            (
                {"Message": "[]", "MessageStructure": "json"},
                "Message Structure - JSON message body failed to parse",
            ),
            (
                {"MessageDeduplicationId": "d"},
                (
                    "MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not"
                    " valid for this topic type"
                ),
            ),
            (
                {"MessageGroupId": "a b"},
                "MessageGroupId Reason: can only include alphanumeric and punctuation characters. 1 to 128 in length",
            ),
        ],
    )
    async def test_an_invalid_publication_is_refused(
        self, stage: Stage, params: dict[str, Any], reason: str
    ) -> None:
        topic = await stage.topic()
        with invalid(reason):
            await stage.call("Publish", **{"TopicArn": topic, "Message": "m", **params})

    async def test_as_much_as_fits(self, stage: Stage) -> None:
        topic = await stage.topic()
        whole = await stage.publish(topic, "x" * FULL, Subject="x" * 100)
        shared = await stage.publish(topic, "x" * (FULL - 8), MessageAttributes={"a": text("v")})
        assert whole["MessageId"] != shared["MessageId"]

    @pytest.mark.parametrize(
        ("name", "attribute", "text"),
        [
            (
                "attr1",
                text(""),
                (
                    "The message attribute 'attr1' must contain non-empty message attribute value for message"
                    " attribute type 'String'."
                ),
            ),
            (
                "attr1",
                text(),
                (
                    "The message attribute 'attr1' must contain non-empty message attribute value for message"
                    " attribute type 'String'."
                ),
            ),
            (
                "attr1",
                {"DataType": "Binary", "BinaryValue": b""},
                (
                    "The message attribute 'attr1' must contain non-empty message attribute value for message"
                    " attribute type 'Binary'."
                ),
            ),
            (
                "attr1",
                {"DataType": "String", "BinaryValue": b"x"},
                "The message attribute 'attr1' with type 'String' must use field 'String'.",
            ),
            (
                "attr1",
                {"DataType": "Number", "BinaryValue": b"x"},
                "The message attribute 'attr1' with type 'Number' must use field 'String'.",
            ),
            (
                "attr1",
                text("x", "Binary"),
                "The message attribute 'attr1' with type 'Binary' must use field 'Binary'.",
            ),
            *(
                (
                    "attr1",
                    text("x", data_type),
                    (
                        "The message attribute 'attr1' has an invalid message attribute type, the set of"
                        " supported type prefixes is Binary, Number, and String."
                    ),
                )
                for data_type in ("InvalidType", "prefix.String", "Stringprefix", "string", "", "String.")
            ),
            ("attr1", text("x", "Number"), "Could not cast message attribute 'attr1' value to number."),
            ("", text("x"), "Message attribute name can not be empty."),
            ("a" * 257, text("x"), "Length of message attribute name must be less than 256 bytes."),
            (
                "a^b",
                text("x"),
                (
                    "Invalid non-alphanumeric character '#x5E' was found in the message attribute name. Can only"
                    " include alphanumeric characters, hyphens, underscores, or dots."
                ),
            ),
            (".a", text("x"), "Invalid message attribute name starting with character '.' was found."),
            ("a.", text("x"), "Invalid message attribute name ending with character '.' was found."),
            ("a..b", text("x"), "Message attribute name can not have successive '.' character."),
        ],
    )
    async def test_an_attribute_must_be_one(
        self, stage: Stage, name: str, attribute: dict[str, Any], text: str
    ) -> None:
        topic = await stage.topic()
        with refused("ParameterValueInvalid", text):
            await stage.publish(topic, MessageAttributes={name: attribute})
        entry = {"Id": "1", "Message": "m", "MessageAttributes": {name: attribute}}
        with refused("ParameterValueInvalid", text):
            await stage.call("PublishBatch", TopicArn=topic, PublishBatchRequestEntries=[entry])

    @pytest.mark.parametrize("data_type", ["String.custom", "Number.int", "String.Array"])
    async def test_a_type_may_say_more(self, stage: Stage, data_type: str) -> None:
        topic = await stage.topic()
        published = await stage.publish(topic, MessageAttributes={"a": text("1", data_type)})
        assert published["MessageId"]

    async def test_a_type_must_be_given(self, stage: Stage) -> None:
        topic = await stage.topic()
        path = "messageAttributes.attr1.member.dataType"
        constraint = "failed to satisfy constraint: Member must not be null"
        with refused("ValidationError", f"1 validation error detected: Value null at '{path}' {constraint}"):
            await stage.publish(topic, MessageAttributes={"attr1": {"StringValue": "x"}})

    @pytest.mark.parametrize(
        ("params", "reason"),
        [
            ({}, "TopicArn or TargetArn Reason: no value for required parameter"),
            ({"TargetArn": "nothing"}, "TargetArn Reason: An ARN must have at least 6 elements, not 1"),
            ({"TargetArn": topic_arn("t", region="eu-west-1")}, "TargetArn"),
            (
                {"TargetArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:endpoint/APNS/app/137dbab8"},
                "TargetArn Reason: No endpoint found for the target arn specified",
            ),
            (
                {"TargetArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:endpoint/APNS/137dbab8"},
                "TargetArn Reason: Wrong number of slashes in relative portion of the ARN.",
            ),
            ({"PhoneNumber": "+1a234"}, "PhoneNumber Reason: +1a234 is not valid to publish to"),
            (
                {"PhoneNumber": "NAA+15551234567"},
                "PhoneNumber Reason: NAA+15551234567 is not valid to publish to",
            ),
        ],
    )
    async def test_a_target_must_be_one(self, stage: Stage, params: dict[str, Any], reason: str) -> None:
        with invalid(reason):
            await stage.call("Publish", Message="m", **params)


GROUP = "The MessageGroupId parameter is required for FIFO topics"
KEY = "The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"


class TestFifo:
    async def test_order_and_sequence(self, stage: Stage) -> None:
        await stage.queue("q.fifo")
        topic = await stage.topic("t.fifo")
        await stage.subscribe(topic, "sqs", queue_arn("q.fifo"))
        answers = [
            await stage.publish(topic, body, MessageGroupId="g", MessageDeduplicationId=body)
            for body in ("one", "two", "three")
        ]
        numbers = [answer["SequenceNumber"] for answer in answers]
        assert numbers == sorted(numbers)
        assert {len(number) for number in numbers} == {20}
        deliveries = await stage.in_queue("q.fifo")
        assert [delivery.body for delivery in deliveries] == ["one", "two", "three"]
        assert {(one.group_id, one.deduplication_id) for one in deliveries[:1]} == {("g", "one")}
        kept = [PublishedMessage.unpack(one.headers or b"").sequence for one in deliveries]
        assert [sequence_number(number or 0) for number in kept] == numbers

    async def test_a_repetition_answers_the_original(self, stage: Stage) -> None:
        await stage.queue("q.fifo")
        topic = await stage.topic("t.fifo", ContentBasedDeduplication="true")
        await stage.subscribe(topic, "sqs", queue_arn("q.fifo"))
        first = await stage.publish(topic, "same", MessageGroupId="g")
        assert await stage.publish(topic, "same", MessageGroupId="h") == first
        await stage.advance(5 * 60_000)
        assert await stage.publish(topic, "same", MessageGroupId="g") != first
        assert len(await stage.in_queue("q.fifo")) == 2

    async def test_deduplication_can_be_a_groups_own(self, stage: Stage) -> None:
        topic = await stage.topic(
            "t.fifo", ContentBasedDeduplication="true", FifoThroughputScope="MessageGroup"
        )
        first = await stage.publish(topic, "same", MessageGroupId="g")
        assert await stage.publish(topic, "same", MessageGroupId="h") != first
        assert await stage.publish(topic, "same", MessageGroupId="g") == first

    @pytest.mark.parametrize(
        ("params", "reason"), [({"MessageDeduplicationId": "d"}, GROUP), ({"MessageGroupId": "g"}, KEY)]
    )
    async def test_a_fifo_topic_wants_group_and_deduplication_ids(
        self, stage: Stage, params: dict[str, str], reason: str
    ) -> None:
        topic = await stage.topic("t.fifo")
        with invalid(reason):
            await stage.publish(topic, **params)
        good = {"Id": "1", "Message": "m", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
        with invalid(reason):
            await _batch(stage, topic, good, {"Id": "2", "Message": "m", **params})


async def _batch(stage: Stage, topic: str, *entries: dict[str, Any]) -> Any:
    return await stage.call("PublishBatch", TopicArn=topic, PublishBatchRequestEntries=list(entries))


def _entries(number: int, message: str = "m") -> list[dict[str, Any]]:
    return [{"Id": str(one), "Message": message} for one in range(number)]


class TestBatch:
    async def test_each_entry_has_an_answer(self, stage: Stage) -> None:
        await stage.queue("q")
        topic = await stage.topic()
        await stage.subscribe(topic, "sqs", queue_arn("q"))
        answer = await _batch(stage, topic, *_entries(10))
        assert [one["Id"] for one in answer["Successful"]] == [str(one) for one in range(10)]
        assert len({one["MessageId"] for one in answer["Successful"]}) == 10
        assert answer["Failed"] == []
        assert len(await stage.in_queue("q")) == 10

    async def test_an_invalid_entry_of_a_batch_fails_alone(self, stage: Stage) -> None:
        topic = await stage.topic()
        answer = await _batch(
            stage,
            topic,
            {"Id": "a", "Message": "m", "Subject": "fine"},
            {"Id": "b", "Message": "m", "Subject": "Invalid\nSubject"},
            {"Id": "c", "Message": ""},
        )
        assert [one["Id"] for one in answer["Successful"]] == ["a"]
        fault = {"SenderFault": True, "Code": "InvalidParameter"}
        assert answer["Failed"] == [
            {"Id": "b", "Message": "Invalid parameter: Subject", **fault},
            {"Id": "c", "Message": "Invalid parameter: Empty message", **fault},
        ]

    @pytest.mark.parametrize(
        ("entries", "code", "message"),
        [
            ([], "EmptyBatchRequest", "The batch request doesn't contain any entries."),
            (
                _entries(11),
                "TooManyEntriesInBatchRequest",
                "The batch request contains more entries than permissible.",
            ),
            (
                _entries(1) + _entries(1),
                "BatchEntryIdsNotDistinct",
                "Two or more batch entries in the request have the same Id.",
            ),
            (
                _entries(2, "x" * (FULL // 2 + 1)),
                "BatchRequestTooLong",
                "The length of all the messages put together is more than the limit.",
            ),
            (
                [{"Id": "a b", "Message": "m"}],
                "InvalidBatchEntryId",
                "The Id of a batch entry in the batch request contains an impermissible character: a b",
            ),
            (
                [{"Id": "a" * 81, "Message": "m"}],
                "InvalidBatchEntryId",
                f"The Id of a batch entry in the batch request is too long: {'a' * 81}",
            ),
            (
                [{"Id": "a", "Message": '{"sqs":"x"}', "MessageStructure": "json"}],
                "InvalidParameter",
                f"Invalid parameter: {NO_DEFAULT}",
            ),
        ],
    )
    async def test_an_invalid_batch_fails_as_a_whole(
        self, stage: Stage, entries: list[dict[str, Any]], code: str, message: str
    ) -> None:
        topic = await stage.topic()
        with refused(code, message):
            await _batch(stage, topic, *entries)

    async def test_a_type_must_be_given(self, stage: Stage) -> None:
        topic = await stage.topic()
        path = "publishBatchRequestEntries.1.member.messageAttributes.attr1.member.dataType"
        constraint = "failed to satisfy constraint: Member must not be null"
        entry = {"Id": "1", "Message": "m", "MessageAttributes": {"attr1": {"StringValue": "x"}}}
        with refused("ValidationError", f"1 validation error detected: Value null at '{path}' {constraint}"):
            await _batch(stage, topic, entry)

    async def test_a_topic_must_be_there(self, stage: Stage) -> None:
        with refused("NotFound", "Topic does not exist", 404):
            await _batch(stage, topic_arn("t"), *_entries(1))
