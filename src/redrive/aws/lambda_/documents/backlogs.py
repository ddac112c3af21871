"""Backlogs of events: where asynchronous invocations wait, and what their ends lead to.

For each version or alias that is invoked so there is its own engine topic, which no caller can name. Its one
confirmed subscription is the backlog; others, never confirmed, are the backlogs of its dead-letter target and its
destinations, which only an event's end sends to. All that delivering takes of the function stands in the subscription's
attributes, so whatever changes a function calls `update_backlogs_in` in the same transaction.
"""

import enum
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from redrive.aws.lambda_.documents.names import LATEST, arn_of, is_version
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    EVENTS,
    VERSION,
    Configuration,
    EventSettings,
    FunctionRecord,
    qualified_key,
    version_key,
)
from redrive.aws.wire.arn import parse_arn
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft, Resources
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

DIALECT: Final = "lambda"
INVOCATIONS: Final = "invocations"  # the subscription that is the backlog of events
_COUNTED_MAX: Final = 100_000  # events, of those that are told of when they are dropped
#: The kinds of endpoint of such subscriptions.
TO_FUNCTION: Final = "lambda.invocation"
TO_TARGET: Final = "lambda.target"
#: The attributes of a backlog of events.
RETRIES: Final = "retries"
AGE_SECONDS: Final = "age_seconds"
TIMEOUT_SECONDS: Final = "timeout_seconds"
RESERVED: Final = "reserved"


class BacklogTarget(enum.StrEnum):
    """The targets of an event's end; the value is the id of the target's subscription, and an attribute."""

    DEAD_LETTER = "dead-letter"
    ON_FAILURE = "on-failure"
    ON_SUCCESS = "on-success"


def topic_of(function: ResourceName, qualifier: str) -> ResourceName:
    """The engine topic of the events of a version or an alias."""
    return ResourceName(function.account, f"{function.region}:{DIALECT}", f"{function.name}:{qualifier}")


def function_of(topic: ResourceName) -> str:
    """The ARN of the version or alias whose events have an engine topic."""
    name, _, qualifier = topic.name.partition(":")
    return arn_of(ResourceName(topic.account, topic.region.partition(":")[0], name), qualifier)


async def update_backlogs_in(draft: Draft, resources: Resources, function: FunctionRecord) -> None:
    """Bring the backlogs of a function up to what it is in the draft."""
    for _, settings in await draft.find(EVENTS, f"{function.name.key}/"):
        await put_backlogs_in(draft, resources, function, settings)


async def put_backlogs_in(
    draft: Draft, resources: Resources, function: FunctionRecord, settings: EventSettings
) -> None:
    """Make the backlogs of a version or an alias, for its events and their targets, or bring them up to its settings."""
    name = topic_of(function.name, settings.qualifier)
    if await resources.topics.get_in(draft, name) is None:
        await resources.topics.create_in(draft, Topic(0, name, DIALECT))
    version = await _version_in(draft, function, settings.qualifier)
    targets = _targets(version, settings)
    backlog = Subscription(
        id=INVOCATIONS,
        topic=name,
        queue_id=0,
        owner=name.account,
        protocol=TO_FUNCTION,
        endpoint=arn_of(function.name, settings.qualifier),
        attributes={**_attributes(function, version, settings), **targets},
    )
    await resources.subscriptions.put_in(draft, backlog)
    for target, arn in targets.items():
        target_backlog = replace(
            backlog,
            id=target,
            protocol=TO_TARGET,
            endpoint=arn,
            attributes={},
            confirmed=False,
            carries_to=None if target == BacklogTarget.ON_SUCCESS else _queue_of(arn),
        )
        await resources.subscriptions.put_in(draft, target_backlog)


def _queue_of(arn: str) -> ResourceName | None:
    """The queue that an ARN names; None: it names something else."""
    target = parse_arn(arn)
    return ResourceName(target.account, target.region, target.resource) if target.service == "sqs" else None


async def begin_backlog_in(
    draft: Draft, resources: Resources, function: FunctionRecord, qualifier: str
) -> None:
    """Make the backlog of a version or an alias, if there is none yet."""
    settings = await draft.get(EVENTS, qualified_key(function.name, qualifier))
    if settings is None:
        settings = EventSettings(function.name, qualifier)
        draft.put(EVENTS, qualified_key(function.name, qualifier), settings)
    await put_backlogs_in(draft, resources, function, settings)


async def count_waiting(engine: Engine, function: ResourceName, qualifier: str | None = None) -> int:
    """The number of events that wait for a function, or for one version or alias; counted up to `_COUNTED_MAX`."""
    number, resources = 0, engine.resources
    for settings in await resources.documents.find(EVENTS, f"{function.key}/"):
        if qualifier in (None, settings.qualifier) and number < _COUNTED_MAX:
            backlog = await resources.subscriptions.get(topic_of(function, settings.qualifier), INVOCATIONS)
            if backlog is not None:
                counts = await engine.messages.count_backlog(backlog, _COUNTED_MAX - number)
                number += sum(counts)
    return number


async def remove_backlogs_in(
    draft: Draft, resources: Resources, function: ResourceName, qualifier: str | None = None
) -> None:
    """Take away the backlogs of a function, or that of one version or alias; what waits there is dropped."""
    for key, settings in await draft.find(EVENTS, f"{function.key}/"):
        if qualifier not in (None, settings.qualifier):
            continue
        draft.remove(EVENTS, key)
        topic = await resources.topics.get_in(draft, topic_of(function, settings.qualifier))
        if topic is not None:
            await resources.topics.delete_in(draft, topic)


async def _version_in(draft: Draft, function: FunctionRecord, qualifier: str) -> Configuration:
    """The version that a qualifier means; of an alias with weights, the first. What is gone meanwhile is `$LATEST`."""
    if qualifier == LATEST:
        return function.latest
    number = qualifier
    if not is_version(qualifier):
        alias = await draft.get(ALIAS, qualified_key(function.name, qualifier))
        number = LATEST if alias is None else alias.version
    version = await draft.get(VERSION, version_key(function.name, number))
    return version or function.latest


def _targets(version: Configuration, settings: EventSettings) -> dict[str, str]:
    """The ARNs of the targets that are set, by their kind."""
    targets = {
        BacklogTarget.DEAD_LETTER: version.dead_letter,
        BacklogTarget.ON_FAILURE: settings.on_failure,
        BacklogTarget.ON_SUCCESS: settings.on_success,
    }
    return {target.value: arn for target, arn in targets.items() if arn}


def _attributes(
    function: FunctionRecord, version: Configuration, settings: EventSettings
) -> Mapping[str, str]:
    """The settings by which events are delivered, as attributes of their backlog."""
    attributes = {TIMEOUT_SECONDS: str(version.timeout_seconds)}
    for name, value in (
        (RETRIES, settings.retries),
        (AGE_SECONDS, settings.age_seconds),
        (RESERVED, function.reserved),
    ):
        if value is not None:
            attributes[name] = str(value)
    return attributes
