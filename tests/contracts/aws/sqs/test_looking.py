"""Requests made by hand and by other tools: control routes, LocalStack's routes, Query by GET, JSON answers."""

from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree as ET

import orjson
import pytest

from tests.contracts.aws.sqs.client import ACCOUNT, Queue, Sqs, new_name, refused, text
from tests.services.clients import sdk
from tests.services.server import Server

JSON = {"Accept": "application/json"}


@pytest.fixture
def sqs(server: Server) -> Sqs:
    """None of this depends on boto3's protocol."""
    return Sqs(server)


def document(answer: tuple[int, bytes]) -> Any:
    return orjson.loads(answer[1])


# ---- control routes ----------------------------------------------------------------------------------------------


def test_the_health_route_answers_ok(server: Server) -> None:
    status, body = server.ask("GET", "/_redrive/health")
    assert status == 200
    assert orjson.loads(body)["status"] == "ok"


def test_metrics_count_what_happened(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("four")
    queue.send("five!")
    queue.delete(queue.receive(1)[0])
    queue.receive()
    queue.receive()
    status, body = sqs.server.ask("GET", "/_redrive/metrics")
    label = f'{{account="{ACCOUNT}",region="us-east-1",queue="{queue.name}"}}'
    counted = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if label in line)
    assert status == 200
    assert counted[f"redrive_queue_messages_sent_total{label}"] == "2"
    assert counted[f"redrive_queue_bytes_sent_total{label}"] == "9"
    assert counted[f"redrive_queue_messages_received_total{label}"] == "2"
    assert counted[f"redrive_queue_messages_deleted_total{label}"] == "1"
    assert counted[f"redrive_queue_empty_receives_total{label}"] == "1"


def test_a_reset_leaves_nothing(sqs: Sqs) -> None:
    queue, fifo = sqs.queue(), sqs.fifo()
    queue.send()
    fifo.send_fifo("1")
    sqs.server.reset()
    assert sqs.urls() == []
    assert sqs.create(queue.name).receive() == []
    again = sqs.create(fifo.name, {"FifoQueue": "true"})
    again.send_fifo("1")
    assert again.bodies() == ["1"]


def test_the_clock_is_where_it_was_put(server: Server) -> None:
    before = server.now()
    answer = document(server.ask("POST", "/_redrive/clock", b'{"advance_seconds": 1.5}'))
    assert answer == {"now": pytest.approx(before + 1.5), "attempts": 0}
    assert server.now() == pytest.approx(before + 1.5)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b"{}",
        b'{"advance_seconds": -1}',
        b'{"advance_seconds": "1"}',
        b'{"advance_seconds": true}',
        b'{"advance_seconds": null}',
        b'{"advance_seconds": 1e300}',
        b'{"advance_seconds": NaN}',
    ],
)
def test_a_clock_is_not_moved_by_nonsense(server: Server, body: bytes) -> None:
    before = server.now()
    assert server.ask("POST", "/_redrive/clock", body)[0] == 400
    assert server.now() == before


def test_a_route_without_a_queue_is_refused(server: Server) -> None:
    assert server.ask("GET", "/_redrive/nonsense")[0] == 404
    assert server.ask("DELETE", "/_redrive/health")[0] == 404


# ---- LocalStack's routes -----------------------------------------------------------------------------------------


def test_localstacks_health_route_lists_the_services(server: Server) -> None:
    status, body = server.ask("GET", "/_localstack/health")
    health = orjson.loads(body)
    assert status == 200
    assert health["services"]["sqs"] == "running"
    assert {"edition", "version"} <= health.keys()


def peek(queue: Queue, **asked: str) -> list[dict[str, Any]]:
    """Return the messages that LocalStack's route shows, with their attributes as one mapping."""
    query = urlencode({"QueueUrl": queue.url, **asked})
    answer = document(queue.sqs.server.ask("GET", f"/_aws/sqs/messages?{query}", headers=JSON))
    result = answer["ReceiveMessageResponse"]["ReceiveMessageResult"] or {}
    found = result.get("Message", [])
    return [
        {**one, "Attribute": {named["Name"]: named["Value"] for named in one["Attribute"]}}
        for one in (found if isinstance(found, list) else [found])
    ]


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


