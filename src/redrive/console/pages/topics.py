"""Topics and their subscriptions: the curve of each retry schedule, a filter tester, and publishing."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import orjson

from redrive.aws.sns.documents import names
from redrive.aws.sns.documents.delivery_policy import RetryPolicy
from redrive.aws.sns.documents.destinations import HTTP, PROTOCOLS
from redrive.aws.sns.documents.subscription_attributes import effective_delivery_policy
from redrive.aws.sns.documents.topic_attributes import DIALECT
from redrive.aws.wire.errors import AwsError
from redrive.console.commands import aws_command
from redrive.console.health import (
    answer_series,
    answer_times,
    answers_chart,
    health,
    latency_chart,
    span_series,
    topic_chart,
    topic_hour_series,
    topic_traffic,
)
from redrive.console.hour import LISTED_MS, last_hour
from redrive.console.lab import lab_parameters
from redrive.console.navigation import troubled_subscriptions
from redrive.console.pages.messages import delivery_logs, owed_first
from redrive.console.pages.pushing import takes_tests
from redrive.console.schedule_chart import draw_schedule
from redrive.console.sorting import Row, sort_rows
from redrive.console.typed_messages import (
    SAMPLES,
    TYPES,
    attribute_rows,
    json_attributes,
    sample_text,
    typed_attributes,
    typed_body,
)
from redrive.console.visit import PAGE_ROWS, REFUSED, Missing, Page, Redirect, Unusable, Visit
from redrive.model.filtering import (
    FilterPolicyInvalid,
    FilterVerdict,
    NestedPolicyRefused,
    Scope,
    Subject,
    read_policy,
)
from redrive.model.names import ResourceName
from redrive.model.retry import RetrySchedule
from redrive.model.topic import POLICY, Attribute, Subscription, Topic

COUNTED_MAX: Final = 10_000
SUBSCRIPTIONS_MAX: Final = 1_000  # that a page of topics looks at: 5 ms
#: Verdicts of filters, as people say them.
_VERDICTS: Final = {
    FilterVerdict.NO_ATTRIBUTES: "the message has no attributes",
    FilterVerdict.ATTRIBUTES: "an attribute does not match",
    FilterVerdict.INVALID_ATTRIBUTES: "an attribute cannot be read",
    FilterVerdict.BODY: "the body does not match",
    FilterVerdict.INVALID_BODY: "the body is not a JSON object",
}
DRAWN_MAX: Final = 60  # attempts of a schedule: the managed one has 100,016


async def listing(visit: Visit) -> Page:
    """Topics by name, and before them on the first page those with subscriptions that need attention."""
    prefix, after = visit.parameter("prefix"), visit.parameter("after")
    troubled_keys = [key.rpartition("/")[0] for key in await troubled_subscriptions(visit, [visit.scope])]
    page, last = await _topics(visit, Counter(troubled_keys))
    numbers = await _subscriptions_of(visit, page, after)
    series = [each for topic in page for each in topic_hour_series(topic.name)]
    hour = await last_hour(visit.installation.telemetry, series, visit.now, LISTED_MS)
    rows: list[dict[str, Any]] = [
        {
            "topic": topic,
            "link": visit.link("topics", topic.name.name),
            "troubled": troubled_keys.count(topic.name.key),
            "subscriptions": numbers.get(topic.name),
            "traffic": topic_traffic(hour, topic.name),
        }
        for topic in page
    ]
    rows.sort(key=lambda row: not row["troubled"])  # of a page: those that need somebody first
    columns: dict[str, Callable[[Row], Any]] = {
        "name": lambda row: row["topic"].name.name,
        "state": lambda row: row["troubled"],
        "subscriptions": lambda row: row["subscriptions"] or 0,
        "published": lambda row: row["traffic"].published,
        "delivered": lambda row: row["traffic"].delivered,
        "failed": lambda row: row["traffic"].failed,
        "created": lambda row: row["topic"].created_at,
    }
    ordered, heads = sort_rows(visit, rows, columns, "topics", prefix=prefix, after=after)
    values = {
        "rows": ordered,
        "heads": heads,
        "prefix": prefix,
        "form": visit.link("topics"),
        "first": visit.link("topics", prefix=prefix) if after else "",
        "next": visit.link("topics", prefix=prefix, sort=visit.parameter("sort"), after=last) if last else "",
        "start": aws_command(visit, "sns", "create-topic", "--name", "orders"),
    }
    return Page("topics.html", values, live_seconds=10)


async def _topics(visit: Visit, troubled: Counter[str]) -> tuple[list[Topic], str]:
    """The topics of a page, and the name to go on behind; empty: this is the last page."""
    scope, prefix, after = visit.scope, visit.parameter("prefix"), visit.parameter("after")
    names = [ResourceName.from_key(key) for key, _ in troubled.most_common()]
    first = [name for name in names if name.name.startswith(prefix)][: PAGE_ROWS // 2]
    topics = visit.engine.resources.topics
    candidates = [] if after else [await topics.get(name) for name in first]
    existing = [topic for topic in candidates if topic is not None]
    limit = PAGE_ROWS + len(first) + 1
    others = [
        topic
        for topic in await topics.find(
            scope._replace(name=prefix), scope._replace(name=after).key if after else "", limit
        )
        if topic.name not in first
    ]
    by_name = others[: PAGE_ROWS - len(existing)]
    last = by_name[-1].name.name if len(others) > len(by_name) else ""
    return [*existing, *by_name], last


async def _subscriptions_of(visit: Visit, page: list[Topic], after: str) -> dict[ResourceName, int | None]:
    """The number of subscriptions of each topic of a page; None: there may be more than were looked at."""
    account, region = visit.args["account"], visit.args["region"]
    behind = visit.scope._replace(name=after).key if after else ""
    looked_at = await visit.engine.resources.subscriptions.of_account(
        account, region, behind, SUBSCRIPTIONS_MAX
    )
    numbers: dict[ResourceName, int | None] = dict(Counter(each.topic for each in looked_at))
    if len(looked_at) < SUBSCRIPTIONS_MAX:
        return {topic.name: numbers.get(topic.name, 0) for topic in page}
    # a subscription's key is its topic's and a slash, which the digit 0 follows
    last = looked_at[-1].key
    return {
        topic.name: numbers.get(topic.name, 0) if f"{topic.name.key}0" <= last else None for topic in page
    }


async def one(visit: Visit) -> Page:
    """A topic: who is owed how much, how they answer, and what is lost."""
    topic = await visit.topic()
    subscriptions = await visit.engine.resources.subscriptions.of(
        topic.name, visit.parameter("after"), PAGE_ROWS + 1
    )
    page = subscriptions[:PAGE_ROWS]
    conditions = await visit.engine.operations.conditions.of_each(page)
    owed = await visit.engine.messages.count_backlogs(page, COUNTED_MAX)
    await visit.installation.settle()
    series = [*topic_hour_series(topic.name), *answer_series(page)]
    hour = await last_hour(visit.installation.telemetry, series, visit.now)
    tested, refusal = _test_filters(visit, page)
    rows: list[dict[str, Any]] = [
        {
            "subscription": subscription,
            "condition": condition.condition,
            "troubled": condition.troubled,
            "owed": sum(owed[subscription.queue_id]),
            "health": health(hour, subscription),
            "link": visit.link("topics", topic.name.name, subscription.id),
            "wants": tested.get(subscription.id),
        }
        for subscription, condition in zip(page, conditions, strict=True)
    ]
    rows.sort(key=_urgency)
    published, *_ = topic_hour_series(topic.name)
    values = {
        "topic": topic,
        "arn": _arn(topic),
        "rows": rows,
        "troubled": sum(row["troubled"] for row in rows),
        "gets": sum((row["wants"] or "").startswith("gets") for row in rows),
        "published": int(hour.total(published)),
        "chart": topic_chart(hour, topic.name),
        "at_most": COUNTED_MAX,
        "next": visit.link("topics", topic.name.name, after=page[-1].key)
        if len(subscriptions) > PAGE_ROWS
        else "",
        "publish": visit.link("topics", topic.name.name, "publish"),
        "logs": delivery_logs(visit, topic.name) if is_logged(topic) else None,
        "here": visit.link("topics", topic.name.name),
        "attributes": visit.parameter("attributes"),
        "body": visit.parameter("body"),
        "refusal": refusal,
        "start": _subscribe_command(visit, topic),
    }
    return Page("topic.html", values, live_seconds=0 if values["attributes"] or values["body"] else 5)


def _urgency(row: Mapping[str, Any]) -> tuple[bool, bool, int]:
    """The order of subscriptions: those that lose what fails, then those in trouble, then by what waits."""
    loses = row["troubled"] and row["subscription"].dead_letter is None
    return not loses, not row["troubled"], -row["owed"]


def _subscribe_command(visit: Visit, topic: Topic) -> str:
    endpoint_options = ("--protocol", "https", "--notification-endpoint", "https://example.com/hook")
    return aws_command(visit, "sns", "subscribe", "--topic-arn", _arn(topic), *endpoint_options)


def is_logged(topic: Topic) -> bool:
    """True if a topic asks for a log of its deliveries."""
    return any(name.endswith("FeedbackRoleArn") and value for name, value in topic.attributes.items())


def _test_filters(visit: Visit, subscriptions: list[Subscription]) -> tuple[dict[str, str], str]:
    """The verdict of each subscription on the message in the tester, and the reason that it cannot be tried for."""
    attributes, body = visit.parameter("attributes"), visit.parameter("body")
    if not attributes and not body:
        return {}, ""
    try:
        document = orjson.loads(attributes or "{}")
    except ValueError as error:
        return {}, f"This is not JSON: {error}"
    if not isinstance(document, dict):
        return {}, 'Attributes are a JSON object, like {"city": "Oslo"}.'
    return {each.id: fate_of(each, json_attributes(document), body) for each in subscriptions}, ""


def fate_of(subscription: Subscription, attributes: Mapping[str, Attribute], body: str) -> str:
    """The verdict of a subscription's filter on a message: `gets it`, `filtered out: …` or `its filter …`."""
    if not subscription.filter_text:
        return "gets it: it has no filter"
    if subscription.filter_language != POLICY:
        return "its filter looks at whole events, and is not tried here"
    scope = Scope.BODY if subscription.filter_body else Scope.ATTRIBUTES
    try:
        verdict = read_policy(subscription.filter_text, scope, stored=True).match(Subject(attributes, body))
    except (FilterPolicyInvalid, NestedPolicyRefused):
        return "its filter cannot be read"
    return (
        "gets it" if verdict is FilterVerdict.MATCHED else f"filtered out: {_VERDICTS.get(verdict, verdict)}"
    )


