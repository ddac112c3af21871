"""Putting, tagging, deleting and switching alarms, and setting their state by hand."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.aws.cloudwatch.alarms.definition import TAGS_MAX, definition
from redrive.aws.cloudwatch.alarms.records import (
    ALARMS,
    HISTORY,
    INSUFFICIENT_DATA,
    METRIC,
    Alarm,
    HistoryItem,
    State,
    change_of,
    history_at,
    history_key,
)
from redrive.aws.cloudwatch.alarms.transitions import TargetState, Transitions
from redrive.aws.cloudwatch.alarms.verdict import INITIAL
from redrive.aws.cloudwatch.alarms.watch import AlarmRegistry
from redrive.aws.cloudwatch.metrics.errors import error, invalid, unreadable
from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.wire.arn import read_arn
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Documents, Draft
from redrive.model.errors import NotFound
from redrive.model.names import ResourceName

Definition = dict[str, Any]
_ALARM = "alarm:"
TAGS: Final = Tagging(too_many=lambda: invalid(f"A resource can have at most {TAGS_MAX} tags."))


class AlarmOperations:
    """Carries out what callers ask for of single alarms."""

    def __init__(
        self,
        engine: Engine,
        registry: AlarmRegistry,
        transitions: Transitions,
        settle: Callable[[int], Awaitable[None]],  # lets composite alarms follow, at a moment (ms)
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._transitions = transitions
        self._settle = settle

    async def put_metric_alarm(self, call: Call, params: Structure) -> Structure:
        settings, name = definition(call, params), resource_name(call, params["AlarmName"])
        tags = tags_of(params)
        await self._registry.check_room(name)
        await self._engine.resources.write(
            lambda draft: put_alarm_in(draft, name, METRIC, settings, tags, call.now)
        )
        return {}

    async def delete_alarms(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DeleteAlarms.html.

        Names of alarms that are not there are passed over.
        """
        names = [resource_name(call, name) for name in params["AlarmNames"]]

        async def decide(draft: Draft) -> None:
            for name in dict.fromkeys(names):
                alarm = await draft.get(ALARMS, name.key)
                if alarm is not None:
                    draft.remove(ALARMS, name.key)
                    _note(draft, alarm.with_change(), "Delete", call.now)

        await self._engine.resources.write(decide)
        await self._settle(call.now)
        return {}

    async def enable_alarm_actions(self, call: Call, params: Structure) -> Structure:
        return await self._switch(call, params, enabled=True)

    async def disable_alarm_actions(self, call: Call, params: Structure) -> Structure:
        return await self._switch(call, params, enabled=False)

    async def _switch(self, call: Call, params: Structure, *, enabled: bool) -> Structure:
        """Switch the actions of alarms on or off; names of no alarm are skipped."""
        names = [resource_name(call, name) for name in params["AlarmNames"]]

        async def decide(draft: Draft) -> None:
            for name in dict.fromkeys(names):
                alarm = await draft.get(ALARMS, name.key)
                if alarm is not None and alarm.acts is not enabled:
                    settings = {**alarm.given, "ActionsEnabled": enabled}
                    alarm_after = alarm.with_change(given=settings, defined_at=call.now)
                    draft.put(ALARMS, name.key, alarm_after)
                    _note(draft, alarm_after, "Update", call.now)

        await self._engine.resources.write(decide)
        return {}

    async def set_alarm_state(self, call: Call, params: Structure) -> Structure:
        name = resource_name(call, params["AlarmName"])
        target = TargetState(params["StateValue"], params["StateReason"], params.get("StateReasonData"))
        if target.data is not None:
            _check_json(target.data)

        async def decide(draft: Draft) -> None:
            alarm = await draft.get(ALARMS, name.key)
            if alarm is None:
                raise error("ResourceNotFound")
            await self._transitions.change_in(draft, alarm, target, call.now)

        await self._engine.resources.write(decide)
        await self._settle(call.now)
        return {}


def resource_name(call: Call, name: str) -> ResourceName:
    """The alarm of that name in the caller's account and region."""
    return ResourceName(call.account, call.region, name)


def tags_of(params: Structure) -> dict[str, str]:
    """The tags that a call gives."""
    tags = {tag["Key"]: tag["Value"] for tag in params.get("Tags") or ()}
    if len(tags) > TAGS_MAX:
        raise unreadable(f"The collection Tags must not have a size greater than {TAGS_MAX}.")
    return tags


def _check_json(text: str) -> None:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        raise error("InvalidFormatFault", "StateReasonData must be valid JSON.") from None


async def put_alarm_in(
    draft: Draft, name: ResourceName, kind: str, definition: Definition, tags: dict[str, str], now: int
) -> Alarm:
    """Make an alarm, or give it a new definition: it keeps its state, and its tags."""
    alarm = await draft.get(ALARMS, name.key)
    if alarm is None or alarm.kind != kind:
        state = State(INSUFFICIENT_DATA, INITIAL, None, now, now)
        # One of the name may have been deleted at this moment: its history stays, and this one's goes on after it.
        latest_items = await draft.find(HISTORY, history_at(name, now), limit=1)
        change = max((change_of(key) for key, _ in latest_items), default=0) + 1
        alarm_after = Alarm(name, kind, definition, state, now, change, tags)
    else:
        alarm_after = alarm.with_change(given=definition, defined_at=now)
    draft.put(ALARMS, name.key, alarm_after)
    _note(draft, alarm_after, "Create" if alarm is None else "Update", now)
    return alarm_after


def _note(draft: Draft, alarm: Alarm, type_: str, now: int) -> None:
    """Write into the history that an alarm was created, updated or deleted."""
    member = {"Create": "createdAlarm", "Update": "updatedAlarm", "Delete": "deletedAlarm"}[type_]
    state_members = {"alarmName": alarm.name.name, "alarmArn": alarm.arn, **alarm.given}
    data = orjson.dumps({"version": "1.0", "type": type_, member: state_members}).decode()
    summary = f'Alarm "{alarm.name.name}" {type_.lower()}d'
    item = HistoryItem(alarm.name.name, alarm.kind, now, "ConfigurationUpdate", summary, data)
    draft.put(HISTORY, history_key(alarm.name, now, alarm.changes), item)


class AlarmTags:
    """Alarms, as `Tagging` labels them."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the alarm that a request names; an alarm that is not there has none (recorded)."""
        alarm = await self._documents.get(ALARMS, _name(request.call, request.params).key)
        return {} if alarm is None else alarm.tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the alarm that a request names."""
        try:
            await self._documents.update(
                ALARMS,
                _name(request.call, request.params).key,
                lambda alarm: replace(alarm, tags=change(alarm.tags)),
            )
        except NotFound:
            raise error("ResourceNotFoundException") from None


def _name(call: Call, params: Structure) -> ResourceName:
    """The alarm that an ARN means; of other resources, and other accounts', there are none here."""
    arn = read_arn(params["ResourceARN"])
    if arn is None or arn.service != "cloudwatch" or not arn.resource.startswith(_ALARM):
        raise invalid(f"The value {params['ResourceARN']} for parameter ResourceARN is invalid.")
    if (arn.account, arn.region) != (call.account, call.region):
        raise error("ResourceNotFoundException")
    return ResourceName(arn.account, arn.region, arn.resource.removeprefix(_ALARM))
