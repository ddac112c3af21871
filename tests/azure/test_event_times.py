"""Texts that are times of an event, and the refusal of others."""

from typing import Any

import pytest

from redrive.azure.eventgrid.notation import is_moment
from redrive.azure.eventgrid.publishing import Publishers
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, CUSTOM_EVENT_SCHEMA
from tests.azure.stage import EVENT, Stage
from tests.azure.test_event_publishing import (
    CLOUD_EVENT,
    MAPPING,
    STRUCTURED,
    publishers,
    refusal,
    request,
    taken,
)

__all__ = ["publishers"]  # a fixture

MOMENTS = [
    "2026-01-02T03:04:05Z",
    "2026-01-02t03:04:05z",
    "2026-01-02 03:04:05Z",
    "2026-01-02T03:04:05.1Z",
    "2026-01-02T03:04:05.1234567Z",
    "2026-01-02T03:04:05.123456789123Z",
    "2026-01-02T03:04:05+00:00",
    "2026-01-02T03:04:05.5-11:30",
    "2024-02-29T23:59:59Z",
    "0001-01-01T00:00:00Z",
]
NO_MOMENTS = [
    "yesterday",
    "2026-01-02",
    "20260102T030405Z",
    "2026-W01-5T03:04:05Z",
    "2026-01-02T03:04Z",
    "2026-01-02T03:04:05,5Z",
    "2026-01-02T03:04:05.Z",
    "2026-01-02T24:04:05Z",
    "2026-02-29T03:04:05Z",
    "2026-00-01T22:12:19Z",
    "2026-01-02T03:04:05+0000",
    "2026-01-02T03:04:05+25:00",
    "2026-01-02T03:04:05Z ",
    "٢٠٢٦-01-02T03:04:05Z",
    "1767323045",
]
UNZONED = "2026-01-02T03:04:05.5"


@pytest.mark.parametrize("text", MOMENTS)
def test_rfc_3339_times_are_recognised(text: str) -> None:
    assert is_moment(text)
    assert is_moment(text, needs_zone=False)


@pytest.mark.parametrize("text", [*NO_MOMENTS, None, 5, True, [], {}])
def test_malformed_times_are_refused(text: object) -> None:
    assert not is_moment(text)
    assert not is_moment(text, needs_zone=False)


def test_without_a_zone() -> None:
    assert is_moment(UNZONED, needs_zone=False)
    assert not is_moment(UNZONED)


def said(schema: str, name: str) -> str:
    return (
        f"This resource is configured for '{schema}' schema and requires '{name}' property to be a valid RFC 3339"
        " timestamp. Report '"
    )


async def test_an_event_s_time(stage: Stage, publishers: Publishers) -> None:
    topic = await stage.topic()
    error = await refusal(publishers, request([EVENT, EVENT | {"eventTime": "yesterday"}]))
    assert (error.status, error.code) == (400, "BadRequest")
    assert error.message.startswith(said("EventGridEvent", "eventTime"))
    assert [one.code for one in error.details] == ["InputJsonInvalid"]
    ((found,),) = await taken(stage, publishers, topic, request([EVENT | {"eventTime": UNZONED}]))
    assert found["eventTime"] == UNZONED


@pytest.mark.parametrize("time", ["yesterday", UNZONED, 5, ""])
async def test_a_cloud_event_s_time(stage: Stage, publishers: Publishers, time: object) -> None:
    await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    error = await refusal(publishers, request(CLOUD_EVENT | {"time": time}, STRUCTURED))
    assert error.status == 400
    assert error.message.startswith(said("CloudEventV10", "time"))


async def test_a_cloud_event_s_time_in_a_header(stage: Stage, publishers: Publishers) -> None:
    await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    attributes = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/s", "ce_type": "t"}
    error = await refusal(publishers, request({}, **attributes, ce_time="12 o'clock"))
    assert error.message.startswith(said("CloudEventV10", "time"))


@pytest.mark.parametrize("fields", [{}, {"time": None}, {"time": "2026-01-02T03%3A04%3A05Z"}])
async def test_a_cloud_event_need_not_have_one(
    stage: Stage, publishers: Publishers, fields: dict[str, Any]
) -> None:
    topic = await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    event = {name: value for name, value in CLOUD_EVENT.items() if name != "time"}
    if fields.get("time"):  # as a header has it
        attributes = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/s", "ce_type": "t"}
        sent = request({}, **attributes, ce_time=fields["time"])
    else:
        sent = request(event | fields, STRUCTURED)
    assert len(await taken(stage, publishers, topic, sent, eventDeliverySchema=CLOUD_EVENT_SCHEMA)) == 1


@pytest.mark.parametrize("time", ["yesterday", 1767323045])
async def test_a_custom_event_s_time(stage: Stage, publishers: Publishers, time: object) -> None:
    mapping = MAPPING | {"eventTime": {"sourceField": "at"}}
    topic = await stage.topic(inputSchema=CUSTOM_EVENT_SCHEMA, inputSchemaMapping={"properties": mapping})
    error = await refusal(publishers, request([{"at": time}]))
    assert error.message.startswith(said("CustomEvent", "eventTime"))
    found = await taken(stage, publishers, topic, request([{"at": UNZONED}, {"at": None}, {}]))
    times = [one["eventTime"] for (one,) in found]
    assert times[0] == UNZONED
    assert all(is_moment(time) for time in times[1:])
