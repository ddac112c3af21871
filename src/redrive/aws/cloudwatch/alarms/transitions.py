"""Transitions: an alarm comes to another state, and all that follows is written in one transaction."""

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from redrive.aws.cloudwatch.alarms.delivering import owe_actions_in
from redrive.aws.cloudwatch.alarms.records import (
    ALARMS,
    HISTORY,
    Alarm,
    HistoryItem,
    State,
    StateChange,
    history_key,
)
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import ResourceName


class TargetState(NamedTuple):
    """The state that an alarm should have."""

    value: str  # `OK`, `ALARM` or `INSUFFICIENT_DATA`
    reason: str  # For people
    data: str | None  # For programs; None: there is none


class Transitions:
    """Writes transitions down."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def bring(
        self, name: ResourceName, decide: Callable[[Alarm], TargetState | None], now: int
    ) -> StateChange | None:
        """Bring an alarm to the state that it should have (None: its own); the change, or None if there is none.

        The alarm, the history of it and the actions that it owes are one transaction; of two nodes that decide at once,
        the second finds the first one's state. `decide` is called again if the alarm was changed meanwhile.
        """

        async def bring_in(draft: Draft) -> StateChange | None:
            alarm = await draft.get(ALARMS, name.key)
            target = None if alarm is None else decide(alarm)
            if alarm is None or target is None or target.value == alarm.state.value:
                return None
            return await self.change_in(draft, alarm, target, now)

        return await self._engine.resources.write(bring_in)

    async def change_in(
        self, draft: Draft, alarm: Alarm, target: TargetState, now: int, *, acts: bool = True
    ) -> StateChange:
        """Let an alarm of a draft come to a state; another state has its history, and its actions if `acts`."""
        is_transition = target.value != alarm.state.value
        state = State(*target, now, now if is_transition else alarm.state.transitioned_at)
        alarm_after = alarm.with_change(state=state)
        draft.put(ALARMS, alarm.name.key, alarm_after)
        change = StateChange(alarm_after, alarm.state)
        if is_transition:
            draft.put(HISTORY, history_key(alarm.name, now, alarm_after.changes), _item(change))
            if alarm_after.acts and acts:
                await owe_actions_in(draft, self._engine, change)
        return change


def _item(change: StateChange) -> HistoryItem:
    """The entry of the history for a change of state."""
    alarm, before = change.alarm, change.before
    data = {"version": "1.0", "oldState": _state(before), "newState": _state(alarm.state)}
    summary = f"Alarm updated from {before.value} to {alarm.state.value}"
    text = orjson.dumps(data).decode()
    return HistoryItem(alarm.name.name, alarm.kind, alarm.state.updated_at, "StateUpdate", summary, text)


def _state(state: State) -> dict[str, Any]:
    state_members: dict[str, Any] = {"stateValue": state.value, "stateReason": state.reason}
    if state.data is not None:
        state_members["stateReasonData"] = _read(state.data)
    return state_members


def _read(data: str) -> Any:
    """The reason as JSON; as text where a caller of SetAlarmState gave something else."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return data
