"""Notifications of a bucket's events to queues and topics; those to functions are tested beside functions."""

import json
from datetime import datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contracts.aws.s3.buckets import ACCOUNT, BUCKET, OTHER
from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import Queue, Sqs
from tests.services.server import Server

ARN = f"arn:aws:s3:::{BUCKET}"
UNSUITABLE = "Unable to validate the following destination configurations"
EVERY = "s3:ObjectCreated:*"


@pytest.fixture
def queue(server: Server) -> Queue:
    return Sqs(server).queue()


def rule(arn: str, *events: str, prefix: str = "", suffix: str = "", **more: str) -> dict[str, Any]:
    """A rule for the service of an ARN, in the API's words."""
    ends = {"prefix": prefix, "suffix": suffix}
    rules = [{"Name": name, "Value": value} for name, value in ends.items() if value]
    member = {"sqs": "Queue", "sns": "Topic", "lambda": "LambdaFunction"}[arn.split(":")[2]]
    return {
        f"{member}Arn": arn,
        "Events": list(events or [EVERY]),
        **({"Filter": {"Key": {"FilterRules": rules}}} if rules else {}),
        **more,
    }


def notify(s3: Any, *rules: dict[str, Any], **more: Any) -> None:
    sorts: dict[str, list[dict[str, Any]]] = {}
    for each in rules:
        (member,) = (name for name in each if name.endswith("Arn"))
        sorts.setdefault(f"{member.removesuffix('Arn')}Configurations", []).append(each)
    s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration={**sorts, **more})


def fault(s3: Any, *rules: dict[str, Any], **more: Any) -> dict[str, str]:
    """S3's error for rules that it refuses."""
    with pytest.raises(ClientError) as caught:
        notify(s3, *rules, **more)
    response: Any = caught.value.response
    return {name: text for name, text in response["Error"].items() if name not in ("RequestId", "HostId")}


def records(queue: Queue) -> list[dict[str, Any]]:
    """The events that a queue was told of, once all are delivered."""
    queue.sqs.server.advance(1)
    messages = []
    while received := queue.receive():
        messages += [json.loads(message["Body"]) for message in received]
    return [message["Records"][0] for message in messages if "Records" in message]


def events(queue: Queue) -> list[tuple[str, str]]:
    """Those events in order: what happened, and to which key."""
    return sorted((record["eventName"], record["s3"]["object"]["key"]) for record in records(queue))


