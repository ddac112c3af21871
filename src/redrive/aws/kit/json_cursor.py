"""A JSON document read member by member: each object knows where it stands, and its reader how a fault is told.

Also whether a text is a JSON object, and how deep a document is nested, whatever it was read from.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, Self

import orjson


class FaultTexts(NamedTuple):
    """The texts of a reader for members that are not acceptable; a member's path stands before each."""

    between: str = "."  # Separator between the names of a path
    unknown: str = "is not a recognized attribute"  # Complaint about an unknown member
    not_object: str = "must be a JSON object"  # Complaint about a value that is not an object
    not_text: str = "must be a string"  # Complaint about a value that is not a string


@dataclass(frozen=True, slots=True)
class JsonCursor:
    """One object of a document."""

    members: Mapping[str, Any]
    refusal: Callable[[str], Exception]  # Makes the reader's error of what is wrong with the document
    words: FaultTexts  # The reader's words
    path: tuple[str, ...] = ()  # The names of the members that lead to the object, from the root's

    def refuse(self, name: str, rule: str) -> NoReturn:
        """Refuse the document for a member that breaks a rule; without a name, for this object.

        Raises:
            Exception: The reader's.
        """
        path = self.words.between.join((*self.path, name) if name else self.path)
        raise self.refusal(f"{path} {rule}".lstrip())

    def at(self, name: str, value: object, rule: str = "") -> Self:
        """A value below this object, in a member of that name, which must be an object itself.

        Raises:
            Exception: The reader's, by its words or by `rule`: it is not an object.
        """
        if not isinstance(value, dict):
            self.refuse(name, rule or self.words.not_object)
        return replace(self, members=value, path=(*self.path, name))

    def object(self, name: str, rule: str = "") -> Self:
        """The object that a member must hold; see `at`."""
        return self.at(name, self.members.get(name), rule)

    def only(self, known: Collection[str]) -> None:
        """Refuse members of other names: a misspelt one would otherwise silently be a default.

        Raises:
            Exception: The reader's.
        """
        for name in sorted(self.members):
            if name not in known:
                self.refuse(name, self.words.unknown)

    def text(self, name: str, *, empty: bool = True) -> str:
        """The text of a member, which may be empty or not.

        Raises:
            Exception: The reader's: there is no such text.
        """
        value = self.members.get(name)
        if not isinstance(value, str) or not (value or empty):
            self.refuse(name, self.words.not_text)
        return value

    def texts(self, name: str) -> Sequence[str]:
        """The texts of a member, at least one.

        Raises:
            Exception: The reader's: it is not such a list.
        """
        values = self.members.get(name)
        if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
            self.refuse(name, "must be a list of strings that is not empty")
        return values

    def flag(self, name: str) -> bool:
        """The truth of a member; false where it is left out.

        Raises:
            Exception: The reader's: it is neither true nor false.
        """
        value = self.members.get(name, False)
        if not isinstance(value, bool):
            self.refuse(name, "must be either true or false")
        return value

    def integer(self, name: str, least: int, most: int | None = None) -> int | None:
        """The whole number of a member, within a range; None if it is left out.

        Raises:
            Exception: The reader's: it is no such number.
        """
        value = self.members.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(name, "must be an integer")
        if value < least:
            self.refuse(name, f"must be greater than or equal to {least}")
        if most is not None and value > most:
            self.refuse(name, f"must be less than or equal to {most}")
        return value


def read_object(text: str | bytes) -> dict[str, Any] | None:
    """The object that a text is in JSON; None if it is no JSON, or another value."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def is_nested_deeper(document: Any, levels_max: int) -> bool:
    """True if a document has more levels of objects and lists than `levels_max`; counted without recursion.

    Args:
        document: As JSON and YAML are read; a document that is not an object and no list has one level.
        levels_max: The number of levels that are allowed.
    """
    level, depth = [document], 0
    while level and depth <= levels_max:
        level = [child for value in level for child in children_of(value)]
        depth += 1
    return depth > levels_max


def as_list(value: Any) -> list[Any]:
    """A list as it is, another value as a list of it alone: documents write a single entry without brackets."""
    return value if isinstance(value, list) else [value]


def children_of(value: Any) -> list[Any]:
    """The values in an object or a list; a value of another kind has none."""
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []
