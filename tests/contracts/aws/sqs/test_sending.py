import re

import pytest

from tests.contracts.aws.sqs.client import Sqs, binary, refused, text

LARGEST = 1_048_576
INVALID_CHARACTERS = (
    "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD"
    " | #x10000 to #x10FFFF"
)


def too_long(limit: int) -> str:
    return f"One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."


def test_a_sender_is_answered_an_id_and_digests(sqs: Sqs) -> None:
    sent = sqs.queue().send("msg")
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", sent["MessageId"]
    )
    assert sent["MD5OfMessageBody"] == "6e2baaf3b97dbeef01c0043275f9a0e7"
    assert sent.keys() == {"MessageId", "MD5OfMessageBody", "ResponseMetadata"}


def test_a_message_arrives_as_it_was_sent(sqs: Sqs) -> None:
    queue = sqs.queue()
    sent = queue.send("msg", MessageAttributes={"Foo": text("Bar")})
    received = queue.one()
    assert received["Body"] == "msg"
    assert received["MessageId"] == sent["MessageId"]
    assert received["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert received["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert received["MessageAttributes"] == {"Foo": text("Bar")}


# ---- bodies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "x",
        " ",
        " leading and trailing ",
        "\t\n\r\r\n",
        "a&amp;b<c>\"d'e]]>",
        "%20+%2B=&",
        "\u0020\ud7ff\ue000\ufffd\U00010000\U0010ffff",
        "\u0085\u2028\u00ad\u200b\ufeff",
        "日本語 선입선출 \U0001f6f0",
        '{"json": [1, "two", null]}',
    ],
)
def test_bodies_arrive_letter_by_letter(sqs: Sqs, body: str) -> None:
    queue = sqs.queue()
    queue.send(body)
    assert queue.bodies() == [body]


@pytest.mark.parametrize("letter", ["\0", "\x08", "\x0b", "\x0c", "\x0e", "\x1f", "\ufffe", "\uffff"])
def test_letters_no_body_may_have(sqs: Sqs, letter: str) -> None:
    with refused("InvalidMessageContents", INVALID_CHARACTERS):
        sqs.queue().send(f"a{letter}b")


def test_a_message_without_a_body_is_refused(sqs: Sqs) -> None:
    message = "The request must contain the parameter MessageBody."
    with refused("MissingParameter", message):
        sqs.queue().send("")
    with refused("MissingParameter", message):
        sqs.queue().call("send_message")


# ---- sizes -------------------------------------------------------------------------------------------------------


def test_the_largest_message_is_accepted_and_a_larger_one_refused(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("x" * LARGEST)
    with refused("InvalidParameterValue", too_long(LARGEST)):
        queue.send("x" * (LARGEST + 1))
    assert [len(body) for body in queue.bodies()] == [LARGEST]


@pytest.mark.parametrize(
    ("body", "fits"), [("x" * 1024, True), ("x" * 1025, False), ("ä" * 512, True), ("ä" * 512 + "x", False)]
)
def test_a_queue_may_take_less(sqs: Sqs, body: str, *, fits: bool) -> None:
    queue = sqs.queue()
    queue.set(MaximumMessageSize="1024")
    if fits:
        queue.send(body)
    else:
        with refused("InvalidParameterValue", too_long(1024)):
            queue.send(body)
    assert queue.bodies() == [body] * fits


def test_attributes_count_towards_the_size(sqs: Sqs) -> None:
    queue = sqs.queue(MaximumMessageSize="1024")
    # 4 + 6 + 5 and 3 + 8 + 2 bytes of names, types and values
    attributes = {"name": text("value"), "bin": binary(b"\0\1", "Binary.x")}
    queue.send("x" * (1024 - 28), MessageAttributes=attributes)
    with refused("InvalidParameterValue", too_long(1024)):
        queue.send("x" * (1024 - 27), MessageAttributes=attributes)


def test_system_attributes_do_not_count_towards_the_message_size(sqs: Sqs) -> None:
    queue = sqs.queue(MaximumMessageSize="1024")
    queue.send(
        "x" * 1024, MessageSystemAttributes={"AWSTraceHeader": text("Root=1-5759e988-bd862e3fe1be46a9")}
    )
    assert queue.counts() == (1, 0, 0)


# ---- attributes --------------------------------------------------------------------------------------------------

RECORDED = [  # digests that SQS itself answered
    ({"attr1": text("99.12", "Number")}, "d302007e9aa062660afc85fd0a482472"),
    ({"Foo": text("Bar")}, "ae7155c6026991b6d54b11589678bf9c"),
    (
        {"attr1": binary(b"traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01")},
        "8cbe4db156db8a94db8b801b7addb984",
    ),
    (
        {"Help.Me": text("Me"), "Hello": text("There"), "General": text("Kenobi")},
        "4c360f3fdafd970e05fae2f149d997f5",
    ),
]


@pytest.mark.parametrize(("attributes", "digest"), RECORDED)
def test_digests_of_attributes(sqs: Sqs, attributes: dict[str, object], digest: str) -> None:
    queue = sqs.queue()
    assert queue.send(MessageAttributes=attributes)["MD5OfMessageAttributes"] == digest
    received = queue.one()
    assert received["MD5OfMessageAttributes"] == digest
    assert received["MessageAttributes"] == attributes


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("a.b-c_D9", text("v")),
        ("x" * 256, text("v")),
        ("n", text("-0.5e3", "Number")),
        ("n", text("12345678901234567890123456789012345678", "Number")),
        ("n", text("1", "Number.java.lang.Integer")),
        ("s", text("v", "String.custom type/ü")),
        ("b", binary(bytes(range(256)), "Binary.gif")),
        ("s", text("\t<&>\r\n\U0001f600")),
    ],
)
def test_attributes_arrive_as_they_were_sent(sqs: Sqs, name: str, attribute: dict[str, object]) -> None:
    queue = sqs.queue()
    queue.send(MessageAttributes={name: attribute})
    assert queue.one()["MessageAttributes"] == {name: attribute}


