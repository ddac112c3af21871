"""Delivery streams as a store has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName

_MIB: Final = 1024 * 1024


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
