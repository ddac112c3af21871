"""The two forms of event subscriptions' documents: that of namespaces' topics, and that of everything else."""

from http import HTTPStatus
from typing import Any, Final

import orjson
from typing_extensions import override

from redrive.azure.arm import schema
from redrive.azure.arm.destinations import EndpointResolver, accepted_container, accepted_destination
from redrive.azure.arm.resource import no_such
from redrive.azure.arm.schema import Document, DocumentSchema, SchemaField, nested, whole, words
from redrive.azure.arm.specs import retention_ms
from redrive.azure.arm.subscription_documents import (
    CONFIGURATION,
    DEAD_LETTERS,
    DESTINATIONS,
    IN_DEAD_LETTER,
    AcceptedSubscription,
    expires_at,
    part_at,
    shown_properties,
    state_of,
    with_part,
)
from redrive.azure.eventgrid.notation import duration_ms
from redrive.azure.eventgrid.settings import (
    ATTEMPTS_MAX,
    CLOUD_EVENT_SCHEMA,
    CUSTOM_EVENT_SCHEMA,
    CUSTOM_INPUT_SCHEMA,
    EVENT_GRID_SCHEMA,
    ID,
    MINUTES_TO_LIVE_MAX,
    topic_settings,
)
from redrive.azure.wire.answers import AzureError, invalid, not_found
from redrive.azure.wire.arm_id import ArmId
from redrive.model.filtering import EventFilterInvalid, read_event_filter
from redrive.model.topic import Subscription, Topic

EXTENSION: Final = "providers/Microsoft.EventGrid/eventSubscriptions"
QUEUE: Final = "Queue"
PUSH: Final = "Push"
DELIVERIES_MAX: Final = 10
LOCK_SECONDS_MIN: Final = 60
LOCK_SECONDS_MAX: Final = 300
_LABELS_MAX: Final = 100
_TO_LIVE_MIN_MS: Final = 60_000
_PUSHED_TO: Final = ("WebHook", "EventHub")
_STATE: Final = "provisioningState"

# A topic's input schema: what it can be delivered as; the first is the default.
_DELIVERED_AS: Final = {
    EVENT_GRID_SCHEMA: (EVENT_GRID_SCHEMA, CLOUD_EVENT_SCHEMA),
    CLOUD_EVENT_SCHEMA: (CLOUD_EVENT_SCHEMA,),
    CUSTOM_EVENT_SCHEMA: (CUSTOM_INPUT_SCHEMA, EVENT_GRID_SCHEMA, CLOUD_EVENT_SCHEMA),
}
_RETRY: Final = DocumentSchema(
    (
        SchemaField("maxDeliveryAttempts", whole(1, ATTEMPTS_MAX), default=ATTEMPTS_MAX),
        SchemaField("eventTimeToLiveInMinutes", whole(1, MINUTES_TO_LIVE_MAX), default=MINUTES_TO_LIVE_MAX),
    ),
    closed=True,
)


def _filter(document: Document, name: str) -> Document:
    return accepted_filter(schema.part(document, name))


def _labels(document: Document, name: str) -> list[str] | None:
    labels = schema.texts(document, name)
    if labels is not None and len(labels) > _LABELS_MAX:
        raise invalid(f"There may be at most {_LABELS_MAX} labels.")
    return labels


_PROPERTIES: Final = DocumentSchema(
    (
        SchemaField("filter", _filter, default={}),
        SchemaField(
            "eventDeliverySchema", words(EVENT_GRID_SCHEMA, CUSTOM_INPUT_SCHEMA, CLOUD_EVENT_SCHEMA), ""
        ),
        SchemaField("retryPolicy", nested(_RETRY), default=_RETRY.accept({})),
        SchemaField("labels", _labels, default=[]),
    ),
    read_only=frozenset({"topic", _STATE, CONFIGURATION}),
)


