"""Any document about a namespace is accepted or refused, and what was accepted is accepted again as it is shown."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from redrive.azure.arm import resource
from redrive.azure.arm.resource import ArmResourceSpec, R
from redrive.azure.arm.specs import NAMESPACE_TOPICS, NAMESPACES
from redrive.azure.arm.subscription_documents import AcceptedSubscription, engine_queue, engine_subscription
from redrive.azure.arm.subscription_forms import NamespaceForm
from redrive.azure.eventgrid.documents import NamespacePlace
from redrive.azure.wire.answers import AzureError
from redrive.azure.wire.arm_id import ArmId
from redrive.model.names import ResourceName
from redrive.model.topic import Topic

FORM = NamespaceForm()
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
    return resource.apply_put(NAMESPACE_TOPICS, made, {})


# ---- event subscriptions -----------------------------------------------------------------------------------------


def accepted(properties: dict[str, Any], before: dict[str, Any]) -> AcceptedSubscription:
    return FORM.accept(properties, before, topic(), {HUB: "amqp://x"}.get, 0)


def check_subscription(properties: dict[str, Any]) -> None:
    """Check that an accepted document becomes a subscription, and is accepted again as it is shown."""
    try:
        taken = accepted(properties, {})
    except AzureError:
        return
    made = engine_subscription(topic(), TOPIC.child("eventSubscriptions", "billing").text, taken)
    shown = FORM.to_document(made, TOPIC.text, TOPIC, 0)["properties"]
    assert accepted(shown, dict(taken.properties)) == taken
    if taken.destination is None:
        assert engine_queue(made, topic()).serves == made.key


@given(OBJECTS)
def test_an_accepted_event_subscription_is_accepted_again(given: dict[str, Any]) -> None:
    check_subscription(given)


@given(OBJECTS, OBJECTS)
def test_an_accepted_queue_mode_is_accepted_again(queue: dict[str, Any], filters: dict[str, Any]) -> None:
    configuration = {"deliveryMode": "Queue", "queue": queue}
    check_subscription({"deliveryConfiguration": configuration, "filtersConfiguration": filters})


@given(OBJECTS, JSON)
def test_an_accepted_push_mode_is_accepted_again(push: dict[str, Any], destination: Any) -> None:
    configuration = {"deliveryMode": "Push", "push": {**push, "destination": destination}}
    check_subscription({"deliveryConfiguration": configuration})


@given(st.sampled_from(["https://a", "http://a:1/b?c=d"]), OBJECTS)
def test_an_accepted_webhook_is_accepted_again(url: str, others: dict[str, Any]) -> None:
    destination = {"endpointType": "WebHook", "properties": {**others, "endpointUrl": url}}
    check_subscription(
        {"deliveryConfiguration": {"deliveryMode": "Push", "push": {"destination": destination}}}
    )


# ---- namespaces and their topics ---------------------------------------------------------------------------------


def check_resource(spec: ArmResourceSpec, new: R, document: dict[str, Any], change: dict[str, Any]) -> None:
    """Check that an accepted document, also after a PATCH, is accepted again as it is shown."""
    try:
        made = resource.apply_put(spec, new, document)
    except AzureError:
        return
    check_shown(spec, made)
    try:
        changed = resource.apply_patch(spec, made, change)
    except AzureError:
        return
    check_shown(spec, changed)


def check_shown(spec: ArmResourceSpec, made: R) -> None:
    shown = resource.body_of(spec, made, "http://x")
    assert resource.body_of(spec, resource.apply_put(spec, made, shown), "http://x") == shown
    resource.apply_patch(spec, made, shown)  # not refused; nulls within are removed, as RFC 7396 has it


@given(OBJECTS, OBJECTS, OBJECTS)
def test_an_accepted_namespace_is_accepted_again(
    beside: dict[str, Any], properties: dict[str, Any], change: dict[str, Any]
) -> None:
    new = NamespacePlace(ResourceName("g", "rg", "shop"), {"id": NAMESPACE.text})
    document = {**beside, "location": "local", "properties": properties}
    check_resource(NAMESPACES, new, document, {**change, "properties": properties})
    check_resource(NAMESPACES, new, document, change)


@given(OBJECTS, OBJECTS)
def test_an_accepted_topic_is_accepted_again(given: dict[str, Any], change: dict[str, Any]) -> None:
    check_resource(NAMESPACE_TOPICS, topic(), {"properties": given}, {"properties": change})
