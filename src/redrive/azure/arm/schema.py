"""Schemas of documents: each field that is sent has the right form, or is refused by name.

A reader checks one field: it returns the value in the form that is kept, None if the document has none, and raises
`AzureError` for anything else. At the end stand the network rules of a topic, a domain or a namespace, which
`redrive.azure.eventgrid.settings` enforces. What cannot be enforced here is refused, not kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

import orjson

from redrive.azure.eventgrid.settings import ACCESS, DISABLED, MASK, RULES, read_mask
from redrive.azure.wire.answers import AzureError, invalid

#: Of a request, and of what is kept of it and of those before: fields that no schema knows are kept and remembered, too.
#: The longest that can be meant is an event subscription with 25 filters, whose values are 25 texts of 512 characters.
BYTES_MAX: Final = 256 * 1024

Document = Mapping[str, Any]
Reader = Callable[[Document, str], Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field of a document."""

    name: str  # The field's name
    read: Reader  # Checks the field's value
    # The value where a document has none; None: the field may be absent, and is kept as it was sent.
    default: Any = None
    fixed: bool = False  # The field keeps the value that its resource was made with


@dataclass(frozen=True, slots=True)
class DocumentSchema:
    """The fields of a document.

    Fields that no schema knows are kept as they are sent: versions of the interface differ in them, and clients
    compare what they sent with what they read.
    """

    fields: tuple[SchemaField, ...] = ()  # The known fields, in the order in which they are checked
    read_only: frozenset[str] = frozenset()  # Names of fields that are dropped: only the server writes them
    closed: bool = False  # Unknown fields are dropped too

    def accept(self, document: Document, before: Document | None = None) -> dict[str, Any]:
        """The document as it is kept: checked, with the defaults of missing fields, without null values.

        If it replaces another, that one's fixed fields must stay.

        Raises:
            AzureError: A field is not acceptable.
        """
        result = {name: value for name, value in present(document).items() if name not in self.read_only}
        for field in self.fields:
            value = field.read(result, field.name)
            if field.default is not None:
                result[field.name] = field.default if value is None else value
        if self.closed:
            field_names = {field.name for field in self.fields}
            result = {name: value for name, value in result.items() if name in field_names}
        for field in self.fields:
            if field.fixed and before is not None and _differ(result[field.name], before[field.name]):
                raise fixed(field.name, before[field.name])
        return result


def words(*allowed: str) -> Reader:
    """A reader of one of some words."""
    return lambda document, name: one_of(document, name, *allowed)


def whole(least: int, most: int | None) -> Reader:
    """A reader of a whole number within a range."""
    return lambda document, name: number(document, name, least, most)


def nested(schema: DocumentSchema) -> Reader:
    """A reader of a document within."""

    def read(document: Document, name: str) -> dict[str, Any] | None:
        nested_document = part(document, name)
        return None if nested_document is None else schema.accept(nested_document)

    return read


def each(schema: DocumentSchema) -> Reader:
    """A reader of a document whose every field, whatever its name, is a document of the schema's."""

    def read(document: Document, name: str) -> Document | None:
        nested_document = part(document, name) or {}
        for inner in nested_document:
            schema.accept(part(nested_document, inner) or {})
        return nested_document or None

    return read


def anything(document: Document, name: str) -> Any:
    """A reader that refuses nothing."""
    return document.get(name)


def text(document: Document, name: str) -> str | None:
    """A text."""
    return _read_typed(document, name, str, "a text")


def one_of(document: Document, name: str, *allowed: str) -> str | None:
    """One of some words, spelt as they are here whatever the case it came in; None: it is missing."""
    value = text(document, name)
    if value is None:
        return None
    for word in allowed:
        if word.lower() == value.lower():
            return word
    raise invalid(f"The property '{name}' is '{value}'; it must be one of {', '.join(allowed)}.")


