"""Composite alarms: brought to the state that their rules have, whenever an alarm in them changes, and each minute.

While another alarm, its suppressor, is in ALARM, a composite alarm keeps its actions back. It waits for that for a
while before it acts, and for a while after it ended. An action that is kept back is taken in the end if the alarm's
state still is another than the last that was told. Source: CloudWatch user guide, "Composite alarm action suppression".
Periods end at the evaluation after them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson

from redrive.aws.cloudwatch.alarms.definition import check_actions
from redrive.aws.cloudwatch.alarms.delivering import owe_actions_in
from redrive.aws.cloudwatch.alarms.notification import people_moment
from redrive.aws.cloudwatch.alarms.operations import put_alarm_in, resource_name, tags_of
from redrive.aws.cloudwatch.alarms.records import ACTIONS, ALARM, ALARMS, COMPOSITE, OK, Alarm, StateChange
from redrive.aws.cloudwatch.alarms.rule import (
    RuleError,
    RuleNode,
    alarm_name,
    children_of,
    holds,
    leaves,
    read_rule,
)
from redrive.aws.cloudwatch.alarms.transitions import TargetState, Transitions
from redrive.aws.cloudwatch.alarms.verdict import INITIAL
from redrive.aws.cloudwatch.alarms.watch import AlarmRegistry
from redrive.aws.cloudwatch.metrics.errors import unreadable
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.timestamps import to_offset_iso8601
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import ResourceName

BY_ALARM: Final = "Alarm"
BY_WAIT: Final = "WaitPeriod"
BY_EXTENSION: Final = "ExtensionPeriod"
_SUPPRESSOR: Final = "ActionsSuppressor"
_WAIT: Final = "ActionsSuppressorWaitPeriod"
_EXTENSION: Final = "ActionsSuppressorExtensionPeriod"
_KEPT: Final = (
    *("AlarmDescription", "ActionsEnabled", *ACTIONS.values(), "AlarmRule"),
    *(_SUPPRESSOR, _WAIT, _EXTENSION),
)


class Suppression(NamedTuple):
    """The reason why a composite alarm keeps its actions back."""

    by: str  # BY_ALARM, BY_WAIT or BY_EXTENSION
    announced: str  # The state that was announced last
    until: int | None = None  # When the period ends (ms); None: of BY_ALARM, which ends with the other alarm


class Suppressor(NamedTuple):
    """The other alarm."""

    on: bool  # It is in ALARM
    wait_ms: int  # How long it is waited for
    extension_ms: int  # How long after it


class Next(NamedTuple):
    """The suppression from now on, and whether the actions of the alarm's state are taken now."""

    suppression: Suppression | None
    acts: bool


def follow(current: Suppression | None, before: str, state: str, suppressor: Suppressor, now: int) -> Next:
    """The next suppression of an alarm that was in the state `before` and is in `state` from now on.

    It begins with a change of the state: BY_ALARM if the suppressor is in ALARM, else BY_WAIT if the alarm now is.
    BY_WAIT becomes BY_ALARM once the suppressor is in ALARM, and that BY_EXTENSION once it no longer is. At the end the
    actions are taken if the state is another than the last that was announced.
    """
    if current is None:
        return (
            _first_suppression(before, state, suppressor, now) if state != before else Next(None, acts=False)
        )
    if suppressor.on:
        return Next(Suppression(BY_ALARM, current.announced), acts=False)
    if current.by == BY_ALARM and suppressor.extension_ms:
        return Next(Suppression(BY_EXTENSION, current.announced, now + suppressor.extension_ms), acts=False)
    # A wait for the suppressor ends early when the alarm is back in the state that was announced last.
    ends_early = current.by == BY_WAIT and state == current.announced
    period_lasts = current.until is not None and now < current.until
    if period_lasts and not ends_early:
        return Next(current, acts=False)
    return Next(None, acts=state != current.announced)


def _first_suppression(before: str, state: str, suppressor: Suppressor, now: int) -> Next:
    """The suppression that begins with a change of state: by the alarm, or by the wait for it; else the change acts."""
    if suppressor.on:
        return Next(Suppression(BY_ALARM, before), acts=False)
    if state == ALARM and suppressor.wait_ms:
        return Next(Suppression(BY_WAIT, before, now + suppressor.wait_ms), acts=False)
    return Next(None, acts=True)


