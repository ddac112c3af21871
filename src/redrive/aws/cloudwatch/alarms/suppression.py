"""Suppression: while another alarm is in ALARM, a composite alarm keeps its actions back.

It waits for the other for a while before it acts, and for a while after the other ended. An action that is kept back is
taken in the end if the alarm's state still is another than the last that was told. Source: CloudWatch user guide,
"Composite alarm action suppression". Periods end at the evaluation after them.
"""

from typing import Final, NamedTuple

from redrive.aws.cloudwatch.alarms.records import ALARM

BY_ALARM: Final = "Alarm"
BY_WAIT: Final = "WaitPeriod"
BY_EXTENSION: Final = "ExtensionPeriod"


class Suppression(NamedTuple):
    """The reason why a composite alarm keeps its actions back."""

    by: str  # BY_ALARM, BY_WAIT or BY_EXTENSION
    told: str  # The state that was announced last
    until: int | None = None  # When the period ends (ms); None: with the other alarm


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
    """The next suppression.

    Args:
        current: Until now.
        before: The alarm's state until now.
        state: The alarm's state from now on.
        suppressor: The other alarm.
        now: When (ms).
    """
    if current is None:
        return _first(before, state, suppressor, now) if state != before else Next(None, acts=False)
    if suppressor.on:
        return Next(Suppression(BY_ALARM, current.told), acts=False)
    if current.by == BY_ALARM and suppressor.extension_ms:
        return Next(Suppression(BY_EXTENSION, current.told, now + suppressor.extension_ms), acts=False)
    waits_in_vain = current.by == BY_WAIT and state == current.told
    if not waits_in_vain and current.until is not None and now < current.until:
        return Next(current, acts=False)
    return Next(None, acts=state != current.told)


def _first(before: str, state: str, suppressor: Suppressor, now: int) -> Next:
    if suppressor.on:
        return Next(Suppression(BY_ALARM, before), acts=False)
    if state == ALARM and suppressor.wait_ms:
        return Next(Suppression(BY_WAIT, before, now + suppressor.wait_ms), acts=False)
    return Next(None, acts=True)
