"""Event Grid: topics, domains and namespaces with their event subscriptions, in Azure's words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.dialect import PULL
from redrive.azure.eventgrid.settings import WEBHOOK, DeliverySettings, delivery_settings, topic_settings
from redrive.console.health import answer_series, health, topic_hour_series, topic_traffic
from redrive.console.hour import LISTED_MS, Hour, last_hour
from redrive.console.json_text import pretty
from redrive.console.lab import lab_parameters
from redrive.console.letter_blobs import BLOBS_MAX, folder_of, newest_in
from redrive.console.pages.messages import owed_first
from redrive.console.schedule_chart import draw_schedule
from redrive.console.visit import PAGE_ROWS, Missing, Page, Visit
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.retry import RetrySchedule
from redrive.model.topic import Subscription, Topic

COUNTED_MAX: Final = 10_000
TOPICS_SHOWN: Final = 50
TOPICS_MAX: Final = 200  # of all dialects: Event Grid's among them are listed
_KINDS: Final = {
    "topics": "topic",
    "domains": "domain",
    "namespaces": "namespace topic",
    "storageaccounts": "storage account",
}
#: What the list can be kept to: the beginning of topics' names, and its label.
_SEGMENTS: Final = {"": "All", "topics": "Topics", "domains": "Domains", "namespaces": "Namespaces"}
_CREATE: Final = (
    "az eventgrid event-subscription create --name billing --source-resource-id TOPIC --endpoint https://…"
)


async def listing(visit: Visit) -> Page:
    """The event subscriptions of a resource group, and what events are published to."""
    scope, resources = visit.scope, visit.engine.resources
    kind = visit.parameter("kind") if visit.parameter("kind") in _SEGMENTS else ""
    topics = [
        topic
        for topic in await resources.topics.of_account(scope.account, scope.region, limit=TOPICS_MAX)
        if topic.dialect == names.DIALECT and _kind_of(topic.name).startswith(kind)
    ]
    after = visit.parameter("after")
    subscriptions = await resources.subscriptions.of_account(
        scope.account, scope.region, scope._replace(name=after).key if after else "", 2 * PAGE_ROWS + 1
    )
    event_subscriptions = [
        each
        for each in subscriptions[: 2 * PAGE_ROWS]
        if _is_event_subscription(each) and _kind_of(each.topic).startswith(kind)
    ]
    page = event_subscriptions[:PAGE_ROWS]
    last = subscriptions[2 * PAGE_ROWS - 1] if len(subscriptions) > 2 * PAGE_ROWS else None
    if len(event_subscriptions) > PAGE_ROWS:
        last = page[-1]
    first_topics = topics[:TOPICS_SHOWN]
    hour = await _hour(visit, page, first_topics)
    values = {
        "topics": [_topic_row(topic, event_subscriptions, hour) for topic in first_topics],
        "topics_left": len(topics) - len(first_topics),
        "rows": await _rows(visit, page, hour),
        "kind": kind,
        "segments": [(each, label, visit.link("event-grid", kind=each)) for each, label in _SEGMENTS.items()],
        "at_most": COUNTED_MAX,
        "start": _CREATE,
        "next": ""
        if last is None
        else visit.link("event-grid", kind=kind, after=f"{last.topic.name}/{last.id}"),
    }
    return Page("event_grid.html", values, live_seconds=5)


async def _hour(visit: Visit, subscriptions: Sequence[Subscription], topics: Sequence[Topic]) -> Hour:
    """The last hour of event subscriptions and topics: one read."""
    await visit.installation.settle()
    series = [
        *answer_series(subscriptions),
        *(each for topic in topics for each in topic_hour_series(topic.name)),
    ]
    return await last_hour(visit.installation.telemetry, series, visit.now, LISTED_MS)


async def _rows(visit: Visit, subscriptions: Sequence[Subscription], hour: Hour) -> list[dict[str, Any]]:
    """Event subscriptions with their numbers, those that fail or have dead letters first."""
    conditions = await visit.engine.operations.conditions.of_each(subscriptions)
    pushed = await visit.engine.messages.count_backlogs(subscriptions, COUNTED_MAX)
    pulled = await _queues(visit, subscriptions, _pulled_from)
    dead = await _queues(visit, subscriptions, _dead_in)
    queues = {queue.id: queue for queue in (*pulled.values(), *dead.values())}
    counts = await visit.engine.messages.count_each(list(queues.values()), COUNTED_MAX) if queues else {}
    rows = [
        {
            **_row(visit, each),
            "condition": condition,
            "owed": sum(counts[pulled[each.key].id] if each.key in pulled else pushed[each.queue_id]),
            "letters": sum(counts[dead[each.key].id]) if each.key in dead else None,
            "health": health(hour, each),
            "is_pulled": each.key in pulled,
        }
        for each, condition in zip(subscriptions, conditions, strict=True)
    ]
    return sorted(rows, key=lambda row: (not row["condition"].troubled, -(row["letters"] or 0)))


def _pulled_from(subscription: Subscription) -> ResourceName | None:
    return ResourceName.from_key(subscription.endpoint) if subscription.protocol == PULL else None


def _dead_in(subscription: Subscription) -> ResourceName | None:
    return subscription.dead_letter


async def _queues(
    visit: Visit,
    subscriptions: Sequence[Subscription],
    name_of: Callable[[Subscription], ResourceName | None],
) -> dict[str, Queue]:
    """The queue whose name `name_of` returns for each subscription, by the subscription's key."""
    queues: dict[str, Queue] = {}
    for each in subscriptions:
        name = name_of(each)
        queue = None if name is None else await visit.engine.resources.queues.get(name)
        if queue is not None:
            queues[each.key] = queue
    return queues