class Composites:
    """Puts composite alarms, and brings them to their states."""

    def __init__(self, engine: Engine, registry: AlarmRegistry, transitions: Transitions) -> None:
        self._engine = engine
        self._registry = registry
        self._transitions = transitions

    async def put_composite_alarm(self, call: Call, params: Structure) -> Structure:
        if params.get("ActionConfiguration") is not None:
            raise unreadable("The parameter ActionConfiguration is not available.")
        check_actions(call, params)
        rule, name, tags = _rule(params), resource_name(call, params["AlarmName"]), tags_of(params)
        settings = {key: params[key] for key in _KEPT if params.get(key) is not None}

        await self._registry.check_room(name)

        async def decide(draft: Draft) -> None:
            await _check_children(draft, name, rule)
            await _check_suppressor(draft, name, settings)
            await put_alarm_in(draft, name, COMPOSITE, settings, tags, call.now)

        await self._engine.resources.write(decide)
        await self.settle(call.now)
        return {}

    async def settle(self, now: int) -> None:
        """Bring every composite alarm to the state that its rule has now; those that others are in come first."""
        composites = [alarm for alarm in self._registry.alarms if alarm.kind == COMPOSITE]
        for _ in composites:
            changes = [await self._follow(alarm, now) for alarm in composites]
            if not any(changes):
                return
            composites = [alarm for alarm in self._registry.alarms if alarm.kind == COMPOSITE]

    async def _follow(self, alarm: Alarm, now: int) -> bool:
        """Returns whether an alarm came to another state."""
        target_state, suppressor = self._target_state(alarm), self._suppressor(alarm)
        current = suppression_of(alarm)
        step = follow(current, alarm.state.value, target_state.value, suppressor, now)
        if target_state.value == alarm.state.value and step.suppression == current and not step.acts:
            return False

        async def decide(draft: Draft) -> bool:
            stored = await draft.get(ALARMS, alarm.name.key)
            if stored != alarm:
                return False  # another node, or a caller, was faster: looked at again at the next occasion
            await self._follow_in(draft, alarm, target_state, step, now)
            return target_state.value != alarm.state.value

        return await self._engine.resources.write(decide)

    async def _follow_in(
        self, draft: Draft, alarm: Alarm, target_state: TargetState, step: Next, now: int
    ) -> None:
        """Write an alarm's state and suppression; if the latter ends, the actions that it held back are owed."""
        changed_alarm = replace(alarm, suppression=_document(alarm, step.suppression))
        if target_state.value != alarm.state.value:
            await self._transitions.change_in(draft, changed_alarm, target_state, now, acts=step.acts)
            return
        # The state stays, but its actions may have been suppressed until now.
        alarm_after = changed_alarm.with_change()
        draft.put(ALARMS, alarm.name.key, alarm_after)
        before = suppression_of(alarm)
        if step.acts and alarm_after.acts and before is not None:
            announced_state = alarm.state._replace(value=before.announced)
            await owe_actions_in(draft, self._engine, StateChange(alarm_after, announced_state))

    # ---- the state that a rule has -------------------------------------------------------------------------

    def _target_state(self, alarm: Alarm) -> TargetState:
        """The state that a composite alarm's rule has, and why."""
        rule = read_rule(alarm.given["AlarmRule"])
        siblings = [self._sibling(alarm, name) for name in children_of(alarm)]
        children = [child for child in siblings if child is not None]
        states = {child.name.name: child.state.value for child in children}
        value = ALARM if holds(rule, states) else OK
        latest = max(children, key=_transitioned_at, default=None)
        if alarm.state.reason == INITIAL:
            return TargetState(value, _definition_text(alarm, "created", value), _data(children))
        if latest is None or _transitioned_at(latest) < alarm.defined_at:
            data = _data(_children_in_rule(rule, children))
            return TargetState(value, _definition_text(alarm, "updated", value), data)
        return TargetState(value, _transition_text(latest), _data([latest]))

    def _sibling(self, alarm: Alarm, name: str) -> Alarm | None:
        """The alarm of that name in the same account and region."""
        return self._registry.get(alarm.name._replace(name=name).key)

    def _suppressor(self, alarm: Alarm) -> Suppressor:
        arn = alarm.given.get(_SUPPRESSOR)
        if not arn:
            return Suppressor(on=False, wait_ms=0, extension_ms=0)
        other = self._sibling(alarm, alarm_name(arn))
        on = other is not None and other.state.value == ALARM
        return Suppressor(on, alarm.given[_WAIT] * 1000, alarm.given[_EXTENSION] * 1000)