def test_a_queue_is_told_of_what_happens_to_objects(s3: Any, queue: Queue) -> None:
    notify(s3, rule(queue.arn, EVERY, "s3:ObjectRemoved:*", "s3:ObjectTagging:*", Id="all"))
    message = queue.one()
    queue.delete(message)
    test = json.loads(message["Body"])
    assert test == {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": test["Time"],
        "Bucket": BUCKET,
        "RequestId": test["HostId"],
        "HostId": test["HostId"],
    }
    assert datetime.fromisoformat(test["Time"]).timestamp() == pytest.approx(queue.sqs.server.now(), abs=1)
    put = s3.put_object(Bucket=BUCKET, Key="a b/ü(1).png", Body=b"12345")
    (record,) = records(queue)
    sequencer = record["s3"]["object"].pop("sequencer")
    assert record == {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "us-east-1",
        "eventTime": record["eventTime"],
        "eventName": "ObjectCreated:Put",
        "userIdentity": {"principalId": f"AWS:{ACCOUNT}"},
        "requestParameters": {"sourceIPAddress": "127.0.0.1"},
        "responseElements": {
            "x-amz-request-id": put["ResponseMetadata"]["RequestId"],
            "x-amz-id-2": put["ResponseMetadata"]["HostId"],
        },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "all",
            "bucket": {"name": BUCKET, "ownerIdentity": {"principalId": ACCOUNT}, "arn": ARN},
            "object": {"key": "a+b/%C3%BC%281%29.png", "size": 5, "eTag": put["ETag"].strip('"')},
        },
    }
    head = s3.head_object(Bucket=BUCKET, Key="a b/ü(1).png")
    assert record["eventTime"][:19] == head["LastModified"].strftime("%Y-%m-%dT%H:%M:%S")
    s3.copy_object(Bucket=BUCKET, Key="copy", CopySource={"Bucket": BUCKET, "Key": "a b/ü(1).png"})
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    part = s3.upload_part(Bucket=BUCKET, Key="parts", UploadId=upload, PartNumber=1, Body=b"part")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(Bucket=BUCKET, Key="parts", UploadId=upload, MultipartUpload=parts)
    s3.put_object_tagging(Bucket=BUCKET, Key="copy", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    s3.delete_object_tagging(Bucket=BUCKET, Key="copy")
    assert events(queue) == [
        ("ObjectCreated:CompleteMultipartUpload", "parts"),
        ("ObjectCreated:Copy", "copy"),
        ("ObjectTagging:Delete", "copy"),
        ("ObjectTagging:Put", "copy"),
    ]
    s3.delete_object(Bucket=BUCKET, Key="a b/ü(1).png")
    s3.delete_object(Bucket=BUCKET, Key="absent")
    (removed,) = records(queue)
    assert removed["eventName"] == "ObjectRemoved:Delete"
    assert removed["s3"]["object"].pop("sequencer") > sequencer
    assert removed["s3"]["object"] == {"key": "a+b/%C3%BC%281%29.png"}
    s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": "copy"}, {"Key": "parts"}]})
    assert events(queue) == [("ObjectRemoved:Delete", "copy"), ("ObjectRemoved:Delete", "parts")]


def test_rules_are_for_their_events_and_their_keys(server: Server, s3: Any, queue: Queue) -> None:
    other, topic = Sqs(server).queue(), Sns(server).topic()
    heard = Sqs(server).queue()
    topic.subscribe("sqs", heard.arn, RawMessageDelivery="true")
    notify(
        s3,
        rule(queue.arn, "s3:ObjectCreated:Put", prefix="in/", suffix=".png"),
        rule(other.arn, "s3:ObjectCreated:Copy", "s3:ObjectRemoved:Delete"),
        rule(topic.arn, "s3:ObjectCreated:Put", prefix="in/", suffix=".jpg"),
    )
    server.advance(1)
    assert [json.loads(each.one()["Body"])["Event"] for each in (queue, other, heard)] == ["s3:TestEvent"] * 3
    for key in ("in/a.png", "in/a.jpg", "in/a.gif", "out/a.png"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"")
    s3.copy_object(Bucket=BUCKET, Key="in/b.png", CopySource={"Bucket": BUCKET, "Key": "in/a.png"})
    s3.delete_object(Bucket=BUCKET, Key="in/a.gif")
    assert events(queue) == [("ObjectCreated:Put", "in/a.png")]
    assert events(heard) == [("ObjectCreated:Put", "in/a.jpg")]
    assert events(other) == [("ObjectCreated:Copy", "in/b.png"), ("ObjectRemoved:Delete", "in/a.gif")]
    configured = s3.get_bucket_notification_configuration(Bucket=BUCKET)
    assert [(each["QueueArn"], each["Events"]) for each in configured["QueueConfigurations"]] == [
        (queue.arn, ["s3:ObjectCreated:Put"]),
        (other.arn, ["s3:ObjectCreated:Copy", "s3:ObjectRemoved:Delete"]),
    ]
    assert configured["TopicConfigurations"][0]["Filter"]["Key"]["FilterRules"] == [
        {"Name": "Prefix", "Value": "in/"},
        {"Name": "Suffix", "Value": ".jpg"},
    ]
    assert len({each["Id"] for each in configured["QueueConfigurations"]}) == 2
    notify(s3)
    s3.put_object(Bucket=BUCKET, Key="in/a.png", Body=b"")
    assert events(queue) == []
    assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket=BUCKET)


def test_the_policy_of_a_destination_is_asked_at_first_and_at_each_event(
    server: Server, s3: Any, queue: Queue
) -> None:
    def let_in(arn: str, account: str) -> None:
        condition = {"ArnLike": {"aws:SourceArn": arn}, "StringEquals": {"aws:SourceAccount": account}}
        allowed = {
            "Effect": "Allow",
            "Principal": {"Service": "s3.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue.arn,
            "Condition": condition,
        }
        queue.set(Policy=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}))

    denied = "Permissions on the destination queue do not allow S3 to publish notifications from this bucket"
    for arn, account in ((f"{ARN}x", ACCOUNT), (ARN, OTHER)):
        let_in(arn, account)
        assert fault(s3, rule(queue.arn)) == {
            "Code": "InvalidArgument",
            "Message": UNSUITABLE,
            "ArgumentName1": queue.arn,
            "ArgumentValue1": denied,
        }
    assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket=BUCKET)
    let_in("arn:aws:s3:::wh*", ACCOUNT)
    notify(s3, rule(queue.arn))
    queue.delete(queue.one())
    s3.put_object(Bucket=BUCKET, Key="a", Body=b"")
    assert events(queue) == [("ObjectCreated:Put", "a")]
    let_in("arn:aws:s3:::other", ACCOUNT)
    s3.put_object(Bucket=BUCKET, Key="b", Body=b"")
    assert events(queue) == []
    let_in(ARN, ACCOUNT)
    assert events(queue) == []  # a refusal is final
    failed = f"s3.notification_failed bucket={BUCKET} destination={queue.arn} event=ObjectCreated:Put key=b"
    assert failed in server.log.read_text()


