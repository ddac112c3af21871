"""Firehose is asked for what may be spoilt anywhere: it refuses by its own errors, and a refusal changes nothing."""

import asyncio
import copy
import json
from typing import Any, Final

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.firehose_world import ACCOUNT, SETTINGS, STREAM, FirehoseWorld
from tests.fuzz.spoiling import spoilt

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


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, bytes]:
    """An operation, and parameters of which up to two are spoilt."""
    operation = draw(st.sampled_from(sorted(RIGHT)))
    params: Any = copy.deepcopy(RIGHT[operation])
    for _ in range(draw(st.integers(0, 2))):
        params = spoilt(draw, params)
    return operation, json.dumps(params).encode()


async def tell(asked: list[tuple[str, bytes]]) -> None:
    world = FirehoseWorld()
    await world.open()
    try:
        for operation, body in asked:
            before = world.everything()
            response = await world.ask(operation, body)
            assert response.status < 500, (operation, body, response.body)
            orjson.loads(response.body or b"{}")
            if response.status >= 400:
                assert world.everything() == before, (operation, body, response.body)
    finally:
        await world.close()


@settings(max_examples=30)
@given(st.lists(requests(), min_size=1, max_size=8))
def test_a_refusal_of_firehose_changes_nothing_and_nothing_fails(asked: list[tuple[str, bytes]]) -> None:
    asyncio.run(tell(asked))


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
