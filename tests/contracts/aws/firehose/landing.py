"""Firehose in the words tests use: a stream, and the bucket that it fills."""

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tests.contracts.aws.clients import client
from tests.services.clients import Client
from tests.services.server import Server

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/firehose"
BUCKET: Final = "landing"
NAME: Final = "orders"
ARN: Final = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream/{NAME}"


def of(server: Server, service: str, account: str = ACCOUNT, region: str = REGION) -> Client:
    """A client for an account; with authentication off an access key of twelve digits is the account."""
    return client(server.url, service, "json", account, region)


def destination(**settings: Any) -> dict[str, Any]:
    """The settings of a destination in the bucket."""
    return {"RoleARN": ROLE, "BucketARN": f"arn:aws:s3:::{BUCKET}", **settings}


def processors(*listed: Mapping[str, Any]) -> dict[str, Any]:
    """The processing of records by these."""
    return {"Enabled": True, "Processors": list(listed)}


LINES: Final = processors({"Type": "AppendDelimiterToRecord"})


@dataclass
class Landing:
    """A server with a bucket."""

    server: Server

    @property
    def firehose(self) -> Client:
        return of(self.server, "firehose")

    @property
    def s3(self) -> Client:
        return of(self.server, "s3")

    def stream(self, name: str = NAME, **settings: Any) -> str:
        """Make a stream; its ARN."""
        made = self.firehose.create_delivery_stream(
            DeliveryStreamName=name, ExtendedS3DestinationConfiguration=destination(**settings)
        )
        arn: str = made["DeliveryStreamARN"]
        return arn

    def put(self, *records: bytes, name: str = NAME) -> None:
        """Put records in one call."""
        listed = [{"Data": record} for record in records]
        answer = self.firehose.put_record_batch(DeliveryStreamName=name, Records=listed)
        assert answer["FailedPutCount"] == 0

    def described(self, name: str = NAME) -> dict[str, Any]:
        shown = self.firehose.describe_delivery_stream(DeliveryStreamName=name)
        found: dict[str, Any] = shown["DeliveryStreamDescription"]
        return found

    def settings(self, name: str = NAME) -> dict[str, Any]:
        """The settings of its destination."""
        found: dict[str, Any] = self.described(name)["Destinations"][0]["ExtendedS3DestinationDescription"]
        return found

    def update(self, name: str = NAME, **settings: Any) -> None:
        """Change its destination."""
        shown = self.described(name)
        self.firehose.update_destination(
            DeliveryStreamName=name,
            CurrentDeliveryStreamVersionId=shown["VersionId"],
            DestinationId=shown["Destinations"][0]["DestinationId"],
            ExtendedS3DestinationUpdate=settings,
        )

    def keys(self) -> list[str]:
        """The keys of the bucket's objects."""
        listed = self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return [each["Key"] for each in listed]

    def content(self, key: str) -> bytes:
        body: bytes = self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body

    def contents(self, read: Callable[[bytes], bytes] = bytes) -> list[bytes]:
        """The contents of all objects, by their keys."""
        return [read(self.content(key)) for key in self.keys()]

    def errors(self, group: str, stream: str) -> list[dict[str, Any]]:
        """The entries of the log of errors."""
        found = of(self.server, "logs").filter_log_events(logGroupName=group, logStreamNames=[stream])
        return [orjson.loads(event["message"]) for event in found["events"]]


gunzipped = gzip.decompress
