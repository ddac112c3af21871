"""The constraints a service model states, compiled into one closure per shape."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from redrive.aws.wire.shapes import SCALARS, Member, Shape, Structure, Value
from redrive.aws.wire.violations import Violation, ViolationKind, phrase

#: Longer strings than this are matched against no pattern unless the model bounds their length: the published
#: patterns were not written with a backtracking engine and a megabyte of hostile input in mind.
_PATTERN_LENGTH_MAX: Final = 4096
#: A string that is too long is matched besides, up to this length: the services tell of both (recorded).
_TOO_LONG_MATCHED_MAX: Final = 512


class Spelling(Protocol):
    """A service's spelling of the path to a value."""

    def member(self, member: Member) -> str:
        """Return the step into a structure's member."""

    def element(self, index: int) -> str:
        """Return the step into a list's element, counted from 1."""

    def entry(self, key: str, index: int) -> str:
        """Return the step into a map's value; `index` counts from 1."""


class CoralSpelling:
    """`publishBatchRequestEntries.1.member.messageAttributes.attr1.member.dataType`."""

    def member(self, member: Member) -> str:
        """Return the name with its first letter in lower case."""
        return member.name[:1].lower() + member.name[1:]

    def element(self, index: int) -> str:
        """Return the index and the word `member`."""
        return f"{index}.member"

    def entry(self, key: str, index: int) -> str:  # noqa: ARG002 - the other spelling needs it
        """Return the key and the word `member`."""
        return f"{key}.member"


class FlattenedSpelling:
    """`SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType`: the names of a flattened request."""

    def member(self, member: Member) -> str:
        """Return the name in a query request."""
        return member.query_key

    def element(self, index: int) -> str:
        """Return the index."""
        return str(index)

    def entry(self, key: str, index: int) -> str:  # noqa: ARG002 - the other spelling needs it
        """Return the index and the word `Value`."""
        return f"{index}.Value"


_VIOLATIONS_MAX: Final = 1_000  # of a request: a text about a million of them has 100 MB
#: The path to a value: a text, or the path to what it stands in with the step from there, or with what spells the step.
#: It is spelled where something is wrong alone: for ten good messages that took a quarter of the time of all checks.
_Path: TypeAlias = str | tuple[Any, ...]
Checker = Callable[[Value, _Path, list[Violation]], None]


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: ViolationKind
    bound: float | str | tuple[str, ...]
    holds: Callable[[Value], bool]


class Checks:
    """Compiles shapes into checkers, for the kinds of constraint a service lets its model decide."""

    __slots__ = ("_kinds", "_spelling")

    def __init__(self, kinds: frozenset[ViolationKind], spelling: Spelling) -> None:
        self._kinds = kinds
        self._spelling = spelling

    def violations(self, shape: Shape, path: str = "") -> Callable[[Structure], Sequence[Violation]]:
        """Return the function that lists what is wrong with a structure of `shape`, which stands at `path`."""
        check = self._structure_checker(shape)

        def list_violations(structure: Structure) -> Sequence[Violation]:
            violations: list[Violation] = []
            check(structure, path, violations)
            return violations

        return list_violations

    def _checker(self, shape: Shape) -> Checker | None:
        """A function that finds violations in values of a shape; None: there is nothing to find."""
        match shape.type:
            case "structure":
                return self._structure_checker(shape)
            case "list":
                return self._with_own_rules(shape, self._elements_checker(shape))
            case "map":
                return self._with_own_rules(shape, self._entries_checker(shape))
            case _:
                return self._with_own_rules(shape, None)

    def _structure_checker(self, shape: Shape) -> Checker:
        """A checker for the required members, and of the members that have checkers themselves."""
        spell = self._spelling.member
        required = [
            (name, spell(shape.members[name]))
            for name in shape.required
            if ViolationKind.REQUIRED in self._kinds
        ]
        required_names = {name for name, _ in required}
        checkers: dict[str, tuple[str, Checker]] | None = None

        def check(value: Value, path: _Path, violations: list[Violation]) -> None:
            nonlocal checkers
            if checkers is None:  # compiled at first use: a shape may contain itself
                checkers = self._member_checkers(shape)
            # Nearly every structure has all that it needs and nothing to look into, which sets tell at once.
            if not value.keys() >= required_names:
                missing = [step for name, step in required if name not in value]
                violations.extend(
                    Violation(_path_text((path, step)), ViolationKind.REQUIRED, None, None)
                    for step in missing
                )
            if checkers.keys().isdisjoint(value):
                return
            for name, (step, inspect) in checkers.items():
                item = value.get(name)
                if item is not None:
                    inspect(item, (path, step), violations)

        return check

    def _member_checkers(self, shape: Shape) -> dict[str, tuple[str, Checker]]:
        """The spelling and the checker of each member that has one, by the member's name."""
        checkers = [(member, self._checker(member.shape)) for member in shape.members.values()]
        return {
            member.name: (self._spelling.member(member), checker)
            for member, checker in checkers
            if checker is not None
        }

    def _with_own_rules(self, shape: Shape, contents: Checker | None) -> Checker | None:
        """Check a value by the rules of its shape, then its contents; None: there is nothing to check."""
        rules = self._rules(shape)
        if not rules:
            return contents

        def check(value: Value, path: _Path, violations: list[Violation]) -> None:
            violations.extend(
                Violation(_path_text(path), rule.kind, value, rule.bound)
                for rule in rules
                if not rule.holds(value)
            )
            if contents is not None:
                contents(value, path, violations)

        return check

    def _elements_checker(self, shape: Shape) -> Checker | None:
        """A checker of each element of a list; None: there is nothing to check."""
        if shape.element.shape.type in SCALARS:
            return self._scalars_checker(shape, shape.element.shape, ViolationKind.ELEMENTS, list)
        inspect, step = self._checker(shape.element.shape), self._spelling.element
        if inspect is None:
            return None

        def check(value: Value, path: _Path, violations: list[Violation]) -> None:
            for index, element in enumerate(value, 1):
                inspect(element, (path, step, index), violations)
                if len(violations) >= _VIOLATIONS_MAX:
                    return

        return check

    def _entries_checker(self, shape: Shape) -> Checker | None:
        """A checker of the keys and the values of a map; None: there is nothing to check."""
        keys = self._scalars_checker(shape, shape.key.shape, ViolationKind.KEYS, list)
        if shape.value.shape.type in SCALARS:
            values = self._scalars_checker(shape, shape.value.shape, ViolationKind.VALUES, dict.values)
            return _both(keys, values)
        inspect, step = self._checker(shape.value.shape), self._spelling.entry
        if inspect is None:
            return keys

        def check(value: Value, path: _Path, violations: list[Violation]) -> None:
            for index, (key, item) in enumerate(value.items(), 1):
                inspect(item, (path, step, key, index), violations)
                if len(violations) >= _VIOLATIONS_MAX:
                    return

        return _both(keys, check)

    def _scalars_checker(
        self, collection: Shape, shape: Shape, kind: ViolationKind, items_of: Callable[[Value], Value]
    ) -> Checker | None:
        """Check that a collection's scalars, all of one shape, keep its rules; one violation stands for all of them."""
        rules = self._rules(shape)
        if not rules:
            return None
        phrases = tuple(phrase(rule.kind, rule.bound) for rule in rules)
        if collection.names_null:
            phrases += (ViolationKind.REQUIRED.value,)

        def check(value: Value, path: _Path, violations: list[Violation]) -> None:
            if not all(rule.holds(item) for item in items_of(value) for rule in rules):
                violations.append(Violation(_path_text(path), kind, value, phrases))

        return check

    def _rules(self, shape: Shape) -> list[_Rule]:
        rules = [*_enum_rules(shape), *_bound_rules(shape), *_pattern_rules(shape)]
        return [rule for rule in rules if rule.kind in self._kinds]