def _kind_of(name: ResourceName) -> str:
    """The first part of an event topic's name: `topics`, `domains`, `namespaces`."""
    return name.name.partition(":")[0]


async def one(visit: Visit) -> Page:
    """An event subscription: its destination, its schedule, its dead letters."""
    topic, subscription = await _topic_and_subscription(visit)
    (row,) = await _rows(visit, [subscription], await _hour(visit, [subscription], []))
    values = {
        **row,
        "topic": topic,
        "owed_first": await owed_first(visit, subscription, row["condition"].circuit),
        "at_most": COUNTED_MAX,
        "endpoints": visit.link("endpoints"),
        **({} if visit.live_alone else await _fixed_values(visit, subscription)),
    }
    return Page("event_subscription.html", values, live_seconds=2)


async def _fixed_values(visit: Visit, subscription: Subscription) -> dict[str, Any]:
    """Template values of an event subscription's page that live updates leave out."""
    settings = delivery_settings(subscription)
    schedule = await visit.engine.operations.conditions.schedule_of(subscription)
    return {
        "settings": settings,
        "filter": _json(subscription.filter_text),
        "destination": _json(orjson.dumps(_without_secrets(settings.destination)).decode()),
        "headers": [
            (each.name, "from " + each.source_field if each.source_field else "a fixed value")
            for each in settings.attributes
        ],
        **(_schedule_chart(visit, schedule) if isinstance(schedule, RetrySchedule) else {"chart": None}),
        **await _blobs(visit, subscription),
        "command": _command(settings),
        "back": visit.link("event-grid"),
    }


def _schedule_chart(visit: Visit, schedule: RetrySchedule) -> dict[str, Any]:
    """The chart of a retry schedule, in words too, with a link to the lab."""
    chart, sentence = draw_schedule(schedule)
    return {
        "chart": chart,
        "summary": sentence,
        "lab": visit.link("schedules", **lab_parameters(schedule, "event-grid")),
    }