def test_looking_changes_nothing(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("message-1", MessageAttributes={"Foo": text("Bar")})
    queue.send("message-2")
    for _ in range(3):
        first, second = peek(queue)
    assert (first["Body"], second["Body"]) == ("message-1", "message-2")
    assert first["MD5OfBody"] == "3d6b824fd8c1520e9a047d21fee6fb1f"
    assert first["MessageAttribute"] == {"Name": "Foo", "Value": {"DataType": "String", "StringValue": "Bar"}}
    assert first["Attribute"] == {
        "SenderId": ACCOUNT,
        "SentTimestamp": str(round(sqs.server.now() * 1000)),
        "ApproximateReceiveCount": "0",
        "ApproximateFirstReceiveTimestamp": "0",
        "IsVisible": "true",
        "IsDelayed": "false",
    }
    assert queue.receive(1, VisibilityTimeout=0)[0]["Attributes"]["ApproximateReceiveCount"] == "1"
    assert [one["Attribute"]["ApproximateReceiveCount"] for one in peek(queue)] == ["1", "0"]


def test_messages_in_flight_are_shown_on_demand(sqs: Sqs) -> None:
    queue = sqs.queue()
    for body in ("1", "2", "3"):
        queue.send(body)
    queue.receive(1)
    assert bodies(peek(queue, ShowInvisible="False")) == ["2", "3"]
    shown = peek(queue, ShowInvisible="True")
    assert bodies(shown) == ["1", "2", "3"]
    assert [one["Attribute"]["IsVisible"] for one in shown] == ["false", "true", "true"]


def test_a_group_in_flight_is_shown_on_demand(sqs: Sqs) -> None:
    queue = sqs.fifo()
    for body in ("a1", "a2", "b1", "b2"):
        queue.send_fifo(body, group=body[0])
    queue.receive(1)
    assert bodies(peek(queue)) == ["b1", "b2"]
    assert bodies(peek(queue, ShowInvisible="true")) == ["a1", "a2", "b1", "b2"]


def test_delayed_messages_are_shown_on_demand(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("now")
    queue.send("later", DelaySeconds=10)
    assert bodies(peek(queue)) == ["now"]
    shown = peek(queue, ShowDelayed="true")
    assert [(one["Body"], one["Attribute"]["IsDelayed"]) for one in shown] == [
        ("now", "false"),
        ("later", "true"),
    ]


def test_an_expired_message_is_not_shown(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("old")
    sqs.server.advance(60)
    queue.set(MessageRetentionPeriod="60")
    assert peek(queue) == []


def test_a_queue_may_be_named_in_the_path(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("found")
    path = f"/_aws/sqs/messages/us-east-1/{ACCOUNT}/{queue.name}"
    status, body = sqs.server.ask("GET", path)
    assert status == 200
    assert b"<Body>found</Body>" in body
    status, body = sqs.server.ask("GET", path.replace("us-east-1", "us-east-2"), headers=JSON)
    assert status == 400
    assert orjson.loads(body)["ErrorResponse"]["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 400, "AWS.SimpleQueueService.NonExistentQueue"),
        ("?QueueUrl=http://localhost/nonsense", 404, "InvalidAddress"),
        (f"?QueueUrl=http://localhost/{ACCOUNT}/nonsense", 400, "AWS.SimpleQueueService.NonExistentQueue"),
    ],
)
def test_looking_into_what_is_no_queue(server: Server, query: str, status: int, code: str) -> None:
    answered, body = server.ask("GET", f"/_aws/sqs/messages{query}", headers=JSON)
    assert answered == status
    assert orjson.loads(body)["ErrorResponse"]["Error"]["Code"] == code


@pytest.mark.parametrize("protocol", ["json", "query"])
def test_an_sdk_may_look(sqs: Sqs, protocol: Any) -> None:
    queue = sqs.queue()
    for body in ("message-1", "message-2"):
        queue.send(body)
    client = sdk(f"{sqs.server.url}/_aws/sqs/messages", protocol)
    answer = client.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=1)
    assert [one["Body"] for one in answer["Messages"]] == ["message-1", "message-2"]
    assert answer["Messages"][0]["Attributes"]["ApproximateReceiveCount"] == "0"
    with refused("InvalidRequest", "This endpoint only accepts ReceiveMessage calls"):
        client.send_message(QueueUrl=queue.url, MessageBody="b")


def test_a_caller_who_may_not_receive_may_not_look(sqs: Sqs) -> None:
    queue = sqs.queue()
    client = sdk(f"{sqs.server.url}/_aws/sqs/messages", key=("200000000000", "secret"))
    with refused("AccessDenied", status=403):
        client.receive_message(QueueUrl=queue.url)


# ---- Query by hand -----------------------------------------------------------------------------------------------

NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"


def test_query_by_get(sqs: Sqs) -> None:
    queue = sqs.queue()
    path = f"/{ACCOUNT}/{queue.name}"
    asked = "Action=SendMessage&Version=2012-11-05&MessageBody=by+get%21"
    status, body = sqs.server.ask("GET", f"{path}?{asked}")
    answer = ET.fromstring(body)
    assert status == 200
    assert answer.tag == f"{NAMESPACE}SendMessageResponse"
    assert answer.findtext(f"*/{NAMESPACE}MD5OfMessageBody") == "90ca640fa1bbc9dcaab3a47f5c8d09a8"
    assert queue.bodies() == ["by get!"]


def test_query_by_post_to_the_root_with_a_url(sqs: Sqs) -> None:
    queue = sqs.queue()
    body = f"Action=SendMessage&QueueUrl={quote(queue.url)}&MessageBody=by+post&Version=2012-11-05"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert sqs.server.ask("POST", "/", body.encode(), headers)[0] == 200
    assert queue.bodies() == ["by post"]


def test_json_is_answered_where_it_is_accepted(sqs: Sqs) -> None:
    name = new_name()
    asked = f"/?Action=CreateQueue&QueueName={name}&Version=2012-11-05"
    answer = document(sqs.server.ask("GET", asked, headers=JSON))["CreateQueueResponse"]
    assert answer["CreateQueueResult"] == {"QueueUrl": f"{sqs.server.url}/{ACCOUNT}/{name}"}
    assert answer["ResponseMetadata"]["RequestId"]
    listed = document(sqs.server.ask("GET", "/?Action=ListQueues&Version=2012-11-05", headers=JSON))
    assert listed["ListQueuesResponse"]["ListQueuesResult"]["queueUrls"] == sqs.urls()
    _, xml = sqs.server.ask("GET", "/?Action=ListQueues&Version=2012-11-05")
    assert ET.fromstring(xml).tag == f"{NAMESPACE}ListQueuesResponse"


def test_json_refusals_where_they_are_accepted(server: Server) -> None:
    asked = "/?Action=GetQueueUrl&QueueName=none&Version=2012-11-05"
    status, body = server.ask("GET", asked, headers=JSON)
    assert status == 400
    assert orjson.loads(body)["Error"] == {
        "Code": "AWS.SimpleQueueService.NonExistentQueue",
        "Message": "The specified queue does not exist for this wsdl version.",
        "Type": "Sender",
    }


def test_a_request_that_asks_nothing(server: Server) -> None:
    assert server.ask("GET", "/") == (404, b"<UnknownOperationException/>\n")
    assert server.ask("GET", "/?Action=Nonsense&Version=2012-11-05")[0] == 400


# ---- errors over JSON --------------------------------------------------------------------------------------------


def test_an_error_has_a_shape_and_a_query_code(server: Server) -> None:
    connection = server.connect()
    headers = {
        "X-Amz-Target": "AmazonSQS.GetQueueUrl",
        "Content-Type": "application/x-amz-json-1.0",
    }
    connection.request("POST", "/", b'{"QueueName": "none"}', headers)
    answer = connection.getresponse()
    assert answer.status == 400
    assert answer.headers["Content-Type"] == "application/x-amz-json-1.0"
    assert answer.headers["x-amzn-query-error"] == "AWS.SimpleQueueService.NonExistentQueue;Sender"
    assert orjson.loads(answer.read()) == {
        "__type": "com.amazonaws.sqs#QueueDoesNotExist",
        "message": "The specified queue does not exist.",
    }
    connection.close()


@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        ("AmazonSQS.Nonsense", b"{}", 400),
        ("AmazonSQS.ListQueues", b"nonsense", 400),
        ("AmazonSQS.ListQueues", b"[]", 400),
        ("AmazonSQS.SendMessage", b'{"QueueUrl": 7}', 400),
        ("Nonsense.ListQueues", b"{}", 400),
    ],
)
def test_malformed_json_is_refused(server: Server, target: str, body: bytes, status: int) -> None:
    headers = {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0"}
    assert server.ask("POST", "/", body, headers)[0] == status
