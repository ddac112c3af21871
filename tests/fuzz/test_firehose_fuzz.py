"""Firehose is asked for what may be spoilt anywhere: it refuses by its own errors, and a refusal changes nothing."""

import asyncio
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.aws.firehose import records
from redrive.aws.wire.errors import AwsError
from tests.fuzz.firehose_world import ACCOUNT, SETTINGS, STREAM, FirehoseWorld
from tests.fuzz.json_world import Asked, ask_each, requests

_NAMED: Final = {"DeliveryStreamName": STREAM}
_TAGS: Final = [{"Key": "a", "Value": "b"}]
_FUNCTION: Final = {
    "Type": "Lambda",
    "Parameters": [
        {"ParameterName": "LambdaArn", "ParameterValue": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:f"},
        {"ParameterName": "BufferSizeInMBs", "ParameterValue": "0.5"},
    ],
}
_DESTINATION: Final = {
    **SETTINGS,
    "Prefix": "a/!{timestamp:yyyy/MM}/",
    "ErrorOutputPrefix": "!{firehose:random-string}/!{firehose:error-output-type}/",
    "BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 0},
    "CompressionFormat": "GZIP",
    "CustomTimeZone": "Europe/Berlin",
    "ProcessingConfiguration": {"Enabled": True, "Processors": [_FUNCTION]},
}
#: A request of each operation that is accepted.
RIGHT: Final[dict[str, dict[str, Any]]] = {
    "CreateDeliveryStream": {
        "DeliveryStreamName": "other",
        "DeliveryStreamType": "DirectPut",
        "ExtendedS3DestinationConfiguration": _DESTINATION,
        "Tags": _TAGS,
    },
    "DeleteDeliveryStream": _NAMED,
    "DescribeDeliveryStream": {**_NAMED, "Limit": 1},
    "ListDeliveryStreams": {"Limit": 1, "ExclusiveStartDeliveryStreamName": "a"},
    "ListTagsForDeliveryStream": {**_NAMED, "Limit": 1},
    "PutRecord": {**_NAMED, "Record": {"Data": "b25l"}},
    "PutRecordBatch": {**_NAMED, "Records": [{"Data": "b25l"}, {"Data": ""}]},
    "StartDeliveryStreamEncryption": _NAMED,
    "StopDeliveryStreamEncryption": _NAMED,
    "TagDeliveryStream": {**_NAMED, "Tags": _TAGS},
    "UntagDeliveryStream": {**_NAMED, "TagKeys": ["a"]},
    "UpdateDestination": {
        **_NAMED,
        "CurrentDeliveryStreamVersionId": "1",
        "DestinationId": "destinationId-000000000001",
        "ExtendedS3DestinationUpdate": _DESTINATION,
    },
}


@settings(max_examples=30)
@given(st.lists(requests(RIGHT), min_size=1, max_size=8))
def test_a_refusal_of_firehose_changes_nothing_and_nothing_fails(asked: list[Asked]) -> None:
    asyncio.run(ask_each(FirehoseWorld(), asked))


def test_every_operation_of_firehose_is_asked_and_accepted() -> None:
    async def ask_all() -> None:
        for operation, params in RIGHT.items():
            world = FirehoseWorld()
            await world.open()
            response = await world.ask(operation, params)
            assert response.status == 200, (operation, response.body)
            await world.close()
        assert RIGHT.keys() == world.firehose.operations.keys()

    asyncio.run(ask_all())


def test_a_change_of_a_stream_that_is_deleted_meanwhile_is_refused() -> None:
    async def change() -> None:
        world = FirehoseWorld()
        await world.open()
        (stream,) = await world.engine.resources.documents.find(records.STREAM, "")
        await world.call("DeleteDeliveryStream", **_NAMED)
        streams: Any = world.firehose.operations["TagDeliveryStream"]
        with pytest.raises(AwsError) as refused:
            await streams.__self__.change(stream, lambda current: current)
        assert refused.value.code == "ResourceNotFoundException"
        await world.close()

    asyncio.run(change())
