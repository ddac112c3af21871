"""SQS's query protocol word for word: the names of the 2012-11-05 reference, which no published model has now."""

from urllib.parse import urlencode

import pytest

from redrive.aws.gateway.recognise import recognise
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.model.http import Request

SQS = Service.load("sqs")
URL = "http://localhost:4566/000000000000/q"

REQUESTS = [
    ("CreateQueue", {"QueueName": "q", "Attribute.1.Name": "DelaySeconds", "Attribute.1.Value": "5",
                     "Tag.1.Key": "team", "Tag.1.Value": "a"},
     {"QueueName": "q", "Attributes": {"DelaySeconds": "5"}, "tags": {"team": "a"}}),
    ("SetQueueAttributes", {"QueueUrl": URL, "Attribute.Name": "VisibilityTimeout", "Attribute.Value": "35"},
     {"QueueUrl": URL, "Attributes": {"VisibilityTimeout": "35"}}),
    ("GetQueueAttributes", {"QueueUrl": URL, "AttributeName.1": "All", "AttributeName.2": "Policy"},
     {"QueueUrl": URL, "AttributeNames": ["All", "Policy"]}),
    ("SendMessage", {"QueueUrl": URL, "MessageBody": "hi", "DelaySeconds": "0",
                     "MessageAttribute.1.Name": "a", "MessageAttribute.1.Value.DataType": "String",
                     "MessageAttribute.1.Value.StringValue": "v",
                     "MessageAttribute.2.Name": "b", "MessageAttribute.2.Value.DataType": "Binary",
                     "MessageAttribute.2.Value.BinaryValue": "AP8=",
                     "MessageSystemAttribute.1.Name": "AWSTraceHeader",
                     "MessageSystemAttribute.1.Value.DataType": "String",
                     "MessageSystemAttribute.1.Value.StringValue": "Root=1"},
     {"QueueUrl": URL, "MessageBody": "hi", "DelaySeconds": 0,
      "MessageAttributes": {"a": {"DataType": "String", "StringValue": "v"},
                            "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}},
      "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}}),
    ("SendMessageBatch", {"QueueUrl": URL,
                          "SendMessageBatchRequestEntry.1.Id": "a",
                          "SendMessageBatchRequestEntry.1.MessageBody": "one",
                          "SendMessageBatchRequestEntry.2.Id": "b",
                          "SendMessageBatchRequestEntry.2.MessageBody": "two",
                          "SendMessageBatchRequestEntry.2.MessageAttribute.1.Name": "n",
                          "SendMessageBatchRequestEntry.2.MessageAttribute.1.Value.DataType": "String"},
     {"QueueUrl": URL, "Entries": [{"Id": "a", "MessageBody": "one"},
                                   {"Id": "b", "MessageBody": "two",
                                    "MessageAttributes": {"n": {"DataType": "String"}}}]}),
    ("ReceiveMessage", {"QueueUrl": URL, "MaxNumberOfMessages": "10", "AttributeName.1": "SenderId",
                        "MessageSystemAttributeName.1": "SentTimestamp", "MessageAttributeName.1": "All"},
     {"QueueUrl": URL, "MaxNumberOfMessages": 10, "AttributeNames": ["SenderId"],
      "MessageSystemAttributeNames": ["SentTimestamp"], "MessageAttributeNames": ["All"]}),
    ("DeleteMessageBatch", {"QueueUrl": URL, "DeleteMessageBatchRequestEntry.1.Id": "a",
                            "DeleteMessageBatchRequestEntry.1.ReceiptHandle": "r"},
     {"QueueUrl": URL, "Entries": [{"Id": "a", "ReceiptHandle": "r"}]}),
    ("ChangeMessageVisibilityBatch", {"QueueUrl": URL, "ChangeMessageVisibilityBatchRequestEntry.1.Id": "a",
                                      "ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout": "7"},
     {"QueueUrl": URL, "Entries": [{"Id": "a", "VisibilityTimeout": 7}]}),
    ("AddPermission", {"QueueUrl": URL, "Label": "l", "AWSAccountId.1": "111122223333",
                       "ActionName.1": "SendMessage"},
     {"QueueUrl": URL, "Label": "l", "AWSAccountIds": ["111122223333"], "Actions": ["SendMessage"]}),
    ("TagQueue", {"QueueUrl": URL, "Tag.1.Key": "k", "Tag.1.Value": ""}, {"QueueUrl": URL, "Tags": {"k": ""}}),
    ("UntagQueue", {"QueueUrl": URL, "TagKey.1": "k"}, {"QueueUrl": URL, "TagKeys": ["k"]}),
]  # fmt: skip


def parsed(request: Request, name: str):
    recognised = recognise(request)
    assert recognised is not None
    assert (recognised.service, recognised.operation) == ("sqs", name)
    assert recognised.codec is not None
    return recognised.codec.parse(SQS.operation(name), request)


@pytest.mark.parametrize(("name", "fields", "expected"), REQUESTS, ids=[row[0] for row in REQUESTS])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_query_names_of_requests_are_translated(name: str, fields: dict, expected: dict, method: str) -> None:
    form = urlencode({"Action": name, "Version": "2012-11-05", **fields})
    query, body = (form, b"") if method == "GET" else ("", form.encode())
    assert parsed(Request(method, "/", query, {"host": "localhost:4566"}, body), name) == expected


@pytest.mark.parametrize(
    "form", ["Action=SendMessage&MessageBody=x", "MessageBody=x&Version=&Action=SendMessage"]
)
def test_the_queue_url_may_be_the_request_url(form: str) -> None:
    request = Request("GET", "/000000000000/q", form, {"host": "localhost:4566"}, b"")
    assert parsed(request, "SendMessage") == {"QueueUrl": URL, "MessageBody": "x"}


def test_a_given_queue_url_stands_before_the_request_url() -> None:
    form = f"Action=SendMessage&QueueUrl={URL}2"
    assert parsed(Request("GET", "/000000000000/q", form, {}, b""), "SendMessage") == {"QueueUrl": f"{URL}2"}


def test_the_root_is_no_queue_url() -> None:
    assert parsed(Request("GET", "/", "Action=PurgeQueue", {"host": "h"}, b""), "PurgeQueue") == {}


@pytest.mark.parametrize(
    ("query", "body"), [("", b"MessageBody=\xff"), ("MessageBody=%FF", b""), ("", b"MessageBody=%ED%A0%80")]
)
def test_parameters_that_are_not_utf_8_are_refused(query: str, body: bytes) -> None:
    request = Request("POST", "/", f"Action=SendMessage&{query}", {}, body)
    with pytest.raises(AwsError) as refused:
        parsed(request, "SendMessage")
    assert (refused.value.query_code, refused.value.status) == ("MalformedInput", 400)


def test_parameters_in_the_query_and_in_the_body_are_one_form() -> None:
    request = Request("POST", "/", "Action=SendMessage&MessageBody=a", {}, b"MessageBody=b&DelaySeconds=1")
    assert parsed(request, "SendMessage") == {"MessageBody": "b", "DelaySeconds": 1}


def rendered(name: str, result: dict, **headers: str) -> bytes:
    recognised = recognise(Request("GET", "/", f"Action={name}&Version=2012-11-05", headers, b""))
    assert recognised is not None
    assert recognised.codec is not None
    return recognised.codec.render(SQS.operation(name), result, "an-id").body


MESSAGE = {"MessageId": "1", "Body": "hi", "Attributes": {"SenderId": "me"},
           "MessageAttributes": {"a": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}}  # fmt: skip

_XML = (
    '<?xml version="1.0"?><{0}Response xmlns="http://queue.amazonaws.com/doc/2012-11-05/">{1}</{0}Response>'
)
_METADATA = "<ResponseMetadata><RequestId>an-id</RequestId></ResponseMetadata>"


@pytest.mark.parametrize(
    ("name", "result", "inner"),
    [
        ("DeleteMessage", {}, ""),
        ("ReceiveMessage", {"Messages": []}, "<ReceiveMessageResult/>"),
        (
            "ReceiveMessage",
            {"Messages": [MESSAGE]},
            (
                "<ReceiveMessageResult><Message><MessageId>1</MessageId><Body>hi</Body>"
                "<Attribute><Name>SenderId</Name><Value>me</Value></Attribute>"
                "<MessageAttribute><Name>a</Name><Value><BinaryValue>AP8=</BinaryValue><DataType>Binary</DataType>"
                "</Value></MessageAttribute></Message></ReceiveMessageResult>"
            ),
        ),
        (
            "ListQueues",
            {"QueueUrls": ["http://a/1", "http://a/2"]},
            "<ListQueuesResult><QueueUrl>http://a/1</QueueUrl><QueueUrl>http://a/2</QueueUrl></ListQueuesResult>",
        ),
        (
            "DeleteMessageBatch",
            {"Successful": [{"Id": "a"}], "Failed": [{"Id": "b", "SenderFault": True, "Code": "C"}]},
            (
                "<DeleteMessageBatchResult>"
                "<DeleteMessageBatchResultEntry><Id>a</Id></DeleteMessageBatchResultEntry>"
                "<BatchResultErrorEntry><Id>b</Id><SenderFault>true</SenderFault><Code>C</Code></BatchResultErrorEntry>"
                "</DeleteMessageBatchResult>"
            ),
        ),
        (
            "ListQueueTags",
            {"Tags": {"k": "v"}},
            "<ListQueueTagsResult><Tag><Key>k</Key><Value>v</Value></Tag></ListQueueTagsResult>",
        ),
    ],
)
def test_query_names_of_answers_are_translated(name: str, result: dict, inner: str) -> None:
    assert rendered(name, result).decode() == _XML.format(name, inner + _METADATA)


@pytest.mark.parametrize(
    ("name", "result", "expected"),
    [
        (
            "ReceiveMessage",
            {"Messages": []},
            (
                b'{"ReceiveMessageResponse":{"ResponseMetadata":{"RequestId":"an-id"},'
                b'"ReceiveMessageResult":{"messages":null}}}'
            ),
        ),
        (
            "ReceiveMessage",
            {"Messages": [{"MessageId": "1", "Body": "b"}]},
            (
                b'{"ReceiveMessageResponse":{"ResponseMetadata":{"RequestId":"an-id"},"ReceiveMessageResult":'
                b'{"messages":[{"MessageId":"1","ReceiptHandle":null,"MD5OfBody":null,"Body":"b","Attributes":null,'
                b'"MD5OfMessageAttributes":null,"MessageAttributes":null}]}}}'
            ),
        ),
        (
            "GetQueueAttributes",
            {"Attributes": {"DelaySeconds": "0"}},
            (
                b'{"GetQueueAttributesResponse":{"ResponseMetadata":{"RequestId":"an-id"},"GetQueueAttributesResult":'
                b'{"Attributes":[{"Name":"DelaySeconds","Value":"0"}]}}}'
            ),
        ),
        ("PurgeQueue", {}, b'{"PurgeQueueResponse":{"ResponseMetadata":{"RequestId":"an-id"}}}'),
    ],
)
def test_answers_in_json(name: str, result: dict, expected: bytes) -> None:
    assert rendered(name, result, accept="application/json") == expected


def test_sns_answers_in_json_as_api_gateway_reads_them() -> None:
    recognised = recognise(Request("GET", "/", "Action=Publish", {"accept": "application/json"}, b""))
    assert recognised is not None
    assert recognised.codec is not None
    response = recognised.codec.render(Service.load("sns").operation("Publish"), {"MessageId": "m"}, "an-id")
    assert response.content_type == "application/json"
    assert response.body == (
        b'{"PublishResponse":{"ResponseMetadata":{"RequestId":"an-id"},'
        b'"PublishResult":{"MessageId":"m","SequenceNumber":null}}}'
    )