def test_a_message_has_at_most_10_attributes(sqs: Sqs) -> None:
    queue = sqs.queue()
    ten = {f"a{number}": text("v") for number in range(10)}
    queue.send(MessageAttributes=ten)
    assert queue.one()["MessageAttributes"] == ten
    with refused(
        "InvalidParameterValue", "Number of message attributes [11] exceeds the allowed maximum [10]."
    ):
        queue.send(MessageAttributes={**ten, "one_more": text("v")})


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (text(""), "Message (user) attribute 'X' must contain a non-empty value of type 'String'."),
        (text("", "Number"), "Message (user) attribute 'X' must contain a non-empty value of type 'Number'."),
        (binary(b""), "Message (user) attribute 'X' must contain a non-empty value of type 'Binary'."),
        (
            {"DataType": "String", "BinaryValue": b"b"},
            "Message (user) attribute 'X' must contain a non-empty value of type 'String'.",
        ),
        (text("ten", "Number"), "Can't cast the value of message (user) attribute 'X' to a number."),
        (text("inf", "Number"), "Can't cast the value of message (user) attribute 'X' to a number."),
        (text("1_000", "Number"), "Can't cast the value of message (user) attribute 'X' to a number."),
        (text("a\0b"), INVALID_CHARACTERS),
    ],
)
def test_attributes_no_message_may_have(sqs: Sqs, attribute: dict[str, object], message: str) -> None:
    with refused("InvalidParameterValue", message):
        sqs.queue().send(MessageAttributes={"X": attribute})


@pytest.mark.parametrize("data_type", ["Integer", "string", "Strings", ".String", " String"])
def test_types_no_attribute_may_have(sqs: Sqs, data_type: str) -> None:
    message = (
        "The message attribute 'X' has an invalid message attribute type, the set of supported type prefixes is"
        " Binary, Number, and String."
    )
    with refused("InvalidParameterValue", message):
        sqs.queue().send(MessageAttributes={"X": text("v", data_type)})


@pytest.mark.parametrize(
    "name", [".a", "a.", "a..b", "a b", "AWS.x", "aws.x", "Amazon.x", "amazon.x", "a/b", "a*"]
)
def test_names_no_attribute_may_have(sqs: Sqs, name: str) -> None:
    with refused("InvalidParameterValue", f"Message (user) attribute name '{name}' is invalid."):
        sqs.queue().send(MessageAttributes={name: text("v")})


def test_a_name_has_at_most_256_letters(sqs: Sqs) -> None:
    with refused("InvalidParameterValue", "Length of message attribute name must be less than 256 bytes."):
        sqs.queue().send(MessageAttributes={"x" * 257: text("v")})


# ---- traces ------------------------------------------------------------------------------------------------------

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def test_a_trace_is_a_system_attribute(sqs: Sqs) -> None:
    queue = sqs.queue()
    sent = queue.send(MessageSystemAttributes={"AWSTraceHeader": text(TRACE)})
    assert sent["MD5OfMessageSystemAttributes"] == "5ae4d5d7636402d80f4eb6d213245a88"
    assert "MD5OfMessageAttributes" not in sent
    received = queue.one()
    assert received["Attributes"]["AWSTraceHeader"] == TRACE
    assert "MessageAttributes" not in received


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"AWSTraceHeader": text("1", "Number")}, None),
        ({"AWSTraceHeader": text("")}, None),
        ({"Other": text("v")}, None),
    ],
)
def test_malformed_system_attributes_are_refused(
    sqs: Sqs, attributes: dict[str, object], message: str | None
) -> None:
    with refused("InvalidParameterValue", message):
        sqs.queue().send(MessageSystemAttributes=attributes)


def test_a_trace_may_come_in_a_header(sqs: Sqs) -> None:
    queue = sqs.queue()

    def add_header(params: dict[str, dict[str, str]], **_: object) -> None:
        params["headers"]["X-Amzn-Trace-Id"] = TRACE

    sqs.client.meta.events.register("before-call.sqs.SendMessage", add_header)
    try:
        assert "MD5OfMessageSystemAttributes" not in queue.send("by header")
        queue.send("by both", MessageSystemAttributes={"AWSTraceHeader": text("Root=2")})
    finally:
        sqs.client.meta.events.unregister("before-call.sqs.SendMessage", add_header)
    shown = {message["Body"]: message["Attributes"]["AWSTraceHeader"] for message in queue.receive()}
    assert shown == {"by header": TRACE, "by both": "Root=2"}