async def _topic_and_subscription(visit: Visit) -> tuple[Topic, Subscription]:
    """The event subscription that the address names, and its topic; raises Missing."""
    name = visit.scope._replace(name=visit.args["topic"])
    topic = await visit.engine.resources.topics.get(name)
    subscription = await visit.engine.resources.subscriptions.get(name, visit.args["subscription"])
    if topic is None or subscription is None or not _is_event_subscription(subscription):
        raise Missing(
            f"There is no event subscription {visit.args['subscription'][:80]} of {name.name[:80]}."
        )
    return topic, subscription


def _is_event_subscription(subscription: Subscription) -> bool:
    return names.is_event_topic(subscription.topic) and not names.is_dead_letter_store(subscription.id)


def _topic_row(topic: Topic, subscriptions: Sequence[Subscription], hour: Hour) -> dict[str, Any]:
    """The row of a topic: its kind, schema, number of subscriptions, and traffic in the hour."""
    kind, *parts = topic.name.name.split(":")
    settings = topic_settings(topic)
    kind_word = "domain topic" if kind == "domains" and len(parts) > 1 else _KINDS.get(kind, kind)
    return {
        "kind": kind_word,
        "name": _short(topic.name),
        "schema": settings.input_schema,
        "id": settings.id,
        "subscriptions": sum(each.topic == topic.name for each in subscriptions),
        "traffic": topic_traffic(hour, topic.name),
    }


def _short(name: ResourceName) -> str:
    """An event topic's name as people know it, without its kind."""
    return "/".join(name.name.split(":")[1:]) or name.name


def _row(visit: Visit, subscription: Subscription) -> dict[str, Any]:
    """An event subscription with the names and links that tables have of it."""
    settings = delivery_settings(subscription)
    is_pulled = subscription.protocol == PULL
    dead = subscription.dead_letter
    resource = settings.destination.get("resourceId")
    address = subscription.redacted_endpoint
    return {
        "subscription": subscription,
        "name": settings.name or subscription.id,
        "source": _short(subscription.topic),
        "kind_word": _KINDS.get(_kind_of(subscription.topic), _kind_of(subscription.topic)),
        "type": "pull" if is_pulled else settings.destination_type,
        "place": "" if is_pulled else address,
        "resource": "" if resource in (None, subscription.endpoint) else resource,
        "link": visit.link("event-grid", subscription.topic.name, subscription.id),
        "dead": "" if dead is None else dead.name,
        "dead_link": "" if dead is None else visit.link("dead-letters", dead.name),
        "container": settings.dead_letter_container,
    }


async def _blobs(visit: Visit, subscription: Subscription) -> dict[str, Any]:
    """The newest blobs of the container that dead letters are copied to."""
    folder = folder_of(subscription)
    return {
        "blobs": None if folder is None else await newest_in(visit, folder),
        "blob_folder": folder,
        "most": BLOBS_MAX,
    }


def _without_secrets(destination: Mapping[str, Any]) -> Mapping[str, Any]:
    """A destination without secrets: a webhook's URL may carry a key in its query."""
    public = dict(destination)
    for name in ("endpointUrl", "endpointBaseUrl"):
        if isinstance(public.get(name), str):
            address, mark, _ = public[name].partition("?")
            public[name] = address + ("?…" if mark else "")
    mappings: Sequence[Mapping[str, Any]] = public.get("deliveryAttributeMappings") or ()
    if mappings:
        public["deliveryAttributeMappings"] = [each.get("name") for each in mappings]
    return public


def _json(text: str | None) -> str:
    return "" if not text else pretty(text) or text


def _command(settings: DeliverySettings) -> str:
    """The command that changes it: the console shows Event Grid's resources, and `az` edits them."""
    resource = settings.id.partition("/providers/Microsoft.EventGrid/eventSubscriptions/")[0]
    if "/namespaces/" in settings.id:
        return f"az eventgrid namespace topic event-subscription update --ids {settings.id}"
    deliver = "" if settings.destination_type != WEBHOOK else " --endpoint URL"
    return (
        f"az eventgrid event-subscription update --name {settings.name} --source-resource-id {resource}"
        f" --max-delivery-attempts {settings.attempts_max} --event-ttl {settings.minutes_to_live}{deliver}"
    )
