"""Amazon Data Firehose: delivery streams, which bring records to buckets."""

from collections.abc import Iterable
from typing import Final

from redrive.aws.firehose.errors import translated
from redrive.aws.firehose.records import STREAM
from redrive.aws.kit.call import Call, ResourceScope
from redrive.aws.kit.service import AwsService, Outline
from redrive.aws.wire.profiles import JSON, MIB, Profile
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine


async def _scopes(_: Engine, call: Call, _operation: str, params: Structure) -> Iterable[ResourceScope]:
    name = params.get("DeliveryStreamName", "*")
    return [ResourceScope(f"arn:aws:firehose:{call.region}:{call.account}:deliverystream/{name}")]


SERVICE: Final = AwsService(
    profile=Profile(
        name="firehose",
        endpoint_prefix="firehose",
        api_version="2015-08-04",
        protocols=JSON,
        target_prefix="Firehose_20150804",
        body_bytes_max=6 * MIB,  # PutRecordBatch takes 4 MiB in 500 records, in base 64
    ),
    title="Firehose",
    documents=(STREAM,),
    translated=translated,
    scopes=_scopes,
    outline=Outline(endpoints=("firehose",), wakes=(STREAM,)),
)
