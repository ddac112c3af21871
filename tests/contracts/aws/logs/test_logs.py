"""CloudWatch Logs, held to recorded answers and refusals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from tests.contracts.aws.clients import client
from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import refused
from tests.services.clients import Client
from tests.services.server import Server

GROUP = "/test/group"
ARN = f"arn:aws:logs:us-east-1:000000000000:log-group:{GROUP}"
DAY_MS = 86_400_000
NO_GROUP = ("ResourceNotFoundException", "The specified log group does not exist.")
NO_STREAM = ("ResourceNotFoundException", "The specified log stream does not exist.")
BAD_TOKEN = ("InvalidParameterException", "The specified nextToken is invalid.")


@dataclass
class Logs:
    """Logs at a server, with one group and one stream to begin with."""

    server: Server
    client: Client

    def now(self) -> int:
        return round(self.server.now() * 1000)

    def make(self, group: str = GROUP, *streams: str) -> None:
        self.client.create_log_group(logGroupName=group)
        for stream in streams:
            self.client.create_log_stream(logGroupName=group, logStreamName=stream)

    def put(self, *messages: str, stream: str = "s", at: Sequence[int] = (), group: str = GROUP) -> Any:
        """Write messages down, a millisecond apart or `at` so many milliseconds from now."""
        now = self.now()
        offsets = at or range(len(messages))
        events = [
            {"timestamp": now + offset, "message": message}
            for message, offset in zip(messages, offsets, strict=True)
        ]
        return self.client.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)

    def get(self, stream: str = "s", **params: Any) -> Any:
        return self.client.get_log_events(logGroupName=GROUP, logStreamName=stream, **params)

    def filter(self, pattern: str = "", **params: Any) -> list[str]:
        answer = self.client.filter_log_events(logGroupName=GROUP, filterPattern=pattern, **params)
        return messages(answer)

    def groups(self, **params: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.describe_log_groups(**params)["logGroups"]
        return found

    def streams(self, **params: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.describe_log_streams(logGroupName=GROUP, **params)[
            "logStreams"
        ]
        return found


def messages(answer: Any) -> list[str]:
    return [event["message"] for event in answer["events"]]


@pytest.fixture
def logs(server: Server) -> Logs:
    return Logs(server, client(server.url, "logs", "json"))


@pytest.fixture
def ready(logs: Logs) -> Logs:
    logs.make(GROUP, "s")
    return logs


# ---- groups ----------------------------------------------------------------------------------------------------


def test_a_group_is_described_as_recorded(logs: Logs) -> None:
    logs.make()
    assert logs.groups() == [
        {
            "arn": f"{ARN}:*",
            "creationTime": logs.now(),
            "deletionProtectionEnabled": False,
            "logGroupArn": ARN,
            "logGroupClass": "STANDARD",
            "logGroupName": GROUP,
            "metricFilterCount": 0,
            "storedBytes": 0,
        }
    ]


def test_a_group_is_made_once(logs: Logs) -> None:
    logs.make()
    with refused("ResourceAlreadyExistsException", "The specified log group already exists"):
        logs.make()


def test_groups_are_described_by_name_and_page_by_page(logs: Logs) -> None:
    for name in ("b/2", "a", "b/1", "B"):
        logs.make(name)
    names = [group["logGroupName"] for group in logs.groups()]
    assert names == ["B", "a", "b/1", "b/2"]
    assert [group["logGroupName"] for group in logs.groups(logGroupNamePrefix="b/")] == ["b/1", "b/2"]
    assert [group["logGroupName"] for group in logs.groups(logGroupNamePattern="B")] == ["B", "b/1", "b/2"]
    pages = logs.client.get_paginator("describe_log_groups").paginate(PaginationConfig={"PageSize": 3})
    assert [[group["logGroupName"] for group in page["logGroups"]] for page in pages] == [
        names[:3],
        names[3:],
    ]
    text = "LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters."
    with refused("InvalidParameterException", text):
        logs.groups(logGroupNamePrefix="a", logGroupNamePattern="a")
    with refused(*BAD_TOKEN):
        logs.groups(nextToken="nonsense")


def test_a_group_tells_how_much_it_holds(ready: Logs) -> None:
    ready.put("é")
    assert ready.groups()[0]["storedBytes"] == 2 + 26


def test_deleting_a_group_takes_all_that_is_in_it(ready: Logs) -> None:
    ready.put("a")
    ready.client.delete_log_group(logGroupName=GROUP)
    for call in (ready.streams, ready.get, ready.filter, lambda: ready.put("a")):
        with refused(*NO_GROUP):
            call()
    ready.make(GROUP, "s")
    assert ready.filter() == []
    assert len(ready.streams()) == 1


def test_events_past_their_retention_are_removed(ready: Logs) -> None:
    ready.client.put_retention_policy(logGroupName=GROUP, retentionInDays=3)
    assert ready.groups()[0]["retentionInDays"] == 3
    ready.put("old")
    ready.server.advance(4 * 86_400)
    ready.put("new")
    assert ready.filter() == ["new"]
    ready.client.delete_retention_policy(logGroupName=GROUP)
    assert "retentionInDays" not in ready.groups()[0]
    with refused("InvalidParameterException"):
        ready.client.put_retention_policy(logGroupName=GROUP, retentionInDays=2)
    with refused(*NO_GROUP):
        ready.client.put_retention_policy(logGroupName="none", retentionInDays=3)


def test_tags_by_name_and_by_arn(logs: Logs) -> None:
    logs.client.create_log_group(logGroupName=GROUP, tags={"env": "testing1"})
    logs.client.tag_resource(resourceArn=ARN, tags={"test1": "val1", "test2": "val2"})
    logs.client.tag_log_group(logGroupName=GROUP, tags={"test3": "val3"})
    everything = {"env": "testing1", "test1": "val1", "test2": "val2", "test3": "val3"}
    assert logs.client.list_tags_log_group(logGroupName=GROUP)["tags"] == everything
    assert logs.client.list_tags_for_resource(resourceArn=ARN)["tags"] == everything
    logs.client.untag_log_group(logGroupName=GROUP, tags=["env", "test1"])
    logs.client.untag_resource(resourceArn=ARN, tagKeys=["test3"])
    assert logs.client.list_tags_for_resource(resourceArn=ARN)["tags"] == {"test2": "val2"}
    with refused("TooManyTagsException"):
        logs.client.tag_log_group(logGroupName=GROUP, tags={f"k{n}": "v" for n in range(50)})
    for arn in ("nonsense", ARN.replace("logs", "sqs"), ARN.replace("000000000000", "111111111111")):
        with refused("InvalidParameterException"):
            logs.client.list_tags_for_resource(resourceArn=arn)


@pytest.mark.parametrize(
    "params", [{"kmsKeyId": "k"}, {"deletionProtectionEnabled": True}, {"logGroupClass": "INFREQUENT_ACCESS"}]
)
def test_an_unsupported_group_is_refused(logs: Logs, params: dict[str, Any]) -> None:
    with refused("InvalidParameterException"):
        logs.client.create_log_group(logGroupName=GROUP, **params)
    assert logs.groups() == []


@pytest.mark.parametrize("name", ["", "white space", "colon:"])
def test_names_that_no_group_may_have(logs: Logs, name: str) -> None:
    with refused("InvalidParameterException"):
        logs.make(name)


def test_groups_are_their_owner_s(logs: Logs) -> None:
    logs.make()
    other = Logs(logs.server, client(logs.server.url, "logs", "json", "111111111111"))
    assert other.groups() == []
    other.make()
    assert len(logs.groups()) == 1


# ---- streams ---------------------------------------------------------------------------------------------------


def test_a_stream_is_described_as_recorded(ready: Logs) -> None:
    assert ready.streams() == [
        {
            "arn": f"{ARN}:log-stream:s",
            "creationTime": ready.now(),
            "logStreamName": "s",
            "storedBytes": 0,
        }
    ]
    now = ready.now()
    ready.put("a", "b", at=(-5, 7))
    (stream,) = ready.streams()
    assert (stream["firstEventTimestamp"], stream["lastEventTimestamp"]) == (now - 5, now + 7)
    assert stream["lastIngestionTime"] == now


def test_a_stream_is_made_once_and_in_a_group(ready: Logs) -> None:
    with refused("ResourceAlreadyExistsException", "The specified log stream already exists"):
        ready.client.create_log_stream(logGroupName=GROUP, logStreamName="s")
    with refused(*NO_GROUP):
        ready.client.create_log_stream(logGroupName="none", logStreamName="s")
    with refused("InvalidParameterException"):
        ready.client.create_log_stream(logGroupName=GROUP, logStreamName="a:b")


def test_streams_are_described_in_order(ready: Logs) -> None:
    for name in ("a", "b"):
        ready.client.create_log_stream(logGroupName=GROUP, logStreamName=name)
    ready.put("x", stream="b", at=[1])
    ready.put("x", stream="a", at=[2])

    def names(**params: Any) -> list[str]:
        return [stream["logStreamName"] for stream in ready.streams(**params)]

    assert names() == ["a", "b", "s"]
    assert names(descending=True) == ["s", "b", "a"]
    assert names(logStreamNamePrefix="s") == ["s"]
    assert names(orderBy="LastEventTime") == ["s", "b", "a"]
    assert names(orderBy="LastEventTime", descending=True) == ["a", "b", "s"]
    text = "Cannot order by LastEventTime with a logStreamNamePrefix."
    with refused("InvalidParameterException", text):
        names(orderBy="LastEventTime", logStreamNamePrefix="s")


@pytest.mark.parametrize("order", ["LogStreamName", "LastEventTime"])
@pytest.mark.parametrize("descending", [False, True])
def test_streams_are_described_page_by_page(ready: Logs, order: str, descending: bool) -> None:
    for number in range(4):
        ready.client.create_log_stream(logGroupName=GROUP, logStreamName=f"{number}")
    for number in range(2):
        ready.put("x", stream=f"{number}", at=[-number])
    asked = {"logGroupName": GROUP, "orderBy": order, "descending": descending}
    whole = ready.client.describe_log_streams(**asked)["logStreams"]
    pages = ready.client.get_paginator("describe_log_streams").paginate(
        **asked, PaginationConfig={"PageSize": 2}
    )
    assert [stream for page in pages for stream in page["logStreams"]] == whole
    assert len(whole) == 5


def test_a_group_may_be_named_by_its_identifier(ready: Logs) -> None:
    for identifier in (GROUP, ARN):
        answer = ready.client.describe_log_streams(logGroupIdentifier=identifier)
        assert len(answer["logStreams"]) == 1
    text = "LogGroup name and LogGroup ARN are mutually exclusive parameters."
    with refused("ValidationException", text):
        ready.streams(logGroupIdentifier=ARN)


def test_deleting_a_stream_takes_its_events_alone(ready: Logs) -> None:
    ready.client.create_log_stream(logGroupName=GROUP, logStreamName="other")
    ready.put("a")
    ready.put("b", stream="other")
    ready.client.delete_log_stream(logGroupName=GROUP, logStreamName="s")
    assert ready.filter() == ["b"]
    assert [stream["logStreamName"] for stream in ready.streams()] == ["other"]
    with refused(*NO_STREAM):
        ready.get()
    with refused(*NO_STREAM):
        ready.client.delete_log_stream(logGroupName=GROUP, logStreamName="s")


# ---- putting ---------------------------------------------------------------------------------------------------


def test_events_are_kept_as_they_are(ready: Logs) -> None:
    answer = ready.put("\U0001f640 - 参よ - 日本語", "second")
    assert isinstance(answer["nextSequenceToken"], str)
    assert "rejectedLogEventsInfo" not in answer
    events = ready.get()["events"]
    assert [(event["message"], event["timestamp"]) for event in events] == [
        ("\U0001f640 - 参よ - 日本語", ready.now()),
        ("second", ready.now() + 1),
    ]
    assert {event["ingestionTime"] for event in events} == {ready.now()}


def test_events_too_old_or_too_new_are_reported(ready: Logs) -> None:
    hours = 3_600_000
    answer = ready.put("a", "b", "c", at=[-14 * DAY_MS - 2, -14 * DAY_MS - 1, -14 * DAY_MS])
    assert answer["rejectedLogEventsInfo"] == {"tooOldLogEventEndIndex": 2}
    answer = ready.put("d", "e", at=[2 * hours, 2 * hours + 1])
    assert answer["rejectedLogEventsInfo"] == {"tooNewLogEventStartIndex": 1}
    ready.client.put_retention_policy(logGroupName=GROUP, retentionInDays=1)
    answer = ready.put("f", "g", at=[-DAY_MS - 1, -DAY_MS])
    assert answer["rejectedLogEventsInfo"] == {"expiredLogEventEndIndex": 1}
    assert ready.filter() == ["c", "g", "d"]


def test_invalid_events_are_refused(ready: Logs) -> None:
    with refused(*NO_STREAM):
        ready.put("a", stream="none")
    with refused(*NO_GROUP):
        ready.put("a", group="none")
    text = "Log events in a single PutLogEvents request must be in chronological order."
    with refused("InvalidParameterException", text):
        ready.put("a", "b", at=[0, -2 * DAY_MS])
    text = "The batch of log events in a single PutLogEvents request cannot span more than 24 hours."
    with refused("InvalidParameterException", text):
        ready.put("a", "b", at=[-DAY_MS - 1, 0])
    with refused("InvalidParameterException", "Upload too large: 1048577 bytes exceeds limit of 1048576"):
        ready.put("x" * (1_048_576 - 26 + 1))
    with refused("InvalidParameterException"):
        ready.put("")
    assert ready.filter() == []


# ---- getting ---------------------------------------------------------------------------------------------------


def test_events_are_read_from_either_end(ready: Logs) -> None:
    ready.put(*(f"message {number}" for number in range(20)))
    head = ready.get(limit=3, startFromHead=True)
    assert messages(head) == ["message 0", "message 1", "message 2"]
    tail = ready.get(limit=3)
    assert messages(tail) == ["message 17", "message 18", "message 19"]
    on = ready.get(limit=3, nextToken=head["nextForwardToken"])
    assert messages(on) == ["message 3", "message 4", "message 5"]
    back = ready.get(limit=3, nextToken=tail["nextBackwardToken"])
    assert messages(back) == ["message 14", "message 15", "message 16"]
    again = ready.get(limit=3, nextToken=on["nextBackwardToken"])
    assert messages(again) == messages(head)


def test_a_token_repeats_where_the_stream_ends(ready: Logs) -> None:
    ready.put("a", "b")
    answer = ready.get(startFromHead=True)
    end = ready.get(nextToken=answer["nextForwardToken"])
    assert (end["events"], end["nextForwardToken"]) == ([], answer["nextForwardToken"])
    begin = ready.get(nextToken=answer["nextBackwardToken"])
    assert (begin["events"], begin["nextBackwardToken"]) == ([], answer["nextBackwardToken"])
    ready.put("c", at=[5])
    assert messages(ready.get(nextToken=end["nextForwardToken"])) == ["c"]


def test_an_empty_stream_has_tokens_too(ready: Logs) -> None:
    answer = ready.get()
    ready.put("a")
    assert messages(ready.get(nextToken=answer["nextForwardToken"])) == ["a"]
    assert messages(ready.get(nextToken=answer["nextBackwardToken"])) == []


def test_events_are_read_by_time(ready: Logs) -> None:
    now = ready.now()
    ready.put("a", "b", "c", "d")
    assert messages(ready.get(startTime=now + 1, endTime=now + 3)) == ["b", "c"]
    assert ready.filter(startTime=now + 1, endTime=now + 3) == ["b", "c", "d"]  # here the end is in it


def test_tokens_and_limits_are_checked(ready: Logs) -> None:
    for operation in ("get_log_events", "filter_log_events"):
        asked = {"logGroupName": GROUP} | ({"logStreamName": "s"} if operation == "get_log_events" else {})
        with refused(*BAD_TOKEN):
            getattr(ready.client, operation)(**asked, nextToken="invalid-token")
        text = (
            "1 validation error detected: Value '10001' at 'limit' failed to satisfy constraint: Member must have"
            " value less than or equal to 10000"
        )
        with refused("InvalidParameterException", text):
            getattr(ready.client, operation)(**asked, limit=10_001)


def test_an_answer_holds_a_megabyte(ready: Logs) -> None:
    for number in range(3):
        ready.put(f"{number}" + "x" * 600_000, at=[number])
    first = ready.get(startFromHead=True)
    assert [message[0] for message in messages(first)] == ["0"]
    assert [message[0] for message in messages(ready.get(nextToken=first["nextForwardToken"]))] == ["1"]
    pages = ready.client.get_paginator("filter_log_events").paginate(logGroupName=GROUP)
    assert [[message[0] for message in messages(page)] for page in pages] == [["0"], ["1"], ["2"]]


# ---- filtering -------------------------------------------------------------------------------------------------


def test_a_group_s_events_are_interleaved(ready: Logs) -> None:
    for name in ("t", "u"):
        ready.client.create_log_stream(logGroupName=GROUP, logStreamName=name)
    ready.put("a", "d", at=[0, 3])
    ready.put("b", stream="t", at=[1])
    ready.put("c", stream="u", at=[2])
    answer = ready.client.filter_log_events(logGroupName=GROUP)
    assert [(event["message"], event["logStreamName"]) for event in answer["events"]] == [
        *(("a", "s"), ("b", "t"), ("c", "u"), ("d", "s"))
    ]
    assert len({event["eventId"] for event in answer["events"]}) == 4
    assert "nextToken" not in answer
    assert ready.filter(logStreamNames=["t", "s"]) == ["a", "b", "d"]
    assert ready.filter(logStreamNamePrefix="u") == ["c"]
    assert ready.filter(logStreamNamePrefix="v") == []
    with refused(*NO_STREAM):
        ready.filter(logStreamNames=["none"])
    with refused("InvalidParameterException"):
        ready.filter(logStreamNames=["s"], logStreamNamePrefix="s")


def test_events_are_filtered_page_by_page(ready: Logs) -> None:
    ready.put(*(f"Message number {number}" for number in range(25)))
    first = ready.client.filter_log_events(logGroupName=GROUP, limit=20)
    assert len(first["events"]) == 20
    rest = ready.client.filter_log_events(logGroupName=GROUP, limit=20, nextToken=first["nextToken"])
    assert len(rest["events"]) == 5
    assert "nextToken" not in rest


def test_a_search_gives_up_for_a_while(ready: Logs) -> None:
    for batch in range(3):
        ready.put(*["hay"] * 5_000, at=[batch] * 5_000)
    ready.put("needle", at=[9])
    answer = ready.client.filter_log_events(logGroupName=GROUP, filterPattern="needle")
    assert answer["events"] == []
    pages = ready.client.get_paginator("filter_log_events").paginate(
        logGroupName=GROUP, filterPattern="needle"
    )
    assert [messages(page) for page in pages] == [[], ["needle"]]


def test_filter_patterns_select_events(ready: Logs) -> None:
    ready.put("hello", "hello world", '{"status": "FAILURE", "delivery": {"statusCode": 400}}')
    assert ready.filter("hello -world") == ["hello"]
    assert len(ready.filter('{ $.status = "FAILURE" && $.delivery.statusCode >= 400 }')) == 1
    with refused("InvalidParameterException", "Invalid filter pattern"):
        ready.filter("{ $.status = }")


# ---- what SNS writes -------------------------------------------------------------------------------------------


def test_deliveries_are_logged_where_a_topic_asks_for_it(logs: Logs, server: Server) -> None:
    sns = Sns(server)
    topic, dead = sns.topic(), sns.sqs.queue()
    for name in ("SQSSuccessFeedbackRoleArn", "SQSFailureFeedbackRoleArn"):
        topic.set(name, "arn:aws:iam::000000000000:role/feedback")
    topic.set("SQSSuccessFeedbackSampleRate", "100")
    gone = topic.queue(RedrivePolicy=orjson.dumps({"deadLetterTargetArn": dead.arn}).decode())
    gone.call("delete_queue")
    published = topic.publish("hello")["MessageId"]
    name = f"sns/us-east-1/000000000000/{topic.arn.rpartition(':')[2]}"
    (succeeded, failed) = logs.groups()
    assert (succeeded["logGroupName"], failed["logGroupName"]) == (name, f"{name}/Failure")
    assert succeeded["retentionInDays"] == 30
    found = {}
    for group in (name, f"{name}/Failure"):
        (event,) = logs.client.filter_log_events(logGroupName=group)["events"]
        found[group] = orjson.loads(event["message"])
        assert found[group]["notification"]["messageId"] == published
    assert found[name]["delivery"]["destination"] == dead.arn
    refusal = orjson.loads(found[f"{name}/Failure"]["delivery"]["providerResponse"])
    assert refusal == {
        "ErrorCode": "AWS.SimpleQueueService.NonExistentQueue",
        "ErrorMessage": "The specified queue does not exist or you do not have access to it.",
        "sqsRequestId": "Unrecoverable",
    }