class SubscriptionForm:
    """The form of event subscriptions of topics, domains, domain topics and storage accounts.

    Attributes:
        replaced_status: The status of a PUT or a PATCH that changes an event subscription.
        in_steps: The answer to a write shows an event subscription as being written still.
    """

    replaced_status = HTTPStatus.CREATED
    in_steps = True

    def accept(
        self, document: Document, before: Document, topic: Topic, resolve: EndpointResolver, now: int
    ) -> AcceptedSubscription:
        """Check properties that take the place of those `before`, which may be empty.

        Raises:
            AzureError: The properties are not acceptable.
        """
        path, destinations = part_at(document, DESTINATIONS)
        if not path:
            raise invalid("The property 'destination' is missing.")
        destination = accepted_destination(destinations, part_at(before, DESTINATIONS)[1], resolve)
        properties = with_part(_PROPERTIES.accept(document), path, destination.document)
        properties = _with_container(properties, DEAD_LETTERS)
        properties["eventDeliverySchema"] = _delivery_schema(properties["eventDeliverySchema"], topic)
        text = filter_text(properties["filter"])
        return AcceptedSubscription(properties, destination, text, expires_at(properties, now))

    def apply_patch(self, before: Document, document: Document) -> Document:
        """The properties that a PATCH asks for: its document has no `properties`, and replaces what it names whole."""
        members = schema.present(document)
        pairs = [{path[0] for path in paths} for paths in (DESTINATIONS, DEAD_LETTERS)]
        removed_names = {name for pair in pairs if not pair.isdisjoint(members) for name in pair}
        return {name: value for name, value in before.items() if name not in removed_names} | members

    def resource_id(self, source: ArmId, topic: Topic, name: str, existing: Subscription | None) -> str:  # noqa: ARG002 - for NamespaceForm
        """The ARM id that an event subscription is kept with: the existing one's, or one as the call spells it."""
        return f"{topic.attributes[ID]}/{EXTENSION}/{name}"

    def to_document(
        self, subscription: Subscription, topic_id: str, nested_in: ArmId | None, now: int
    ) -> dict[str, Any]:
        """An event subscription as the resource manager shows it: nested in a resource, or in the extension form."""
        resource_id, kind = subscription.attributes[ID], "Microsoft.EventGrid/eventSubscriptions"
        name = resource_id.rpartition("/")[2]
        if nested_in is not None:
            resource = nested_in.child("eventSubscriptions", name)
            resource_id, kind = resource.text, resource.type_as_spelt
        state = {"topic": topic_id, _STATE: state_of(subscription, now)}
        properties = {**state, **shown_properties(subscription)}
        return {"id": resource_id, "name": name, "type": kind, "properties": properties}

    def no_such(self, source: ArmId, name: str) -> AzureError:
        """The refusal of an event subscription that does not exist."""
        return not_found(f"The event subscription '{name}' of '{source.text}' was not found.")


def _delivery_schema(schema_name: str, topic: Topic) -> str:
    """The schema of deliveries, or the topic's usual one; raises AzureError if the topic has no such events."""
    input_schema = topic_settings(topic).input_schema
    possible = _DELIVERED_AS[input_schema]
    delivery_schema = schema_name or possible[0]
    if delivery_schema not in possible:
        raise invalid(
            f"The event delivery schema '{delivery_schema}' is not supported for a topic whose input schema is"
            f" '{input_schema}'; it must be one of {', '.join(possible)}."
        )
    return delivery_schema


# ---- topics of namespaces ----------------------------------------------------------------------------------------

_NAMESPACE_PROPERTIES: Final = DocumentSchema(
    (SchemaField("eventDeliverySchema", words(CLOUD_EVENT_SCHEMA), default=CLOUD_EVENT_SCHEMA),),
    read_only=frozenset({_STATE}),
)
_LIMITS: Final = DocumentSchema(
    (
        SchemaField("maxDeliveryCount", whole(1, DELIVERIES_MAX), default=DELIVERIES_MAX),
        SchemaField("eventTimeToLive", schema.text),
    )
)
_LOCK: Final = SchemaField(
    "receiveLockDurationInSeconds", whole(LOCK_SECONDS_MIN, LOCK_SECONDS_MAX), default=LOCK_SECONDS_MIN
)
_MODES: Final = {QUEUE: DocumentSchema((*_LIMITS.fields, _LOCK)), PUSH: _LIMITS}