def _path_text(path: _Path) -> str:
    """A path as text. It is nested pairs of the path before and a step; a callable step makes text of what follows."""
    steps: list[str] = []
    while not isinstance(path, str):
        path, step, *arguments = path
        steps.append(step(*arguments) if arguments else step)
    return ".".join([path, *reversed(steps)] if path else reversed(steps))


def _both(first: Checker | None, second: Checker | None) -> Checker | None:
    """A checker that does the work of two."""
    if first is None or second is None:
        return first or second

    def check(value: Value, path: _Path, violations: list[Violation]) -> None:
        first(value, path, violations)
        second(value, path, violations)

    return check


def _enum_rules(shape: Shape) -> list[_Rule]:
    values = frozenset(shape.enum)
    return [_Rule(ViolationKind.ENUM, shape.enum, values.__contains__)] if values else []


def _bound_rules(shape: Shape) -> list[_Rule]:
    if shape.type in {"integer", "long", "float", "double"}:
        return _limit_rules(shape, ViolationKind.VALUE_MAX, ViolationKind.VALUE_MIN, float)
    return _limit_rules(shape, ViolationKind.LENGTH_MAX, ViolationKind.LENGTH_MIN, len)


def _limit_rules(
    shape: Shape, max_kind: ViolationKind, min_kind: ViolationKind, measure: Callable[[Value], float]
) -> list[_Rule]:
    rules = []
    if (upper := shape.most) is not None:
        rules.append(_Rule(max_kind, upper, lambda value: measure(value) <= upper))
    if (lower := shape.least) is not None:
        rules.append(_Rule(min_kind, lower, lambda value: measure(value) >= lower))
    return rules


#: Java's classes of letters, digits and blanks, in a class that has the underscore besides, as those of tags do.
_CLASSES: Final = {
    r"\p{L}": r"\w",
    r"\p{N}": r"\w",
    r"\p{Z}": " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
}


def _compile(pattern: str) -> re.Pattern[str]:
    """Python's form of a pattern of Java's."""
    if not all(name in pattern for name in _CLASSES) or "_" not in pattern:
        return re.compile(pattern, re.ASCII)  # Java's \w, \d and \s are ASCII unless told
    for name, characters in _CLASSES.items():
        pattern = pattern.replace(name, characters)
    return re.compile(pattern)


def _pattern_rules(shape: Shape) -> list[_Rule]:
    """The rule of a shape's pattern, if it has one that Python can read."""
    if shape.pattern is None:
        return []
    try:
        match = _compile(shape.pattern).fullmatch
    except re.error:  # Unicode classes such as \p{M}: Python has none, so the facade must look
        return []
    # A longer text is not matched, and so breaks no pattern.
    length_max = _PATTERN_LENGTH_MAX if shape.most is None else max(int(shape.most), _TOO_LONG_MATCHED_MAX)
    return [
        _Rule(
            ViolationKind.PATTERN,
            shape.pattern,
            lambda text: len(text) > length_max or match(text) is not None,
        )
    ]