async def subscription(visit: Visit) -> Page:
    """A subscription: its endpoint, its schedule as a curve, and what it is owed."""
    topic = await visit.topic()
    receiver = await visit.engine.resources.subscriptions.get(topic.name, visit.args["subscription"])
    if receiver is None:
        raise Missing(f"There is no subscription {visit.args['subscription'][:80]} of {topic.name.name}.")
    condition = await visit.engine.operations.conditions.of(receiver)
    owed = await visit.engine.messages.count_backlog(receiver, COUNTED_MAX)
    await visit.installation.settle()
    series = [*answer_series([receiver]), *span_series(receiver)]
    hour = await last_hour(visit.installation.telemetry, series, visit.now)
    values = {
        "topic": topic,
        "subscription": receiver,
        "condition": condition,
        "owed": owed,
        "owed_first": await owed_first(visit, receiver, condition.circuit),
        "at_most": COUNTED_MAX,
        "health": health(hour, receiver),
        "attempts_chart": answers_chart(hour, receiver),
        "latency": latency_chart(hour, receiver),
        "times": answer_times(hour, receiver),
        "resume": visit.link("endpoints"),
        "dead_form": ""
        if topic.dialect != DIALECT
        else visit.link("dead-letter-queue", topic=topic.name.name, subscription=receiver.id),
        **({} if visit.live_alone else await _fixed_values(visit, topic, receiver)),
    }
    return Page("subscription.html", values, live_seconds=2)


