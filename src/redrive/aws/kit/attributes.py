"""Attributes as AWS services have them: names and texts on the wire, a resource's fields and kept texts behind.

A service lists its attributes once, in an `AttributeTable`; setting, showing and comparing them follow from the list.
What a service answers to a value that it does not take is a parameter, for each has words of its own.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

_ROLE_ARN: Final = re.compile(r"arn:[a-z-]+:iam::[0-9]{12}:role/.+")
_DIGITS_MAX: Final = 12  # no attribute has a larger number
_PERCENT_MAX: Final = 100


class AttributedResource(Protocol):
    """A frozen dataclass with the attributes that only its facade understands."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes kept as texts, by their names."""
        ...


R = TypeVar("R", bound=AttributedResource)
V = TypeVar("V")

# ---- reading values ------------------------------------------------------------------------------------------


class ValueReader(NamedTuple, Generic[V]):
    """A reader of a value from its text."""

    parse: Callable[[str], V | None]  # Returns the value, or None for a text that is not acceptable
    complaint: str = ""  # Complaint about a wrong value; `{}` is replaced by it


def choice(*words: str) -> ValueReader[str]:
    """One of a few words, kept as it is."""
    return mapped({word: word for word in words})


def mapped(values: Mapping[str, V]) -> ValueReader[V]:
    """The value that a word stands for."""
    return ValueReader(values.get, f"Invalid value [{{}}]. Must be {' or '.join(values)}.")


def whole_number(minimum: int, maximum: int, unit: int = 1) -> ValueReader[int]:
    """Reads a whole number from `minimum` to `maximum`, and returns it times `unit` (1,000: seconds become ms)."""

    def parse(text: str) -> int | None:
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
            return None
        return int(text) * unit if minimum <= int(text) <= maximum else None

    return ValueReader(parse, f"{{}} value provided is not an integer between {minimum}-{maximum}")


TEXT: Final[ValueReader[str]] = ValueReader(str)
BOOLEAN: Final[ValueReader[bool]] = ValueReader(
    lambda text: {"true": True, "false": False}.get(text.lower()),
    "Invalid value [{}]. Must be true or false.",
)
PERCENTAGE: Final[ValueReader[str]] = ValueReader(
    lambda text: None if whole_number(0, _PERCENT_MAX).parse(text) is None else text,
    whole_number(0, _PERCENT_MAX).complaint,
)
ROLE_ARN: Final[ValueReader[str]] = ValueReader(
    lambda text: text if _ROLE_ARN.fullmatch(text) else None,
    "{} is not the ARN of a role",  # chosen
)

# ---- attributes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResourceAttribute(Generic[R]):
    """One attribute of a kind of resource."""

    name: str  # On the wire
    reader: ValueReader[Any] = TEXT  # Reads its values
    # The resource's field that holds the value; None: its text is kept among `AttributedResource.attributes`.
    field: str | None = None
    write: Callable[[Any], str] = str  # Makes the text of a field's value
    default: str | None = None  # The text shown where none is kept; None: it is not shown then
    removable: bool = True  # The empty text takes a kept one away
    applies: Callable[[R], bool] = lambda _: True  # Whether a resource has the attribute at all
    # What is answered where it is set and does not apply; None: as for an unknown attribute.
    inapplicable: Callable[[str], Exception] | None = None
    # Sets it in place of reader and field, where it depends on others or changes them.
    change: Callable[[R, str], R] | None = None
    # Makes its text in place of field and default; None as the text: it is not shown.
    show: Callable[[R], str | None] | None = None

    def value_text(self, resource: R) -> str | None:
        """The value for callers, as text; None if it is not returned."""
        if not self.applies(resource):
            return None
        if self.show is not None:
            return self.show(resource)
        if self.field is not None:
            return self.write(getattr(resource, self.field))
        return resource.attributes.get(self.name, self.default)


class AttributeTable(Generic[R]):
    """All the attributes of a kind of resource that callers set."""

    def __init__(
        self,
        attributes: Sequence[ResourceAttribute[R]],
        *,
        unknown: Callable[[str], Exception],
        refused: Callable[[str, str, str], Exception],
    ) -> None:
        """Hold these attributes.

        Args:
            attributes: In the order in which they are shown.
            unknown: What is answered to the name of no attribute.
            refused: What is answered to a value that is not acceptable: by name, text and the reader's complaint.
        """
        self._attributes = {attribute.name: attribute for attribute in attributes}
        self._unknown = unknown
        self._refused = refused

    @property
    def names(self) -> Iterable[str]:
        """The attributes' names."""
        return self._attributes.keys()

    def complaint(self, name: str, text: str) -> str:
        """The complaint about a value, with its bounds; empty if the attribute has none."""
        attribute = self._attributes.get(name)
        return "" if attribute is None else attribute.reader.complaint.format(text)

    def with_value(self, resource: R, name: str, text: str) -> R:
        """The resource with one attribute set.

        Raises:
            Exception: What the service answers to an unknown attribute or to a value that is not acceptable.
        """
        attribute = self._attributes.get(name)
        if attribute is None:
            raise self._unknown(name)
        if not attribute.applies(resource):
            raise (attribute.inapplicable or self._unknown)(name)
        if attribute.change is not None:
            return attribute.change(resource, text)
        if attribute.field is None and attribute.removable and not text:
            return with_text(resource, name, None)
        value = attribute.reader.parse(text)
        if value is None:
            raise self._refused(name, text, attribute.reader.complaint.format(text))
        if attribute.field is None:
            return with_text(resource, name, value)
        fields: dict[str, Any] = {attribute.field: value}
        return replace(resource, **fields)

    def values_of(self, resource: R) -> dict[str, str]:
        """The texts of all attributes that are shown."""
        texts = {name: attribute.value_text(resource) for name, attribute in self._attributes.items()}
        return {name: text for name, text in texts.items() if text is not None}

    def difference(self, existing: R, other: R, names: Iterable[str]) -> str | None:
        """The first of the given attributes that differs between two resources."""
        for name in names:
            attribute = self._attributes.get(name)
            if attribute is not None and attribute.value_text(existing) != attribute.value_text(other):
                return name
        return None


def with_text(resource: R, name: str, text: str | None) -> R:
    """The resource with a text kept among its attributes, or without it where the text is None."""
    attributes = {key: unchanged for key, unchanged in resource.attributes.items() if key != name}
    if text is not None:
        attributes[name] = text
    return replace(resource, attributes=attributes)