def test_configurations_are_refused_in_s3s_words(server: Server, s3: Any, queue: Queue) -> None:
    absent, missing = f"{queue.arn}x", f"arn:aws:sns:us-east-1:{ACCOUNT}:absent"
    kept = rule(queue.arn, "s3:ObjectRemoved:*", Id="kept")
    notify(s3, kept)

    def refused(text: str, *rules: dict[str, Any], code: str = "InvalidArgument", **details: str) -> None:
        answer = fault(s3, *rules)
        assert answer == {"Code": code, "Message": text, **details}

    refused(
        UNSUITABLE,
        rule(absent),
        rule(missing, "s3:ObjectRemoved:*"),
        ArgumentName1=missing,
        ArgumentValue1="The destination topic does not exist",
        ArgumentName2=absent,
        ArgumentValue2="The destination queue does not exist",
    )
    text = "The ARN could not be parsed"
    refused(text, {**rule(queue.arn), "QueueArn": missing}, ArgumentName="QueueArn", ArgumentValue=missing)
    away = queue.arn.replace("us-east-1", "eu-west-1")
    text = "The notification destination service region is not valid for the bucket location constraint"
    refused(text, rule(away), ArgumentName="QueueArn", ArgumentValue=away)
    text = "The event 's3:Created' is not supported for notifications"
    refused(text, rule(queue.arn, "s3:Created"), ArgumentName="Event", ArgumentValue="s3:Created")
    odd = {"Key": {"FilterRules": [{"Name": "middle", "Value": "a"}]}}
    text = "filter rule name must be either prefix or suffix"
    refused(text, {**rule(queue.arn), "Filter": odd}, ArgumentName="FilterRule.Name", ArgumentValue="middle")
    twice = {"Key": {"FilterRules": [{"Name": "prefix", "Value": each} for each in "ab"]}}
    text = "Cannot specify more than one prefix rule in a filter."
    refused(
        text, {**rule(queue.arn), "Filter": twice}, ArgumentName="FilterRule.Name", ArgumentValue="prefix"
    )
    text = "Same ID used for multiple configurations. IDs must be unique"
    refused(text, rule(queue.arn, Id="a"), rule(queue.arn, "s3:ObjectRemoved:*", Id="a"))
    refused(
        "Configurations overlap. Configurations on the same bucket cannot share a common event type.",
        rule(queue.arn, "s3:ObjectCreated:Put"),
        rule(queue.arn, EVERY),
        ArgumentName="Event",
        ArgumentValue=f"s3:ObjectCreated:Put, {EVERY}",
    )
    ambiguous = (
        "Configuration is ambiguously defined. Cannot have overlapping suffixes in two rules if the prefixes are"
        " overlapping for the same event type."
    )
    refused(ambiguous, rule(queue.arn, prefix="images/"), rule(queue.arn, "s3:ObjectCreated:Put", suffix="g"))
    refused(ambiguous, rule(queue.arn, prefix="a", suffix=".png"), rule(queue.arn, prefix="ab", suffix="png"))
    many = [rule(queue.arn, prefix=f"{number:03d}/", Id=f"{number:03d}") for number in range(101)]
    text = "You are attempting to create a new configuration but have already reached the 100-configuration limit."
    refused(text, *many, code="TooManyConfigurations")
    text = "Redrive does not offer the parameter EventBridgeConfiguration of S3."
    assert fault(s3, EventBridgeConfiguration={}) == {"Code": "NotImplemented", "Message": text}
    assert fault(s3, {**rule(queue.arn), "Events": []})["Code"] == "MalformedXML"
    assert s3.get_bucket_notification_configuration(Bucket=BUCKET)["QueueConfigurations"] == [kept]
    s3.put_bucket_notification_configuration(
        Bucket=BUCKET,
        NotificationConfiguration={"QueueConfigurations": [rule(absent, Id="later")]},
        SkipDestinationValidation=True,
    )
    notify(s3, *many[:100])
    s3.put_object(Bucket=BUCKET, Key="042/a", Body=b"")
    assert [each["s3"]["configurationId"] for each in records(queue)] == ["042"]