class NamespaceForm(SubscriptionForm):
    """The form of event subscriptions of namespaces' topics."""

    replaced_status = HTTPStatus.OK
    in_steps = False

    @override
    def accept(
        self, document: Document, before: Document, topic: Topic, resolve: EndpointResolver, now: int
    ) -> AcceptedSubscription:
        """Check properties (`SubscriptionForm.accept`): the delivery mode stays, and decides what else there is."""
        properties = _NAMESPACE_PROPERTIES.accept(document)
        configuration = schema.part(properties, CONFIGURATION) or {}
        earlier = before.get(CONFIGURATION) or {}
        mode = schema.one_of(configuration, "deliveryMode", QUEUE, PUSH) or QUEUE
        if earlier.get("deliveryMode", mode) != mode:
            raise invalid("The property 'deliveryMode' cannot be changed.")
        limits = _MODES[mode].accept(schema.part(configuration, mode.lower()) or {})
        _check_to_live(limits.get("eventTimeToLive"), topic)
        limits = _with_container(limits, (IN_DEAD_LETTER,))
        destination = None
        if mode == PUSH:
            path, push_destination = part_at(limits, DESTINATIONS)
            if schema.one_of(push_destination, "endpointType", *_PUSHED_TO) is None:
                raise invalid(f"The destination's endpointType must be one of {', '.join(_PUSHED_TO)}.")
            _, destination_before = part_at(earlier.get("push") or {}, DESTINATIONS)
            destination = accepted_destination(push_destination, destination_before, resolve)
            limits = with_part(limits, path, destination.document)
        properties[CONFIGURATION] = {"deliveryMode": mode, mode.lower(): limits}
        return AcceptedSubscription(
            properties, destination, _filter_text(properties), expires_at(properties, now)
        )

    @override
    def apply_patch(self, before: Document, document: Document) -> Document:
        """See `SubscriptionForm.apply_patch`: properties are merged one by one."""
        return schema.merge(before, schema.part(document, "properties") or {})

    @override
    def resource_id(self, source: ArmId, topic: Topic, name: str, existing: Subscription | None) -> str:
        """See `SubscriptionForm.resource_id`: the name stays as it was spelt first."""
        return source.child("eventSubscriptions", name).text if existing is None else existing.attributes[ID]

    @override
    def to_document(
        self, subscription: Subscription, topic_id: str, nested_in: ArmId | None, now: int
    ) -> dict[str, Any]:
        """See `SubscriptionForm.to_document`: it has the id that it was made with, and does not name its topic."""
        document = super().to_document(subscription, topic_id, nested_in, now)
        del document["properties"]["topic"]
        return {**document, "id": subscription.attributes[ID]}

    @override
    def no_such(self, source: ArmId, name: str) -> AzureError:
        return no_such(source.child("eventSubscriptions", name))


def _check_to_live(text: str | None, topic: Topic) -> None:
    """Refuse a time to live that is no duration, too short, or longer than the topic keeps events."""
    if text is None:
        return
    to_live_ms = duration_ms(text)
    if to_live_ms is None:
        raise invalid(f"The property 'eventTimeToLive' is '{text}', which is not a duration in ISO 8601.")
    if not _TO_LIVE_MIN_MS <= to_live_ms <= retention_ms(topic):
        raise invalid(
            f"The property 'eventTimeToLive' is '{text}'; it must be PT1M at least and no longer than the topic's "
            "eventRetentionInDays."
        )


def _filter_text(properties: Document) -> str | None:
    """The filter in the words that the other form has for it."""
    configuration = schema.part(properties, "filtersConfiguration") or {}
    filter_members = {
        "includedEventTypes": configuration.get("includedEventTypes"),
        "advancedFilters": configuration.get("filters"),
    }
    return filter_text(accepted_filter(filter_members))


def _with_container(document: Document, paths: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """Properties with their dead-letter destination, if they have one, as it is accepted."""
    path, destination = part_at(document, paths)
    return with_part(document, path, accepted_container(destination)) if path else dict(document)


# The `filter` of an event subscription, checked as the service checks it.

SUBJECT_CHARS_MAX: Final = 512
_DECIDES: Final = ("subjectBeginsWith", "subjectEndsWith", "includedEventTypes", "advancedFilters")


def accepted_filter(document: Document | None) -> dict[str, Any]:
    """A filter as it is kept, with the defaults of what is missing.

    Raises:
        AzureError: It asks for something that there is not, or for more than the limits allow.
    """
    event_filter = schema.present(document or {})
    for name in ("subjectBeginsWith", "subjectEndsWith"):
        if len(schema.text(event_filter, name) or "") > SUBJECT_CHARS_MAX:
            raise invalid(f"The property '{name}' may have at most {SUBJECT_CHARS_MAX} characters.")
    schema.texts(event_filter, "includedEventTypes")
    for name in ("isSubjectCaseSensitive", "enableAdvancedFilteringOnArrays"):
        schema.flag(event_filter, name)
    if not all(isinstance(each, dict) for each in schema.items(event_filter, "advancedFilters") or ()):
        raise invalid("The property 'advancedFilters' must be a list of objects.")
    try:
        read_event_filter(orjson.dumps(event_filter).decode())
    except EventFilterInvalid as refusal:
        raise invalid(f"{refusal}.") from None
    return {"subjectBeginsWith": "", "subjectEndsWith": "", **event_filter}


def filter_text(document: Document) -> str | None:
    """The filter's text for the engine; None where everything passes."""
    return orjson.dumps(document).decode() if any(document.get(name) for name in _DECIDES) else None