async def _fixed_values(visit: Visit, topic: Topic, subscription: Subscription) -> dict[str, Any]:
    """Template values of a subscription's page that live updates leave out."""
    dead = subscription.dead_letter
    return {
        **await _schedule_chart(visit, subscription),
        "lab": await lab_link(visit, topic, subscription),
        "dead_link": "" if dead is None else visit.link("dead-letters", dead.name),
        "arn": names.subscription_arn(subscription),
        "test": visit.link("topics", topic.name.name, subscription.id, "test")
        if takes_tests(topic, subscription)
        else "",
        "metrics": visit.link("metrics", of=topic.name.name),
        "tail": visit.link("tail", of=subscription.id),
    }


async def _schedule_chart(visit: Visit, subscription: Subscription) -> dict[str, Any]:
    """The chart of a subscription's schedule, with a sentence and its first retries."""
    schedule = await visit.engine.operations.conditions.schedule_of(subscription)
    if not isinstance(schedule, RetrySchedule):
        return {"chart": None}
    chart, sentence = draw_schedule(schedule)
    return {"chart": chart, "summary": sentence, "steps": list(islice(schedule.steps(), DRAWN_MAX))}


async def lab_link(visit: Visit, topic: Topic, subscription: Subscription) -> str:
    """The link to the lab with a subscription's own numbers."""
    if topic.dialect == DIALECT and subscription.protocol in HTTP:
        policy = effective_delivery_policy(topic, subscription).retry or RetryPolicy()
        numbers = policy.to_document()
        return visit.link("schedules", topic=topic.name.name, subscription=subscription.id, **numbers)
    schedule = await visit.engine.operations.conditions.schedule_of(subscription)
    if not isinstance(schedule, RetrySchedule):
        return ""
    protocol = PROTOCOLS.get(subscription.protocol)
    return visit.link(
        "schedules", **lab_parameters(schedule, "managed" if protocol is None else protocol.schedule_name)
    )


