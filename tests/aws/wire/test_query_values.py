"""Lists, maps and scalars of query requests, in every spelling and every misspelling."""

import pytest

from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.query.input import read_form, structure_reader, tree
from redrive.aws.wire.service import Service
from redrive.model.http import Request


def read(service: str, operation: str, form: str):
    fields = read_form(Request("GET", "/", form, {}, b""), 100)
    return structure_reader(Service.load(service).operation(operation).input)(tree(fields, 100))


@pytest.mark.parametrize(
    ("service", "operation", "form", "expected"),
    [
        pytest.param("sqs", "GetQueueAttributes", "AttributeName.1=a&AttributeName.2=b",
                     {"AttributeNames": ["a", "b"]}, id="flattened list"),
        pytest.param("sqs", "GetQueueAttributes", "AttributeName=a", {"AttributeNames": ["a"]},
                     id="flattened list of one without index"),
        pytest.param("sqs", "GetQueueAttributes", "AttributeNames=", {"AttributeNames": []},
                     id="empty flattened list under its own name"),
        pytest.param("sqs", "GetQueueAttributes", "AttributeName=", {"AttributeNames": []},
                     id="empty flattened list under its elements' name"),
        pytest.param("sqs", "GetQueueAttributes", "AttributeName.10=c&AttributeName.9=b&AttributeName.1=a",
                     {"AttributeNames": ["a", "b", "c"]}, id="numeric order, with gaps"),
        pytest.param("sqs", "SendMessage",
                     "MessageAttribute.1.Name=a&MessageAttribute.1.Value.StringListValue.1=x"
                     "&MessageAttribute.1.Value.StringListValue.2=y",
                     {"MessageAttributes": {"a": {"StringListValues": ["x", "y"]}}},
                     id="list flattened where it is used"),
        pytest.param("sns", "PublishBatch",
                     "PublishBatchRequestEntries.member.1.Id=a&PublishBatchRequestEntries.member.2.Id=b",
                     {"PublishBatchRequestEntries": [{"Id": "a"}, {"Id": "b"}]}, id="member list"),
        pytest.param("sns", "TagResource", "Tags=", {"Tags": []}, id="empty member list"),
        pytest.param("sns", "TagResource", "Tags.member.1=x", {"Tags": [{}]},
                     id="text where a structure is expected"),
        pytest.param("sns", "CreateTopic", "Attributes.entry.1.key=k&Attributes.entry.1.value=v",
                     {"Attributes": {"k": "v"}}, id="entry map"),
        pytest.param("sns", "CreateTopic", "Attributes=", {"Attributes": {}}, id="empty entry map"),
        pytest.param("sns", "Publish", "MessageAttributes.entry.1.Name=n&MessageAttributes.entry.1.Value.DataType=S",
                     {"MessageAttributes": {"n": {"DataType": "S"}}}, id="entry map with names of its own"),
        pytest.param("sqs", "CreateQueue", "Attribute.2.Name=b&Attribute.2.Value=2&Attribute.1.Name=a"
                     "&Attribute.1.Value=1", {"Attributes": {"a": "1", "b": "2"}}, id="flattened map"),
        pytest.param("sqs", "CreateQueue", "Attribute.Name=a&Attribute.Value=1", {"Attributes": {"a": "1"}},
                     id="flattened map of one without index"),
        pytest.param("sqs", "SendMessage", "MessageBody=a%20b+c%3D%C3%A4&DelaySeconds=-3",
                     {"MessageBody": "a b c=ä", "DelaySeconds": -3}, id="text and number"),
        pytest.param("sqs", "SendMessage", "MessageBody=a=b=c", {"MessageBody": "a=b=c"}, id="equals in a value"),
        pytest.param("sqs", "SendMessage", "MessageBody", {"MessageBody": ""}, id="name without equals"),
        pytest.param("sqs", "SendMessage", "&&=x&Nonsense.1.2=x&.=y", {}, id="unknown names"),
        pytest.param("sqs", "SendMessage", "MessageAttribute" + ".1" * 400 + "=x", {}, id="too many dots"),
        pytest.param("cloudwatch", "DisableAlarmActions", "AlarmNames.member.1=a", {"AlarmNames": ["a"]},
                     id="member list of text"),
        pytest.param("cloudwatch", "PutMetricData", "MetricData.member.1.Value=-1.5e3",
                     {"MetricData": [{"Value": -1500.0}]}, id="double"),
        pytest.param("cloudwatch", "PutMetricData", "MetricData.member.1.Timestamp=2026-01-02T03:04:05.678Z",
                     {"MetricData": [{"Timestamp": 1767323045678}]}, id="timestamp"),
        pytest.param("cloudwatch", "PutMetricAlarm", "ActionsEnabled=True", {"ActionsEnabled": True},
                     id="boolean in any case"),
    ],
)  # fmt: skip
def test_query_values_are_read_by_their_shape(
    service: str, operation: str, form: str, expected: dict
) -> None:
    assert read(service, operation, form) == expected


@pytest.mark.parametrize(
    ("service", "operation", "form", "message"),
    [
        ("sqs", "SendMessage", "DelaySeconds=five", "five can not be converted to an Integer"),
        ("sqs", "SendMessage", "DelaySeconds=", " can not be converted to an Integer"),
        ("sqs", "SendMessage", "DelaySeconds=1_0", "1_0 can not be converted to an Integer"),
        ("sqs", "SendMessage", "DelaySeconds=%D9%A3", "٣ can not be converted to an Integer"),
        ("sqs", "SendMessage", f"DelaySeconds={2**63}", f"{2**63} can not be converted to an Integer"),
        ("sqs", "SendMessage", "MessageBody.x=1", "Start of structure or map found where not expected."),
        ("sqs", "GetQueueAttributes", "AttributeName.x=1", "x is not a valid index"),
        ("sqs", "GetQueueAttributes", f"AttributeName.{'9' * 5000}=1", f"{'9' * 5000} is not a valid index"),
        ("sqs", "GetQueueAttributes", "AttributeName.%C2%B2=1", "² is not a valid index"),
        ("sqs", "CreateQueue", "Attribute.1.Name=a", "A map entry must have a Name and a Value"),
        ("sns", "CreateTopic", "Attributes.entry.1.value=a", "A map entry must have a key and a value"),
        ("sqs", "SendMessage", "MessageAttribute.1.Name=a&MessageAttribute.1.Value.BinaryValue=~",
         "~ can not be converted to a Blob"),
        ("cloudwatch", "PutMetricData", "MetricData.member.1.Value=1e", "1e can not be converted to a Double"),
        ("cloudwatch", "PutMetricData", "MetricData.member.1.Timestamp=soon", "soon can not be converted to a Date"),
        ("cloudwatch", "PutMetricAlarm", "ActionsEnabled=1", "1 can not be converted to a Boolean"),
    ],
)  # fmt: skip
def test_query_values_of_another_shape_are_refused(
    service: str, operation: str, form: str, message: str
) -> None:
    with pytest.raises(AwsError) as refused:
        read(service, operation, form)
    assert (refused.value.query_code, refused.value.status) == ("MalformedInput", 400)
    assert refused.value.query_message == message
