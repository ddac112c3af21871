"""Filters on events: the `filter` of an Event Grid subscription, on an event of any schema.

    {"includedEventTypes": ["Order.Placed"], "subjectBeginsWith": "/orders/", "subjectEndsWith": ".json",
     "isSubjectCaseSensitive": false, "enableAdvancedFilteringOnArrays": true,
     "advancedFilters": [{"operatorType": "NumberIn", "key": "data.size", "values": [1, 2]}]}

All parts have to hold; within an advanced filter one of its values. What a key names is looked for as it is spelt
and then without regard to case, `data.x` within `data`. A key of a CloudEvent may also be called as in the other
schema. Filters decide by the event alone, so a filter is compiled once for its text; what a key names is looked for once
for all filters that ask (`Event`), and each filter has its share of the steps that an event may take (`Budget`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from redrive.model.budget import Budget, MessageBudget, weight
from redrive.model.filtering.event_operators import Comparison, EventFilterInvalid, read_comparison
from redrive.model.memo import remembered

ADVANCED_MAX: Final = 25  # filters, and values of all of them together
TEXT_CHARS_MAX: Final = 512
_EVERYTHING: Final = "All"
_PRESENCE: Final = {"isnullorundefined": False, "isnotnull": True}
_CLOUD_EVENT_NAMES: Final = {"eventtype": "type", "eventid": "id", "eventtypeversion": "dataversion"}

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Advanced:
    """One advanced filter."""

    path: tuple[str, ...]  # The names that lead to the value
    comparison: Comparison | bool  # Test of the value; a boolean: whether the key must exist
    operands: int = 1  # How many values it is compared with

    def matches(self, event: "Event", budget: Budget, *, arrays: bool) -> bool:
        """True if an event passes; `arrays`: a value of an array is enough, otherwise no array passes."""
        value = event.value_at(self.path)
        if isinstance(self.comparison, bool):  # whether there must be a value
            return (value is not None) is self.comparison
        if value is None:
            return self.comparison.passes_without
        budget.spend(self.operands * event.weight(self.path))
        if isinstance(value, list):
            return arrays and self.comparison.accepts_any(value)
        if self.comparison.accepts(value):
            return True
        attribute = _attribute_text(event.document, self.path, value)
        return attribute is not None and self.comparison.accepts(attribute)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """A compiled filter."""

    types: frozenset[str] = frozenset()  # The event types that pass; empty: all
    begins: str = ""  # Required prefix of the subject
    ends: str = ""  # Required suffix of the subject
    case_sensitive: bool = False  # Whether subjects are compared with regard to case
    advanced: tuple[_Advanced, ...] = field(default_factory=tuple)  # All of them have to hold
    arrays: bool = False  # Whether advanced filters look into arrays

    def matches(self, document: Document) -> bool:
        """True if an event passes: see `evaluate`."""
        return self.evaluate(Event(document), MessageBudget())[0]

    def evaluate(self, event: "Event", budget: Budget) -> tuple[bool, int]:
        """True if an event passes, and how many advanced filters were asked for that.

        Raises:
            OverBudgetError: It takes more than the budget has left.
        """
        document = event.document
        if self.types and document.get("eventType", document.get("type")) not in self.types:
            return False, 0
        if (self.begins or self.ends) and not self._matches_subject(document.get("subject")):
            return False, 0
        for number, advanced in enumerate(self.advanced, start=1):
            if not advanced.matches(event, budget, arrays=self.arrays):
                return False, number
        return True, len(self.advanced)

    def _matches_subject(self, subject: object) -> bool:
        if not isinstance(subject, str):
            return False
        text = subject if self.case_sensitive else subject.lower()
        return text.startswith(self.begins) and text.endswith(self.ends)


@remembered(entries_max=4096, chars_max=4096)
def read_event_filter(text: str) -> EventFilter:
    """Compile a filter from JSON, as in the module's description.

    Raises:
        EventFilterInvalid: It asks for something that there is not, or for more than the limits allow.
    """
    members = json.loads(text)
    case_sensitive = bool(members.get("isSubjectCaseSensitive"))
    begins, ends = members.get("subjectBeginsWith") or "", members.get("subjectEndsWith") or ""
    return EventFilter(
        types=frozenset(members.get("includedEventTypes") or ()) - {_EVERYTHING},
        begins=begins if case_sensitive else begins.lower(),
        ends=ends if case_sensitive else ends.lower(),
        case_sensitive=case_sensitive,
        advanced=_advanced(members.get("advancedFilters") or ()),
        arrays=bool(members.get("enableAdvancedFilteringOnArrays")),
    )


def _advanced(filters: Sequence[Mapping[str, Any]]) -> tuple[_Advanced, ...]:
    """Read advanced filters within the published limits: 25 filters, 25 values of all together, 512 characters."""
    if len(filters) > ADVANCED_MAX:
        raise EventFilterInvalid(f"There may be {ADVANCED_MAX} advanced filters, not {len(filters)}")
    # Values that are no list are refused later, by operator.
    lists = [each["values"] for each in filters if isinstance(each.get("values"), list)]
    values = [value for entry in lists for value in entry]
    if len(values) > ADVANCED_MAX:
        raise EventFilterInvalid(
            f"Advanced filters may have {ADVANCED_MAX} values together, not {len(values)}"
        )
    if any(isinstance(value, str) and len(value) > TEXT_CHARS_MAX for value in values):
        raise EventFilterInvalid(f"A value may have {TEXT_CHARS_MAX} characters")
    return tuple(_read_advanced(each) for each in filters)


def _read_advanced(members: Mapping[str, Any]) -> _Advanced:
    """Read one advanced filter; a dot in its key leads into an object."""
    key, operator = members.get("key"), members.get("operatorType")
    if not isinstance(key, str) or not key or not isinstance(operator, str):
        raise EventFilterInvalid("An advanced filter needs a key and an operatorType")
    path = tuple(key.split("."))
    presence = _PRESENCE.get(operator.lower())
    comparison = read_comparison(operator, members) if presence is None else presence
    return _Advanced(path, comparison, len(members.get("values") or ()) or 1)


# ---- what a key names --------------------------------------------------------------------------------------------


class Event:
    """An event, prepared for many filters.

    Attributes:
        document: The event. What has a schema of its own brings `eventType` and `subject` besides.
    """

    __slots__ = ("_lower", "_values", "_weights", "document")

    def __init__(self, document: Document) -> None:
        self.document = document
        self._values: dict[tuple[str, ...], object] = {}
        self._lower: dict[int, dict[str, object]] = {}
        self._weights: dict[tuple[str, ...], int] = {}

    def value_at(self, path: tuple[str, ...]) -> object:
        """The value at the end of a path; None if there is none, as where it is null."""
        if path not in self._values:
            self._values[path] = self._look_for(path)
        return self._values[path]

    def weight(self, path: tuple[str, ...]) -> int:
        """The steps of looking once at what is at the end of a path."""
        if path not in self._weights:
            value = self.value_at(path)
            self._weights[path] = sum(map(weight, value)) if isinstance(value, list) else weight(value)
        return self._weights[path]

    def _look_for(self, path: tuple[str, ...]) -> object:
        """The value at a path; CloudEvents have other names for some members of an event."""
        value = self._member(self.document, path[0])
        if value is None and "specversion" in self.document:
            value = self.document.get(_CLOUD_EVENT_NAMES.get(path[0].lower(), ""))
        for name in path[1:]:
            value = self._member(value, name) if isinstance(value, Mapping) else None
        return value

    def _member(self, document: Document, name: str) -> object:
        """A member by its name, in any case if there is none with this very name."""
        if name in document:
            return document[name]
        lower = self._lower.get(id(document))
        if lower is None:
            lower = self._lower[id(document)] = {}
            for key, value in document.items():
                lower.setdefault(key.lower(), value)
        return lower.get(name.lower())


def _attribute_text(document: Document, path: Sequence[str], value: object) -> str | None:
    """A CloudEvent's attribute that is a number or a boolean, as a header would carry it.

    `StringBeginsWith` on an extension whose value is 5 is the documentation's own example.
    """
    if len(path) > 1 or "specversion" not in document or not isinstance(value, int | float):
        return None
    return json.dumps(value)
