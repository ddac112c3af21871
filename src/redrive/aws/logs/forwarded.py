"""Log events on their way to a destination: what is owed, and the documented form in which it arrives.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html.
"""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

_COMPRESSION: Final = (
    1  # 5 ms for the largest batch, on the thread that answers everybody; 9 takes 16 for a sixth less
)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Events that are owed to one destination."""

    group: str  # The name of their group
    stream: str  # The name of their stream
    filter: str  # The name of the filter that chose them
    destination: str  # The ARN of a function or a delivery stream
    events: Sequence[Mapping[str, Any]]  # Their ids, moments (ms) and messages, as the destination gets them
    role: str = ""  # The ARN of the role to act as; empty for a function, whose policy decides
    # The number of runs of functions, each begun by log events of the one before, that led to the events.
    rounds: int = 0

    def pack(self) -> str:
        """The events as the body of a delivery."""
        return orjson.dumps(self).decode()

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Read what `pack` wrote; the destination was called `function` when there were no others."""
        document = orjson.loads(body)
        if "function" in document:
            document["destination"] = document.pop("function")
        return cls(**document)

    def compressed(self, owner: str) -> bytes:
        """The message that the destination gets, from an account: compressed, as its size is limited."""
        return _compressed(
            {
                "messageType": "DATA_MESSAGE",
                "owner": owner,
                "logGroup": self.group,
                "logStream": self.stream,
                "subscriptionFilters": [self.filter],
                "logEvents": self.events,
            }
        )


def control_message(now: int) -> bytes:
    """The message by which a delivery stream is tried when it is subscribed, compressed as all are."""
    text = "CWL CONTROL MESSAGE: Checking health of destination Firehose."
    return _compressed(
        {
            "messageType": "CONTROL_MESSAGE",
            "owner": "CloudwatchLogs",
            "logGroup": "",
            "logStream": "",
            "subscriptionFilters": [],
            "logEvents": [{"id": "", "timestamp": now, "message": text}],
        }
    )


def _compressed(document: Mapping[str, Any]) -> bytes:
    return gzip.compress(orjson.dumps(document), _COMPRESSION, mtime=0)
