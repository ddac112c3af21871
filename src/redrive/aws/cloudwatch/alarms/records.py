"""Alarms, their history, and the turn of the node that evaluates them, as documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, ClassVar, Final, NamedTuple, Self

from redrive.engine.ports import DocumentKind, Unremembered
from redrive.model.document import Document
from redrive.model.names import ResourceName

OK: Final = "OK"
ALARM: Final = "ALARM"
INSUFFICIENT_DATA: Final = "INSUFFICIENT_DATA"

METRIC: Final = "MetricAlarm"
COMPOSITE: Final = "CompositeAlarm"

#: The lists of actions, by the state that an alarm comes to.
ACTIONS: Final[Mapping[str, str]] = {
    OK: "OKActions",
    ALARM: "AlarmActions",
    INSUFFICIENT_DATA: "InsufficientDataActions",
}
#: CloudWatch keeps history for 30 days.
HISTORY_KEPT_MS: Final = 30 * 24 * 60 * 60 * 1000
_MOMENTS: Final = 10**15 - 1
_CHANGES: Final = 10**9 - 1
_PLACES: Final = 99

DIALECT: Final = "alarms"  # of the deliveries that actions are
TO_ACTION: Final = "alarms.action"  # what they are pushed to


class State(NamedTuple):
    """The state of an alarm."""

    value: str  # `OK`, `ALARM` or `INSUFFICIENT_DATA`
    reason: str  # For people
    data: str | None  # For programs, JSON; None where whoever set the state gave none
    updated_at: int  # When it was last said (ms)
    transitioned_at: int  # When it last became another (ms)


@dataclass(frozen=True, slots=True)
class Alarm(Document):
    """One alarm."""

    restored: ClassVar = {"name": ResourceName._make, "state": State._make}

    name: ResourceName  # Account, region and name; the name may hold slashes
    kind: str  # METRIC or COMPOSITE
    given: Mapping[str, Any]  # Its definition: the parameters that it was put with, those that were given
    state: State
    defined_at: int  # When it was last put (ms)
    # How often it was put or changed its state: of two changes at one moment it tells which was later.
    changes: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels
    # Of a composite alarm, why its actions wait or are kept back; None: they do not.
    suppression: Mapping[str, Any] | None = None

    @property
    def arn(self) -> str:
        """The alarm's ARN."""
        return arn_of(self.name)

    @property
    def acts(self) -> bool:
        """True if its actions are enabled."""
        return self.given.get("ActionsEnabled") is not False

    def actions(self, state: str) -> list[str]:
        """The ARNs of what it calls when it comes to that state."""
        return list(self.given.get(ACTIONS[state]) or ())

    def with_change(self, **fields: Any) -> Self:
        """The alarm after a change."""
        return replace(self, changes=self.changes + 1, **fields)


class StateChange(NamedTuple):
    """An alarm that came to another state."""

    alarm: Alarm  # As it is now
    before: State  # The state that it left


def arn_of(name: ResourceName) -> str:
    """The ARN of an alarm."""
    return f"arn:aws:cloudwatch:{name.region}:{name.account}:alarm:{name.name}"


@dataclass(frozen=True, slots=True)
class HistoryItem(Document, Unremembered):
    """One thing that happened to an alarm."""

    alarm: str  # The name
    kind: str  # METRIC or COMPOSITE
    at: int  # When (ms)
    type: str  # `ConfigurationUpdate`, `StateUpdate` or `Action`
    summary: str  # For people
    data: str  # JSON


def history_prefix(name: ResourceName) -> str:
    """The beginning of the keys of an alarm's history; a name may hold slashes, so its hash stands for it."""
    digest = blake2b(name.name.encode(), digest_size=12).hexdigest()
    return f"{name.account}/{name.region}/{digest}/"


def history_key(name: ResourceName, at: int, change: int, position: int = 0) -> str:
    """The key of an item of an alarm's history at a moment (ms), the latest first.

    `change` is the number of the change that it tells of or follows from, `position` its place among those.
    """
    numbers = (_MOMENTS - at, 15), (_CHANGES - change, 9), (_PLACES - position, 2)
    return history_prefix(name) + "/".join(f"{number:0{digits}d}" for number, digits in numbers)


def history_at(name: ResourceName, at: int) -> str:
    """The beginning of the keys of an alarm's items of one moment (ms)."""
    return f"{history_prefix(name)}{_MOMENTS - at:015d}/"


def change_of(key: str) -> int:
    """The number of the change that an item of this key tells of or follows from."""
    return _CHANGES - int(key.rsplit("/", 2)[1])


ALARMS: Final = DocumentKind.of("alarm", Alarm)
HISTORY: Final = DocumentKind.of("alarm_history", HistoryItem)


@dataclass(frozen=True, slots=True)
class Turn(Document):
    """The node that evaluates."""

    node: str  # Its name
    until: int  # How long others leave it to that node (ms)


TURN: Final = DocumentKind.of("alarm_turn", Turn)
