"""Event subscriptions' properties: what is taken, and each thing that is not."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.azure.arm.destinations import shown_destination
from redrive.azure.arm.event_sources import new_topic
from redrive.azure.arm.subscription_documents import AcceptedSubscription, engine_subscription, state_of
from redrive.azure.arm.subscription_forms import SubscriptionForm
from redrive.azure.eventgrid import names, settings
from redrive.azure.wire.answers import AzureError
from redrive.model.topic import Topic
from tests.azure.stage import ACCOUNT, TOPIC

FORM = SubscriptionForm()
NOW = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
PROTECTED = {
    "azureActiveDirectoryTenantId": "contoso.example",
    "azureActiveDirectoryApplicationIdOrUri": "api://billing",
}
AUTHORIZATION = {"name": "authorization", "type": "Static", "properties": {"value": "a"}}
SCHEMAS = {
    "EventGridSchema": "EventGridSchema",
    "CloudEventSchemaV1_0": "CloudEventSchemaV1_0",
    "CustomEventSchema": "CustomInputSchema",
}
BUS = "/subscriptions/1/resourceGroups/g/providers/Microsoft.ServiceBus/namespaces/bus"
SITE = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Web/sites/app"
RELAY = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Relay/namespaces/relay"
UP = ACCOUNT._replace(parts=("storageAccounts", ".."))
PLACES = {
    BUS: "Endpoint=amqp://bus",
    f"{BUS}/queues/orders": "Endpoint=amqp://bus",
    f"{BUS}/topics/orders": "Endpoint=amqp://bus",
    SITE: "https://app.example/",
    f"{SITE}/functions/bill": "https://app.example/",
    f"{SITE}/functions/own": "https://own.example/run?code=1",
    RELAY: "https://relay.example",
    f"{RELAY}/hybridConnections/c": "https://relay.example",
    ACCOUNT.text: "UseDevelopmentStorage=true",
}


def topic(schema: str = "EventGridSchema") -> Topic:
    return new_topic(TOPIC, {"inputSchema": schema})


def webhook(**fields: Any) -> dict[str, Any]:
    return {"endpointType": "WebHook", "properties": {"endpointUrl": "https://hook.example/a?b=c", **fields}}


def resource(kind: str, resource_id: str, **fields: Any) -> dict[str, Any]:
    return {"endpointType": kind, "properties": {"resourceId": resource_id, **fields}}


def accepted(
    before: dict[str, Any] | None = None, schema: str = "EventGridSchema", **given: Any
) -> AcceptedSubscription:
    given = {"destination": webhook()} | given
    return FORM.accept(given, before or {}, topic(schema), PLACES.get, NOW)


def refused(**given: Any) -> str:
    with pytest.raises(AzureError) as refusal:
        accepted(**given)
    assert (refusal.value.status, refusal.value.code) == (400, "InvalidRequest")
    return refusal.value.message


# ---- destinations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("destination", "protocol", "endpoint"),
    [
        (webhook(), "https", "https://hook.example/a?b=c"),
        (webhook(endpointUrl="http://127.0.0.1:1/x"), "http", "http://127.0.0.1:1/x"),
        (webhook(endpointUrl="arn:aws:sqs:eu:000000000001:q"), "queue", "arn:aws:sqs:eu:000000000001:q"),
        (resource("AzureFunction", f"{SITE}/functions/bill"), "https", "https://app.example/api/bill"),
        (resource("azurefunction", f"{SITE}/functions/own"), "https", "https://own.example/run?code=1"),
        (resource("HybridConnection", f"{RELAY}/hybridConnections/c"), "https", "https://relay.example/c"),
        (resource("ServiceBusQueue", f"{BUS}/queues/orders"), "amqp", f"{BUS}/queues/orders"),
        (resource("ServiceBusTopic", f"{BUS}/topics/orders"), "amqp", f"{BUS}/topics/orders"),
        (
            resource("StorageQueue", ACCOUNT.text, queueName="orders"),
            "storage-queue",
            f"{ACCOUNT.text}/queueServices/default/queues/orders",
        ),
    ],
)
def test_each_destination_has_its_protocol_and_endpoint(
    destination: dict[str, Any], protocol: str, endpoint: str
) -> None:
    found = accepted(destination=destination).destination
    assert (found.protocol, found.endpoint) == (protocol, endpoint)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hook.example/a?code=s3cret", "https://hook.example/a"),
        ("https://user:s3cret@hook.example/a?b", "https://user:****@hook.example/a"),
        ("http://:s3cret@hook.example", "http://:****@hook.example"),
        ("https://user@hook.example", "https://user@hook.example"),
    ],
)
def test_a_webhooks_secrets_are_not_shown(url: str, shown: str) -> None:
    kept = accepted(destination=webhook(endpointUrl=url)).destination
    assert kept is not None
    assert kept.document["properties"]["endpointUrl"] == url
    properties = shown_destination(kept.document)["properties"]
    assert properties["endpointBaseUrl"] == shown
    assert "s3cret" not in orjson.dumps(properties).decode()


@pytest.mark.parametrize(
    "destination",
    [
        {"properties": {"endpointUrl": "https://a"}},
        {"endpointType": "Carrier", "properties": {}},
        {"endpointType": "MonitorAlert", "properties": {"severity": "Sev1"}},
        {"endpointType": "WebHook"},
        {"endpointType": "WebHook", "properties": "https://a"},
        webhook(endpointUrl="ftp://a"),
        webhook(endpointUrl="https://"),
        webhook(endpointUrl="https://a:99999"),
        webhook(endpointUrl=1),
        webhook(maxEventsPerBatch=0),
        webhook(maxEventsPerBatch=5001),
        webhook(maxEventsPerBatch=1.5),
        webhook(maxEventsPerBatch=True),
        webhook(maxEventsPerBatch=float("inf")),
        webhook(preferredBatchSizeInKilobytes=1025),
        webhook(minimumTlsVersionAllowed="0.9"),
        webhook(minimumTlsVersionAllowed="1.3"),
        webhook(azureActiveDirectoryTenantId="t"),
        webhook(azureActiveDirectoryApplicationIdOrUri="api://billing"),
        webhook(**{**PROTECTED, "azureActiveDirectoryTenantId": "../t"}),
        webhook(**{**PROTECTED, "azureActiveDirectoryTenantId": 5}),
        webhook(**PROTECTED, endpointUrl="arn:aws:sqs:eu-west-1:000000000000:orders"),
        webhook(**PROTECTED, endpointUrl="https://user:secret@a"),
        webhook(**PROTECTED, deliveryAttributeMappings=[AUTHORIZATION]),
        resource("ServiceBusQueue", f"{BUS}/topics/orders"),
        resource("ServiceBusQueue", f"{BUS}/queues/unknown"),
        resource("ServiceBusQueue", "bus"),
        resource("StorageQueue", ACCOUNT.text),
        resource("StorageQueue", ACCOUNT.text, queueName="No"),
        resource("StorageQueue", ACCOUNT.text, queueName="orders", queueMessageTimeToLiveInSeconds=0),
        resource("StorageQueue", f"{ACCOUNT.text}x", queueName="orders"),
        resource("StorageQueue", ACCOUNT.text, queueName="orders", deliveryAttributeMappings=[{}]),
    ],
)
def test_malformed_destinations_are_refused(destination: dict[str, Any]) -> None:
    assert refused(destination=destination)


def test_a_webhook_that_is_protected_keeps_what_it_said() -> None:
    made = accepted(destination=webhook(**PROTECTED)).destination.document["properties"]
    assert {name: made[name] for name in PROTECTED} == PROTECTED
    assert accepted(destination=webhook(deliveryAttributeMappings=[AUTHORIZATION]))
    assert accepted(destination=webhook(**dict.fromkeys(PROTECTED, "")))


@pytest.mark.parametrize(
    ("given", "events", "kilobytes"),
    [
        ({"preferredBatchSizeInKilobytes": 512.0}, 5000, 512),
        ({"maxEventsPerBatch": 10}, 10, 64),
        ({"maxEventsPerBatch": None, "preferredBatchSizeInKilobytes": None}, 1, 64),
    ],
)
def test_a_batch_size_that_is_left_out_has_a_default(
    given: dict[str, Any], events: int, kilobytes: int
) -> None:
    said = accepted(destination=webhook(**given)).destination.document["properties"]
    assert (said["maxEventsPerBatch"], said["preferredBatchSizeInKilobytes"]) == (events, kilobytes)


def test_a_destination_may_stand_beside_an_identity() -> None:
    within = {"identity": {"type": "SystemAssigned"}, "destination": webhook()}
    found = accepted(destination=None, deliveryWithResourceIdentity=within)
    assert "destination" not in found.properties
    assert found.properties["deliveryWithResourceIdentity"]["identity"] == {"type": "SystemAssigned"}
    assert found.destination.endpoint == "https://hook.example/a?b=c"


# ---- delivery attributes -----------------------------------------------------------------------------------------


def static(name: str = "x-a", value: Any = "v", **fields: Any) -> dict[str, Any]:
    return {"name": name, "type": "Static", "properties": {"value": value, **fields}}


@pytest.mark.parametrize(
    "mappings",
    [
        [static(f"x-{number}") for number in range(11)],
        [static("aeg-event-type")],
        [static("AEG-own")],
        [static("Host")],
        [static("two words")],
        [static("")],
        [static(value=None)],
        [static(value=1)],
        [static(value="é" * 2049)],
        [static(value="a\r\nb: c")],
        [static("x-a"), static("X-A")],
        [{"name": "x-a", "type": "Dynamic", "properties": {}}],
        [{"name": "x-a", "type": "Other", "properties": {}}],
        [{"name": "x-a"}],
        ["x-a"],
    ],
)
def test_malformed_delivery_attributes_are_refused(mappings: list[Any]) -> None:
    assert refused(destination=webhook(deliveryAttributeMappings=mappings))


def test_the_largest_delivery_attributes() -> None:
    mappings = [static(f"x-{number}", "é" * 2048) for number in range(10)]
    assert accepted(destination=webhook(deliveryAttributeMappings=mappings))


def test_a_destination_sent_back_as_it_was_shown_keeps_its_secrets() -> None:
    mappings = [static("x-secret", "s3cret", isSecret=True), static("x-plain", "Hidden")]
    before = accepted(destination=webhook(deliveryAttributeMappings=mappings)).properties
    shown = shown_destination(before["destination"])
    assert orjson.dumps(shown).count(b"s3cret") == 0
    assert shown["properties"]["endpointBaseUrl"] == "https://hook.example/a"
    after = accepted(before=dict(before), destination=shown).properties
    assert after["destination"] == before["destination"]


# ---- the rest ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("incoming", SCHEMAS)
def test_events_are_delivered_in_their_input_schema_by_default(incoming: str) -> None:
    assert accepted(schema=incoming).properties["eventDeliverySchema"] == SCHEMAS[incoming]


@pytest.mark.parametrize(
    ("incoming", "possible"),
    [
        ("EventGridSchema", {"EventGridSchema", "CloudEventSchemaV1_0"}),
        ("CloudEventSchemaV1_0", {"CloudEventSchemaV1_0"}),
        ("CustomEventSchema", {"EventGridSchema", "CloudEventSchemaV1_0", "CustomInputSchema"}),
    ],
)
def test_each_input_schema_has_its_delivery_schemas(incoming: str, possible: set[str]) -> None:
    for schema in ("EventGridSchema", "CloudEventSchemaV1_0", "CustomInputSchema"):
        if schema in possible:
            assert accepted(schema=incoming, eventDeliverySchema=schema)
        else:
            assert "is not supported" in refused(schema=incoming, eventDeliverySchema=schema)


@pytest.mark.parametrize(
    "given",
    [
        {"destination": None},
        {"retryPolicy": {"maxDeliveryAttempts": 0}},
        {"retryPolicy": {"maxDeliveryAttempts": 31}},
        {"retryPolicy": {"eventTimeToLiveInMinutes": 0}},
        {"retryPolicy": {"eventTimeToLiveInMinutes": 1441}},
        {"retryPolicy": {"eventTimeToLiveInMinutes": "30"}},
        {"retryPolicy": []},
        {"labels": "a"},
        {"labels": [1]},
        {"expirationTimeUtc": "2026-01-01T00:00:00Z"},
        {"expirationTimeUtc": "tomorrow"},
        {"expirationTimeUtc": 5},
        {"eventDeliverySchema": "Other"},
        {"filter": []},
        {"filter": {"subjectBeginsWith": "a" * 513}},
        {"filter": {"includedEventTypes": ["a", 1]}},
        {"filter": {"isSubjectCaseSensitive": "yes"}},
        {"filter": {"advancedFilters": {}}},
        {"filter": {"advancedFilters": ["a"]}},
        {"filter": {"advancedFilters": [{"operatorType": "Like", "key": "a", "values": ["b"]}]}},
        {"filter": {"advancedFilters": [{"operatorType": "NumberIn", "key": "a", "values": ["b"]}]}},
        {"filter": {"advancedFilters": [{"operatorType": "StringIn", "key": "a", "values": True}]}},
        {"filter": {"advancedFilters": [{"operatorType": "NumberIn", "key": "a", "values": 5}]}},
        {"filter": {"advancedFilters": [{"operatorType": "IsNotNull", "key": "a"}] * 26}},
        {"deadLetterDestination": {"endpointType": "Other", "properties": {}}},
        {"deadLetterDestination": resource("StorageBlob", TOPIC.text, blobContainerName="dead")},
        {"deadLetterDestination": resource("StorageBlob", ACCOUNT.text, blobContainerName="-dead")},
        {"deadLetterDestination": resource("StorageBlob", ACCOUNT.text)},
        {"deadLetterDestination": resource("StorageBlob", UP.text, blobContainerName="dead")},
    ],
)
def test_malformed_properties_are_refused(given: dict[str, Any]) -> None:
    assert refused(**given)


def test_an_accepted_document_becomes_an_engine_subscription() -> None:
    found = accepted(
        filter={"includedEventTypes": ["Order.Placed"]},
        deadLetterDestination=resource("StorageBlob", ACCOUNT.text, blobContainerName="dead"),
        expirationTimeUtc="2026-01-01T00:00:01Z",
    )
    made = engine_subscription(topic(), f"{TOPIC.text}/x/Billing", found)
    assert (made.id, made.topic, made.confirmed) == ("billing", names.topic_name(TOPIC), True)
    assert (made.protocol, made.endpoint) == ("https", "https://hook.example/a?b=c")
    assert made.dead_letter == names.dead_letter_queue(made.topic, "billing")
    assert made.expires_at == NOW + 1000
    assert orjson.loads(made.filter_text or "")["includedEventTypes"] == ["Order.Placed"]
    delivery = settings.delivery_settings(made)
    assert (delivery.name, delivery.destination_type) == ("Billing", "WebHook")
    assert delivery.dead_letter_container == f"{ACCOUNT.text}/blobServices/default/containers/dead"


def test_a_subscription_without_a_filter_takes_everything() -> None:
    made = engine_subscription(topic(), "x/billing", accepted(filter={}))
    assert (made.filter_text, made.dead_letter, made.expires_at) == (None, None, None)


def test_a_subscription_not_validated_in_time_has_failed() -> None:
    made = engine_subscription(topic(), "x/billing", accepted(), "AwaitingManualAction", NOW)
    assert not made.confirmed
    assert [state_of(made, now) for now in (NOW - 1, NOW)] == [
        "AwaitingManualAction",
        "Failed",
    ]


# What is sent may be anything; a field's name that is known leads further in than one that is not.
_KNOWN = sorted(
    {
        *("destination", "endpointType", "properties", "endpointUrl", "resourceId", "queueName"),
        *("deliveryAttributeMappings", "name", "type", "value", "sourceField", "isSecret", "identity"),
        *("filter", "advancedFilters", "operatorType", "key", "values", "includedEventTypes", "labels"),
        *("deadLetterDestination", "blobContainerName", "retryPolicy", "maxDeliveryAttempts"),
        *("deliveryWithResourceIdentity", "expirationTimeUtc", "maxEventsPerBatch", "subjectBeginsWith"),
    }
)
_WORDS = st.sampled_from(
    [
        "WebHook",
        "Static",
        "Dynamic",
        "StorageQueue",
        "https://a",
        ACCOUNT.text,
        "NumberInRange",
        "StorageBlob",
    ]
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    _WORDS,
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KNOWN), inner, max_size=5),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(_KNOWN), _JSON, max_size=4))
def test_a_document_accepted_once_is_accepted_again_as_it_is_shown(given: dict[str, Any]) -> None:
    try:
        taken = FORM.accept({"destination": webhook(), **given}, {}, topic(), PLACES.get, NOW)
    except AzureError:
        return
    made = engine_subscription(topic(), "x/billing", taken)
    shown = FORM.to_document(made, TOPIC.text, None, NOW)
    again = FORM.accept(shown["properties"], dict(taken.properties), topic(), PLACES.get, NOW)
    assert again == taken


def test_a_patch_replaces_one_way_of_naming_a_destination_by_the_other() -> None:
    before = dict(accepted(labels=["a"]).properties)
    within = {"identity": {"type": "SystemAssigned"}, "destination": webhook()}
    after = FORM.apply_patch(before, {"deliveryWithResourceIdentity": within, "labels": None})
    assert "destination" not in after
    assert (after["labels"], after["deliveryWithResourceIdentity"]) == (["a"], within)