async def publish_form(visit: Visit) -> Page:
    """A form for a message to a topic."""
    return _form(visit, await visit.topic(), "")


def _form(
    visit: Visit, topic: Topic, notice: str, status: int = 200, fates: Sequence[tuple[Subscription, str]] = ()
) -> Page:
    """The form for a publication, filled with what was typed; `fates`: who would get it, where that was asked."""
    fields = {name: visit.parameter(name) for name in ("subject", "group", "deduplication", "format")}
    here = ("topics", topic.name.name, "publish")
    values = {
        **fields,
        "body": visit.parameter("body") or sample_text(visit.parameter("sample")),
        "samples": [(name, visit.link(*here, sample=name)) for name in SAMPLES],
        "rows": attribute_rows(visit),
        "types": TYPES,
        "topic": topic,
        "notice": notice,
        "fates": fates,
        "back": visit.link("topics", topic.name.name),
    }
    return Page("publish.html", values, status)


async def publish(visit: Visit) -> Page | Redirect:
    """Publish a message by the service's own rules; or say who would get it."""
    topic = await visit.topic()
    if visit.parameter("do") == "try":
        return _form(visit, topic, "", fates=await _fates(visit, topic))
    params: dict[str, Any] = {"TopicArn": _arn(topic)}
    for field, name in (
        ("subject", "Subject"),
        ("group", "MessageGroupId"),
        ("deduplication", "MessageDeduplicationId"),
    ):
        if visit.parameter(field):
            params[name] = visit.parameter(field)
    if visit.parameter("format") == "protocols":
        params["MessageStructure"] = "json"
    try:
        params["Message"] = typed_body(visit)
        if attributes := typed_attributes(visit):
            params["MessageAttributes"] = attributes
        answer = await visit.call("sns", "Publish", params)
    except AwsError as error:
        return _form(visit, topic, error.message, REFUSED)
    except Unusable as error:
        return _form(visit, topic, str(error), REFUSED)
    return Redirect(
        visit.link("messages", answer["MessageId"], topic=topic.name.name),
        sentence=f"Published as {answer['MessageId']}",
    )


async def _fates(visit: Visit, topic: Topic) -> list[tuple[Subscription, str]]:
    """The subscriptions of a topic, the first page of them, with what their filters do to the message of the form."""
    attributes = {
        name: Attribute(each["DataType"], each["StringValue"])
        for name, each in typed_attributes(visit).items()
        if "StringValue" in each
    }
    subscriptions = await visit.engine.resources.subscriptions.of(topic.name, limit=PAGE_ROWS)
    return [(each, fate_of(each, attributes, visit.parameter("body"))) for each in subscriptions]


def _arn(topic: Topic) -> str:
    return names.arn_of(topic.name)
