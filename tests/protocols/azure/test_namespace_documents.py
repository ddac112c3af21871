"""Whatever is sent of namespaces is taken or refused, and what was taken is taken again as it is shown."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from redrive.model.queue import ResourceName
from redrive.model.topic import Topic
from redrive.protocols.azure.arm import namespace_documents
from redrive.protocols.azure.arm import namespace_subscription_documents as documents
from redrive.protocols.azure.namespaces.places import Namespace
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import AzureError

NAMESPACE = ArmId("g", "rg", "Microsoft.EventGrid", ("namespaces", "shop"))
TOPIC = NAMESPACE.child("topics", "orders")
ACCOUNT = "/subscriptions/g/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/letters"
HUB = "/subscriptions/g/resourceGroups/rg/providers/Microsoft.EventHub/namespaces/n/eventhubs/h"

# A field's name that is known leads further in than one that is not.
KNOWN = sorted(
    {
        *("deliveryConfiguration", "deliveryMode", "queue", "push", "receiveLockDurationInSeconds"),
        *("maxDeliveryCount", "eventTimeToLive", "deadLetterDestinationWithResourceIdentity", "identity"),
        *("deadLetterDestination", "endpointType", "properties", "resourceId", "blobContainerName"),
        *("destination", "deliveryWithResourceIdentity", "endpointUrl", "deliveryAttributeMappings"),
        *("filtersConfiguration", "includedEventTypes", "filters", "operatorType", "key", "values"),
        *("eventDeliverySchema", "expirationTimeUtc", "location", "tags", "sku", "capacity", "name"),
        *("topicsConfiguration", "topicSpacesConfiguration", "state", "isZoneRedundant", "inputSchema"),
        *("eventRetentionInDays", "publisherType", "inboundIpRules", "hostname", "customDomains"),
    }
)
WORDS = ["Queue", "Push", "WebHook", "EventHub", "https://a", "PT1M", "P1D", "StorageBlob", ACCOUNT, HUB]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(WORDS),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN), inner, max_size=5),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(KNOWN), JSON, max_size=8)


def topic() -> Topic:
    made = Topic(
        1, ResourceName("g", "rg", "namespaces:shop:orders"), "eventgrid", attributes={"id": TOPIC.text}
    )
    return namespace_documents.accepted_topic(made, {})


def taken_again(properties: dict[str, Any]) -> None:
    """What is accepted becomes a subscription of the engine's, and is accepted again as it is shown."""
    accepted = documents.accepted(properties, {}, topic(), {HUB: "amqp://x"}.get)
    made = documents.engine_subscription(TOPIC.child("eventSubscriptions", "billing"), topic(), accepted)
    shown = documents.shown(made, 0)["properties"]
    assert documents.accepted(shown, accepted.properties, topic(), {HUB: "amqp://x"}.get) == accepted
    if accepted.destination is None:
        assert documents.engine_queue(made, topic()).serves == made.key


@given(OBJECTS)
def test_any_event_subscription(given: dict[str, Any]) -> None:
    try:
        taken_again(given)
    except AzureError:
        return


@given(OBJECTS, OBJECTS)
def test_any_event_subscription_in_queue_mode(queue: dict[str, Any], filters: dict[str, Any]) -> None:
    configuration = {"deliveryMode": "Queue", "queue": queue}
    try:
        taken_again({"deliveryConfiguration": configuration, "filtersConfiguration": filters})
    except AzureError:
        return


@given(OBJECTS, JSON)
def test_any_event_subscription_in_push_mode(push: dict[str, Any], destination: Any) -> None:
    configuration = {"deliveryMode": "Push", "push": {**push, "destination": destination}}
    try:
        taken_again({"deliveryConfiguration": configuration})
    except AzureError:
        return


@given(OBJECTS, OBJECTS)
def test_any_namespace(given: dict[str, Any], change: dict[str, Any]) -> None:
    new = Namespace(ResourceName("g", "rg", "shop"), {"id": NAMESPACE.text})
    try:
        made = namespace_documents.accepted(new, {"location": "local", **given})
        namespace_documents.shown(made, "http://x")
        namespace_documents.shown(namespace_documents.patched(made, change), "http://x")
    except AzureError:
        return


@given(OBJECTS, OBJECTS)
def test_any_topic(given: dict[str, Any], change: dict[str, Any]) -> None:
    try:
        made = namespace_documents.accepted_topic(topic(), {"properties": given})
        namespace_documents.shown_topic(namespace_documents.patched_topic(made, {"properties": change}))
    except AzureError:
        return
