"""Delivery streams as a store has them, and their records as they wait.

What came in one call is one delivery, each record in base64 on its own line: a call of 500 records is one row of the
store and not 500, as durable, and claimed and settled as one.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import shake_256
from typing import Any, Final, NamedTuple

from redrive.engine.ports import DocumentKind
from redrive.model.delivery import Delivery
from redrive.model.document import Document
from redrive.model.names import ResourceName

_MIB: Final = 1024 * 1024
_ID_BYTES = 111  # an id has 222 characters, as recorded


class Processor(NamedTuple):
    """A step between the buffer and the object: its type, and its parameters by their names."""

    type: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeliveryStream(Document):
    """A delivery stream."""

    account: str  # Account that owns it
    region: str  # Where
    name: str  # Unique there
    id: str  # Another one for each stream that has ever been made
    created_at: int  # ms
    # The settings of S3 as `ExtendedS3DestinationConfiguration` has them, every default filled in.
    destination: Mapping[str, Any]
    version: int = 1  # Counts its configurations, from 1
    updated_at: int = 0  # When the last of them began (ms); 0: it is the first
    tags: Mapping[str, str] = field(default_factory=dict)  # By key
    # `KeyType`, and `KeyARN` of a customer's key; empty: records wait in the store as they came.
    encryption: Mapping[str, str] = field(default_factory=dict)

    @property
    def resource(self) -> ResourceName:
        """The stream's account, region and name."""
        return ResourceName(self.account, self.region, self.name)

    @property
    def arn(self) -> str:
        """The ARN."""
        return arn_of(self.resource)

    @property
    def bytes_max(self) -> int:
        """The number of bytes after which what waits is delivered."""
        return int(self.destination["BufferingHints"]["SizeInMBs"]) * _MIB

    @property
    def interval_ms(self) -> int:
        """The longest that the oldest record waits before it is delivered."""
        return int(self.destination["BufferingHints"]["IntervalInSeconds"]) * 1000

    @property
    def bucket(self) -> str:
        """The name of the destination's bucket."""
        return str(self.destination["BucketARN"]).rpartition(":")[2]

    @property
    def role(self) -> str:
        """The ARN of the role that writes to it."""
        return str(self.destination["RoleARN"])

    def processor(self, kind: str) -> Processor | None:
        """The processor of a type, if the stream has one."""
        processing = self.destination["ProcessingConfiguration"]
        if not processing.get("Enabled"):
            return None
        for each in processing.get("Processors") or ():
            if each["Type"] == kind:
                parameters = each.get("Parameters") or ()
                pairs = (
                    (parameter["ParameterName"], parameter["ParameterValue"]) for parameter in parameters
                )
                return Processor(kind, dict(pairs))
        return None


STREAM: Final = DocumentKind.of("firehose_stream", DeliveryStream)


def arn_of(name: ResourceName) -> str:
    """The ARN of a delivery stream."""
    return f"arn:aws:firehose:{name.region}:{name.account}:deliverystream/{name.name}"


def buffer_of(name: ResourceName) -> ResourceName:
    """The queue in which a stream's records wait, where no caller can name it."""
    return name._replace(region=f"{name.region}:firehose")


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """A record that waits to be delivered."""

    id: str  # Within its stream
    at: int  # When it came (ms)
    data: bytes  # Its content


def pack(records: Sequence[bytes]) -> str:
    """The records of a call as the body of a delivery."""
    return "\n".join([b64encode(record).decode() for record in records])


def unpack(delivery: Delivery) -> list[WaitingRecord]:
    """The records of a delivery."""
    return [
        WaitingRecord(f"{delivery.seq:026d}{number:030d}", delivery.sent_at, b64decode(line))
        for number, line in enumerate(delivery.body.split("\n"))
    ]


def record_id(call: bytes, number: int) -> str:
    """The id that the caller gets of a record of a call."""
    return shake_256(call + number.to_bytes(2)).hexdigest(_ID_BYTES)