def suppression_of(alarm: Alarm) -> Suppression | None:
    """The suppression of a composite alarm."""
    document = alarm.suppression
    return None if document is None else Suppression(document["by"], document["told"], document["until"])


def _document(alarm: Alarm, suppression: Suppression | None) -> dict[str, Any] | None:
    """A suppression as the alarm's document has it; see `suppression_of`."""
    if suppression is None:
        return None
    cause = alarm.given[_SUPPRESSOR] if suppression.by == BY_ALARM else suppression.by
    return {
        "by": suppression.by,
        "told": suppression.announced,
        "until": suppression.until,
        "reason": f"Actions suppressed by {cause}",
    }


def _transitioned_at(alarm: Alarm) -> int:
    return alarm.state.transitioned_at


def _transition_text(child: Alarm) -> str:
    at = people_moment(child.state.transitioned_at)
    return f"{child.arn} transitioned to {child.state.value} at {at}"


def _definition_text(alarm: Alarm, how: str, value: str) -> str:
    return f"{alarm.arn} was {how} and its alarm rule evaluates to {value}"


def _children_in_rule(rule: RuleNode, children: Sequence[Alarm]) -> list[Alarm]:
    """The alarms that are in a state that the rule asks for."""
    pairs = {(leaf.alarm, leaf.state) for leaf in leaves(rule)}
    return [child for child in children if (child.name.name, child.state.value) in pairs]


def _data(children: Sequence[Alarm]) -> str:
    """The reason data of a composite alarm: the children that triggered it, in JSON."""
    children_data = [
        {
            "arn": child.arn,
            "state": {
                "value": child.state.value,
                "timestamp": to_offset_iso8601(child.state.transitioned_at),
            },
        }
        for child in children
    ]
    return orjson.dumps({"triggeringAlarms": children_data}).decode()


# ---- definitions -----------------------------------------------------------------------------------------------


def _rule(params: Structure) -> RuleNode:
    try:
        return read_rule(params["AlarmRule"])
    except RuleError as invalid:
        raise unreadable(f"AlarmRule must be a valid expression: {invalid}.") from None


async def _check_children(draft: Draft, name: ResourceName, rule: RuleNode) -> None:
    """Refuse a rule with alarms that are not there, or that leads back to its own alarm."""
    unknown_references: list[str] = []
    to_visit = [(leaf.alarm, leaf.reference) for leaf in leaves(rule)]
    visited: set[str] = set()
    while to_visit:
        # Only alarms of this rule have a reference: those of the rules below may be absent.
        child, reference = to_visit.pop(0)
        if child == name.name:
            raise unreadable(f"The rule of alarm {name.name} leads back to itself.")
        if child in visited:
            continue
        visited.add(child)
        child_alarm = await draft.get(ALARMS, name._replace(name=child).key)
        if child_alarm is None:
            unknown_references += [reference] if reference else []
        else:
            to_visit += [(below, "") for below in children_of(child_alarm)]
    if unknown_references:
        texts = ", ".join(unknown_references)
        raise unreadable(
            f"Could not save the composite alarm because alarms [{texts}] in the alarm rule do not exist"
        )


async def _check_suppressor(draft: Draft, name: ResourceName, settings: Mapping[str, Any]) -> None:
    suppressor = settings.get(_SUPPRESSOR)
    periods = [settings.get(_WAIT), settings.get(_EXTENSION)]
    if suppressor is None:
        if any(period is not None for period in periods):
            raise unreadable(f"{_WAIT} and {_EXTENSION} go with {_SUPPRESSOR} alone.")
        return
    if None in periods:
        raise unreadable(f"{_SUPPRESSOR} needs {_WAIT} and {_EXTENSION}.")
    other = alarm_name(suppressor)
    if other == name.name or await draft.get(ALARMS, name._replace(name=other).key) is None:
        raise unreadable(
            f"Could not save the composite alarm because the suppressor [{suppressor}] does not exist"
        )
