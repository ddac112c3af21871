"""Event streams, as botocore reads them."""

import pytest
from botocore.eventstream import EventStreamBuffer

from redrive.aws.wire.json.event_stream import frame, message
from redrive.aws.wire.service import Service


@pytest.mark.parametrize(
    ("name", "event", "payload", "content_type"),
    [
        ("PayloadChunk", {"Payload": b"a\0b"}, b"a\0b", "application/octet-stream"),
        ("PayloadChunk", {"Payload": bytes(100_000)}, bytes(100_000), "application/octet-stream"),
        ("InvokeComplete", {}, b"{}", "application/json"),
        ("InvokeComplete", {"ErrorCode": "Unhandled"}, b'{"ErrorCode":"Unhandled"}', "application/json"),
    ],
)
def test_an_event_is_a_message(
    name: str, event: dict[str, object], payload: bytes, content_type: str
) -> None:
    output = Service.load("lambda").operation("InvokeWithResponseStream").output
    assert output is not None
    events = output.members[output.payload].shape
    buffer = EventStreamBuffer()
    buffer.add_data(message(events.members[name].shape, name, event))
    (read,) = buffer
    assert read.payload == payload
    assert read.headers == {":event-type": name, ":content-type": content_type, ":message-type": "event"}


def test_messages_follow_each_other() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(frame({"a": "é"}, b"1") + frame({}, b""))
    assert [(each.headers, each.payload) for each in buffer] == [({"a": "é"}, b"1"), ({}, b"")]
