"""Publishing to topics and domains: what is taken in each schema, what is refused, and in which words."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.credentials import PublisherCredentials
from redrive.azure.eventgrid.measures import FailureLog, Measures
from redrive.azure.eventgrid.publishing import Publishers
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, CUSTOM_EVENT_SCHEMA
from redrive.azure.wire.answers import AzureError
from redrive.azure.wire.bearer import TrustAllBearers
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.model.topic import Topic
from tests.azure.stage import EVENT, GROUP, TOPIC, Stage

DOMAIN = GROUP._replace(parts=("domains", "Shop"))
PATH = names.publishing_path(TOPIC)
JSON = "application/json"
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json; charset=utf-8"
CLOUD_EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "c-1",
    "source": "/shop",
    "type": "order.placed",
    "time": "2026-01-02T03:04:05Z",
    "priority": 5,
    "data": {"size": 5},
}
MAPPING: dict[str, Any] = {
    "id": {"sourceField": "number"},
    "topic": {"sourceField": None},
    "eventTime": {"sourceField": None},
    "eventType": {"sourceField": "kind", "defaultValue": "order"},
    "subject": {"defaultValue": "orders"},
    "dataVersion": {"sourceField": "version", "defaultValue": "1.0"},
}


class Nowhere:
    """A sink without a bottom."""

    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        pass


@pytest.fixture
def publishers(stage: Stage) -> Publishers:
    credentials = PublisherCredentials(TrustAllBearers(), stage.clock, required=False)
    return Publishers(stage.engine, credentials, Measures(lambda *_: None, FailureLog(Nowhere(), "", "")))


def request(
    body: object, content_type: str = JSON, *, path: str = PATH, method: str = "POST", **headers: str
) -> Request:
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, "api-version=2018-01-01", {"content-type": content_type, **named}, content)


async def refusal(publishers: Publishers, asked: Request) -> AzureError:
    with pytest.raises(AzureError) as raised:
        await publishers.answer(asked)
    return raised.value


async def taken(
    stage: Stage, publishers: Publishers, topic: Topic, asked: Request, **subscription: Any
) -> Any:
    """Publish a request, and return the bodies that a subscriber gets of it."""
    await stage.subscribe(topic, **subscription)
    answer = await publishers.answer(asked)
    assert (answer.status, answer.body) == (200, b"")
    await stage.pass_time(1)
    return stage.web.bodies


# ---- Event Grid's schema -----------------------------------------------------------------------------------------


async def test_events_are_stamped(stage: Stage, publishers: Publishers) -> None:
    topic = await stage.topic()
    found = await taken(stage, publishers, topic, request([EVENT]))
    assert found == [[EVENT | {"topic": TOPIC.text, "metadataVersion": "1"}]]


async def test_a_data_version_is_stamped_where_there_is_none(stage: Stage, publishers: Publishers) -> None:
    topic = await stage.topic()
    event = {name: value for name, value in EVENT.items() if name not in ("dataVersion", "data")}
    ((found,),) = await taken(stage, publishers, topic, request([event | {"topic": TOPIC.text.upper()}]))
    assert found["dataVersion"] == ""
    assert found["topic"] == TOPIC.text


async def test_numbers_keep_their_digits(stage: Stage, publishers: Publishers) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic)
    event = orjson.dumps(EVENT | {"data": "?"}).replace(b'"?"', b'{"n":123456789012345678901234567890}')
    await publishers.answer(request(b"[%b]" % event))
    await stage.pass_time(1)
    assert b'"data":{"n":123456789012345678901234567890}' in stage.web.pushed[0][1].body


@pytest.mark.parametrize("name", ["id", "subject", "eventType", "eventTime"])
@pytest.mark.parametrize("value", [None, 5])
async def test_an_event_without_a_required_property_is_refused(
    stage: Stage, publishers: Publishers, name: str, value: object
) -> None:
    await stage.topic()
    error = await refusal(publishers, request([EVENT, EVENT | {name: value}]))
    assert (error.status, error.code) == (400, "BadRequest")
    assert error.message.startswith(
        f"This resource is configured for 'EventGridEvent' schema and requires '{name}' property to be set."
        " Report '"
    )
    assert error.message.endswith(
        ":1:1/1/2026 12:00:00 AM (UTC)' to our forums for assistance or raise a support ticket."
    )
    assert [one.code for one in error.details] == ["InputJsonInvalid"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (EVENT, "Token Expected: StartArray, Actual Token Received: StartObject."),
        (5, "Token Expected: StartArray, Actual Token Received: Number."),
        ([5], "Token Expected: StartObject, Actual Token Received: Number."),
        ([None], "Token Expected: StartObject, Actual Token Received: Null."),
        ([[]], "Token Expected: StartObject, Actual Token Received: StartArray."),
        (["{'attributes': {}}"], "install 'cloudevents<2'"),
        ([EVENT | {"metadataVersion": "2"}], "'metadataVersion' has to be '1'"),
        ([EVENT | {"topic": "/another"}], f"'topic' has to be '{TOPIC.text}'"),
        (b"[", "not valid JSON"),
        (b'[{"n":123456789012345678901234567890,"x":NaN}]', "not valid JSON"),
        ([EVENT] * 5001, "5000 events"),
    ],
)
async def test_malformed_publications_are_refused_as_a_whole(
    stage: Stage, publishers: Publishers, body: object, said: str
) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic)
    error = await refusal(publishers, request(body))
    assert error.status == 400
    assert said in error.message
    await stage.pass_time(1)
    assert not stage.web.pushed


def nested(depth: int) -> bytes:
    """An event whose data is so deep."""
    return b"[%b]" % orjson.dumps(EVENT | {"data": "?"}).replace(b'"?"', b"[" * depth + b"]" * depth)


@pytest.mark.parametrize("depth", [100, 400])
async def test_nested_events_are_accepted(stage: Stage, publishers: Publishers, depth: int) -> None:
    topic = await stage.topic()
    await taken(stage, publishers, topic, request(nested(depth)))
    assert orjson.loads(stage.web.pushed[0][1].body)[0]["id"] == "e-1"


@pytest.mark.parametrize("depth", [1000, 2000, 100_000])
async def test_events_nested_too_deep_are_refused(stage: Stage, publishers: Publishers, depth: int) -> None:
    await stage.topic()
    assert (await refusal(publishers, request(nested(depth)))).status == 400


async def test_all_of_a_request_is_taken_or_nothing(stage: Stage, publishers: Publishers) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic)
    await refusal(publishers, request([EVENT, {}]))
    await stage.pass_time(1)
    assert not stage.web.pushed


async def test_limits_of_size(stage: Stage, publishers: Publishers) -> None:
    await stage.topic()
    large = EVENT | {"data": "x" * 1_049_600}
    error = await refusal(publishers, request([large]))
    assert (error.status, error.code) == (413, "RequestEntityTooLarge")
    assert error.message == "The maximum size (1049600) has been exceeded."
    error = await refusal(publishers, request([EVENT | {"data": "x" * 768_000}] * 2))
    assert error.message == "The maximum size (1536000) has been exceeded."
    assert (await publishers.answer(request([EVENT | {"data": "x" * 700_000}] * 2))).status == 200


# ---- CloudEvents -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (CLOUD_EVENT, STRUCTURED, 1),
        (CLOUD_EVENT, JSON, 1),
        ([CLOUD_EVENT, CLOUD_EVENT], BATCH, 2),
        ([], BATCH, 0),
        (CLOUD_EVENT | {"data": None, "data_base64": "AAE="}, STRUCTURED, 1),
    ],
)
async def test_cloud_events_are_taken_as_they_are(
    stage: Stage, publishers: Publishers, body: Any, content_type: str, expected: int
) -> None:
    topic = await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    asked = request(body, content_type)
    found = await taken(stage, publishers, topic, asked, eventDeliverySchema=CLOUD_EVENT_SCHEMA)
    assert found == [body[0] if isinstance(body, list) else body for _ in range(expected)]


async def test_a_cloud_event_in_headers(stage: Stage, publishers: Publishers) -> None:
    topic = await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    headers = {
        "ce_specversion": "1.0",
        "ce_id": "c-1",
        "ce_source": "/shop",
        "ce_type": "order.placed",
        "ce_subject": "caf%C3%A9",
    }
    asked = request({"size": 5}, "application/json; charset=utf-8", **headers)
    found = await taken(stage, publishers, topic, asked, eventDeliverySchema=CLOUD_EVENT_SCHEMA)
    assert found == [
        {
            "specversion": "1.0",
            "id": "c-1",
            "source": "/shop",
            "type": "order.placed",
            "subject": "café",
            "datacontenttype": "application/json; charset=utf-8",
            "data": {"size": 5},
        }
    ]


@pytest.mark.parametrize(
    ("body", "content_type", "headers", "status", "rule", "said"),
    [
        ([CLOUD_EVENT], JSON, {}, 400, "InputJsonInvalid", "StartObject, Actual Token Received: StartArray"),
        (["repr"], JSON, {}, 400, "InputJsonInvalid", "install 'cloudevents<2'"),
        (["repr"], BATCH, {}, 400, "InputJsonInvalid", "install 'cloudevents<2'"),
        (CLOUD_EVENT, BATCH, {}, 400, "InputJsonInvalid", "Token Expected: StartArray"),
        (CLOUD_EVENT, "text/plain", {}, 415, "InvalidContentType", "text/plain"),
        (CLOUD_EVENT, STRUCTURED, {"ce_specversion": "1.0"}, 400, "InvalidCloudEventHeader", "headers"),
        ("x", "text/plain", {"ce_specversion": "1.0"}, 415, "InvalidContentType", "text/plain"),
        (CLOUD_EVENT | {"specversion": "0.3"}, JSON, {}, 400, "InputJsonInvalid", "'specversion'"),
        (CLOUD_EVENT | {"id": ""}, JSON, {}, 400, "InputJsonInvalid", "requires 'id' property"),
        (CLOUD_EVENT | {"source": None}, JSON, {}, 400, "InputJsonInvalid", "requires 'source' property"),
        (CLOUD_EVENT | {"type": 5}, JSON, {}, 400, "InputJsonInvalid", "'CloudEventV10' schema"),
        (CLOUD_EVENT | {"data_base64": "AA=="}, JSON, {}, 400, "InputJsonInvalid", "not both"),
    ],
)
async def test_cloud_events_that_are_not_taken(
    stage: Stage,
    publishers: Publishers,
    body: object,
    content_type: str,
    headers: Mapping[str, str],
    status: int,
    rule: str,
    said: str,
) -> None:
    await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    error = await refusal(publishers, request(body, content_type, **headers))
    assert (error.status, [one.code for one in error.details]) == (status, [rule])
    assert said in error.message


# ---- custom events -----------------------------------------------------------------------------------------------


async def test_a_custom_event_is_mapped(stage: Stage, publishers: Publishers) -> None:
    topic = await stage.topic(
        inputSchema=CUSTOM_EVENT_SCHEMA,
        inputSchemaMapping={"inputSchemaMappingType": "Json", "properties": MAPPING},
    )
    event = {"number": 7, "kind": "placed", "size": 5}
    ((found,),) = await taken(stage, publishers, topic, request([event]))
    assert found == {
        "id": "7",
        "eventTime": "2026-01-01T00:00:00.0000000Z",
        "eventType": "placed",
        "dataVersion": "1.0",
        "metadataVersion": "1",
        "topic": TOPIC.text,
        "subject": "orders",
        "data": event,
    }


async def test_a_custom_event_is_filtered_by_what_it_is_mapped_to_and_by_its_own(
    stage: Stage, publishers: Publishers
) -> None:
    topic = await stage.topic(inputSchema=CUSTOM_EVENT_SCHEMA, inputSchemaMapping={"properties": MAPPING})
    wants = {
        "includedEventTypes": ["placed"],
        "advancedFilters": [{"operatorType": "NumberIn", "key": "size", "values": [5]}],
    }
    found = await taken(
        stage,
        publishers,
        topic,
        request([{"kind": "placed", "size": size} for size in (4, 5)] + [{"kind": "paid", "size": 5}]),
        wants=wants,
        eventDeliverySchema="CustomInputSchema",
    )
    assert found == [[{"kind": "placed", "size": 5}]]


async def test_a_custom_event_without_what_the_mapping_needs(stage: Stage, publishers: Publishers) -> None:
    mapping = MAPPING | {"eventType": {"sourceField": "kind"}}
    await stage.topic(inputSchema=CUSTOM_EVENT_SCHEMA, inputSchemaMapping={"properties": mapping})
    error = await refusal(publishers, request([{"kind": "placed"}, {"other": 1}]))
    assert "'CustomEvent' schema and requires 'eventType' property to be set" in error.message


# ---- domains -----------------------------------------------------------------------------------------------------


async def test_an_event_reaches_the_domain_and_its_topic(stage: Stage, publishers: Publishers) -> None:
    domain = await stage.topic(DOMAIN)
    orders = await stage.topic(DOMAIN.child("topics", "Orders"))
    await stage.subscribe(domain, "all", endpoint="https://all.example")
    await stage.subscribe(orders, "some", endpoint="https://orders.example")
    path = names.publishing_path(DOMAIN)
    await publishers.answer(request([EVENT | {"topic": "Orders"}, EVENT | {"topic": "other"}], path=path))
    await stage.pass_time(1)
    found = sorted(
        (push_request.endpoint, event["topic"])
        for _, push_request in stage.web.pushed
        for event in orjson.loads(push_request.body)
    )
    assert found == [
        ("https://all.example", f"{DOMAIN.text}/topics/Orders"),
        ("https://all.example", f"{DOMAIN.text}/topics/other"),
        ("https://orders.example", f"{DOMAIN.text}/topics/Orders"),
    ]


async def test_an_event_for_a_domain_names_its_topic(stage: Stage, publishers: Publishers) -> None:
    await stage.topic(DOMAIN)
    error = await refusal(publishers, request([EVENT], path=names.publishing_path(DOMAIN)))
    assert "requires 'topic' property to be set" in error.message


async def test_a_cloud_events_source_picks_the_domains_topic(stage: Stage, publishers: Publishers) -> None:
    await stage.topic(DOMAIN, inputSchema=CLOUD_EVENT_SCHEMA)
    orders = await stage.topic(DOMAIN.child("topics", "Orders"), inputSchema=CLOUD_EVENT_SCHEMA)
    await stage.subscribe(orders, eventDeliverySchema=CLOUD_EVENT_SCHEMA)
    path = names.publishing_path(DOMAIN)
    for source in ("orders", "other"):
        await publishers.answer(request(CLOUD_EVENT | {"source": source}, path=path))
    await stage.pass_time(1)
    assert [event["source"] for event in stage.web.bodies] == ["orders"]


# ---- the door ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "host", "handled"),
    [
        (PATH, "localhost:4566", True),
        (PATH.upper(), "localhost:4566", True),
        (names.publishing_path(DOMAIN), "localhost", True),
        ("/api/events", "orders.local-1.eventgrid.azure.net", True),
        ("/api/events", "localhost", False),
        ("/eventgrid/s/rg/ns/topics/t:publish", "localhost", False),
        ("/", "orders.local-1.eventgrid.azure.net", False),
    ],
)
async def test_only_requests_to_a_topics_endpoint_are_publications(
    publishers: Publishers, path: str, host: str, handled: bool
) -> None:
    assert publishers.handles(path, host) is handled


async def test_a_topic_by_its_host(stage: Stage, publishers: Publishers) -> None:
    topic = await stage.topic()
    asked = request([EVENT], path="/api/events", host="orders.local-1.eventgrid.azure.net")
    assert len(await taken(stage, publishers, topic, asked)) == 1
    await refusal(publishers, request([EVENT], path="/api/events", host="none.local-1.eventgrid.azure.net"))


async def test_hosts_that_strangers_make_up_read_no_topics(
    stage: Stage, publishers: Publishers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names are read once, and again when a document has changed."""
    topic = await stage.topic()
    read: list[str] = []
    all_after = stage.engine.resources.topics.all_after

    async def counted(key: str, limit: int | None = None) -> list[Topic]:
        read.append(key)
        return await all_after(key, limit)

    monkeypatch.setattr(stage.engine.resources.topics, "all_after", counted)
    for number in range(20):
        host = f"made-up-{number}.local-1.eventgrid.azure.net"
        await refusal(publishers, request([EVENT], path="/api/events", host=host))
    assert read == ["", topic.name.key]
    await stage.topic(TOPIC._replace(parts=("topics", "Later")))
    host = "later.local-1.eventgrid.azure.net"
    assert (await publishers.answer(request([EVENT], path="/api/events", host=host))).status == 200


async def test_a_missing_topic_is_not_found(publishers: Publishers) -> None:
    error = await refusal(publishers, request([EVENT]))
    assert (error.status, error.code) == (404, "NotFound")


async def test_a_topic_answers_options_with_its_schema(stage: Stage, publishers: Publishers) -> None:
    await stage.topic(inputSchema=CLOUD_EVENT_SCHEMA)
    answer: Response = await publishers.answer(request(b"", method="OPTIONS"))
    assert answer.status == 200
    assert answer.headers["Allow"] == "POST, OPTIONS"
    assert answer.headers["aeg-input-event-schema"] == "CloudEventV10"
    error = await refusal(publishers, request(b"", method="GET"))
    assert (error.status, error.code) == (405, "MethodNotAllowed")