def number(document: Document, name: str, least: int, most: int | None) -> int | None:
    """A whole number within a range; None: it is missing. `most` None: there is no upper bound."""
    value = document.get(name)
    if value is None:
        return None
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    if not is_whole or value < least or (most is not None and value > most):
        range_text = f"between {least} and {most}" if most is not None else f"of {least} or more"
        raise invalid(f"The property '{name}' is '{value}'; it must be a number {range_text}.")
    return int(value)


def flag(document: Document, name: str) -> bool | None:
    """True or false."""
    return _read_typed(document, name, bool, "true or false")


def part(document: Document, name: str) -> Document | None:
    """A document within."""
    return _read_typed(document, name, dict, "an object")


def items(document: Document, name: str) -> list[Any] | None:
    """A list."""
    return _read_typed(document, name, list, "a list")


def texts(document: Document, name: str) -> list[str] | None:
    """A list of texts."""
    values = items(document, name)
    if values is not None and not all(isinstance(item, str) for item in values):
        raise invalid(f"The property '{name}' must be a list of strings.")
    return values


def merge(before: Document, change: Document) -> dict[str, Any]:
    """A document with a PATCH applied: fields that are null there go, documents within are merged likewise.

    The rule is RFC 7396's.
    """
    remaining = {
        name: value for name, value in before.items() if name not in change or change[name] is not None
    }
    for name, value in change.items():
        if isinstance(value, dict):
            inner = remaining.get(name)
            remaining[name] = merge(inner if isinstance(inner, dict) else {}, value)
        elif value is not None:
            remaining[name] = value
    return remaining


def stored_text(document: Document) -> str:
    """The JSON of a document as it is kept; raises AzureError if it is too long."""
    content = orjson.dumps(document)
    check_bytes(len(content))
    return content.decode()


def check_bytes(size: int) -> None:
    """Refuse a document that is too long; raises AzureError."""
    if size > BYTES_MAX:
        message = f"The resource has {size} bytes; {BYTES_MAX} are the most."
        raise AzureError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", message)


def present(document: Document) -> dict[str, Any]:
    """The fields that have a value: clients write null for what they leave out."""
    return {name: value for name, value in document.items() if value is not None}


def fixed(name: str, value: str) -> AzureError:
    """The refusal to change a field that keeps its first value."""
    return invalid(f"The property '{name}' is '{value}' and cannot be changed.")


def _differ(value: str, before: str) -> bool:
    return value.lower() != before.lower()


def _read_typed(document: Document, name: str, form: type[T], description: str) -> T | None:
    value = document.get(name)
    if value is not None and not isinstance(value, form):
        raise invalid(f"The property '{name}' must be {description}.")
    return value


RULES_MAX: Final = 128
_PERIMETER: Final = "SecuredByPerimeter"


def _rules(document: Document, name: str) -> list[Any] | None:
    """The rules about addresses, each checked; None: they are missing."""
    rules = items(document, name)
    if rules is not None and len(rules) > RULES_MAX:
        raise invalid(f"There are {len(rules)} {name}; {RULES_MAX} are allowed.")
    for rule in rules or ():
        _check_rule(rule)
    return rules


def _check_rule(rule: object) -> None:
    """Check that a rule allows addresses by a mask that can be read; raises AzureError."""
    mask = text(rule, MASK) if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or not mask:
        raise invalid(f"Each of the {RULES} must have an {MASK}.")
    try:
        read_mask(mask)
    except ValueError:
        raise invalid(f"The {MASK} '{mask}' is neither an IP address nor a range in CIDR notation.") from None
    one_of(rule, "action", "Allow")


def _access(document: Document, name: str) -> str | None:
    access = one_of(document, name, "Enabled", DISABLED, _PERIMETER)
    if access == _PERIMETER:
        raise invalid("Network security perimeters are not offered.", "FeatureNotSupported")
    return access


# Azure lets callers ask for these versions; connections of this server, either way, have TLS 1.2 at least.
TLS: Final = SchemaField("minimumTlsVersionAllowed", words("1.0", "1.1", "1.2"))
NETWORK: Final = (TLS, SchemaField(RULES, _rules), SchemaField(ACCESS, _access, default="Enabled"))
