"""A request as an AMQP message.

Headers become application properties. Those that Azure gives a meaning become what they mean (Event Grid, "Custom
delivery properties"; Service Bus, "AMQP protocol guide"):

    MessageId            message-id; without it, the event's own id is
    SessionId            group-id
    CorrelationId        correlation-id
    Label                subject
    ReplyTo              reply-to
    ReplyToSessionId     reply-to-group-id
    To                   to
    PartitionKey         the annotation x-opt-partition-key
    ViaPartitionKey      the annotation x-opt-via-partition-key
"""

from typing import Final

from proton import Message, MessageException, symbol

from redrive.engine.ports import PushRequest

_EVENT_ID: Final = "aeg-output-event-id"
_PROPERTIES: Final = {
    "messageid": "id",
    "sessionid": "group_id",
    "correlationid": "correlation_id",
    "label": "subject",
    "replyto": "reply_to",
    "replytosessionid": "reply_to_group_id",
    "to": "address",
}
_ANNOTATIONS: Final = {
    "partitionkey": "x-opt-partition-key",
    "viapartitionkey": "x-opt-via-partition-key",
}


def message_of(push_request: PushRequest) -> bytes:
    """The message, written; its body is one section of data, and it outlives a restart of the broker.

    Raises:
        ValueError: It cannot be written.
    """
    properties: dict[str, str] = {}
    annotations: dict[symbol, str] = {}
    meant: dict[str, str] = (
        {"id": push_request.headers[_EVENT_ID]} if _EVENT_ID in push_request.headers else {}
    )
    for name, value in push_request.headers.items():
        word = name.lower()
        if word in _PROPERTIES:
            meant[_PROPERTIES[word]] = value
        elif word in _ANNOTATIONS:
            annotations[symbol(_ANNOTATIONS[word])] = value
        else:
            properties[name] = value
    message = Message(
        push_request.body,
        inferred=True,
        durable=True,
        content_type=push_request.content_type,
        properties=properties,
        annotations=annotations,
        **meant,
    )
    try:
        return message.encode()
    except MessageException as error:
        raise ValueError(str(error)) from None
