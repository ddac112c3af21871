"""The `filter` of an event subscription, checked as the service checks it."""

from typing import Any, Final

import orjson

from redrive.azure.arm import schema
from redrive.azure.arm.schema import Document
from redrive.azure.wire.errors import invalid
from redrive.model.filtering import EventFilterInvalid, read_event_filter

SUBJECT_CHARS_MAX: Final = 512
_DECIDES: Final = ("subjectBeginsWith", "subjectEndsWith", "includedEventTypes", "advancedFilters")


def accepted_filter(document: Document | None) -> dict[str, Any]:
    """A filter as it is kept, with the defaults of what is missing.

    Raises:
        AzureError: It asks for something that there is not, or for more than the limits allow.
    """
    event_filter = schema.present(document or {})
    for name in ("subjectBeginsWith", "subjectEndsWith"):
        if len(schema.text(event_filter, name) or "") > SUBJECT_CHARS_MAX:
            raise invalid(f"The property '{name}' may have {SUBJECT_CHARS_MAX} characters.")
    schema.texts(event_filter, "includedEventTypes")
    for name in ("isSubjectCaseSensitive", "enableAdvancedFilteringOnArrays"):
        schema.flag(event_filter, name)
    if not all(isinstance(each, dict) for each in schema.items(event_filter, "advancedFilters") or ()):
        raise invalid("The property 'advancedFilters' must be a list of objects.")
    try:
        read_event_filter(orjson.dumps(event_filter).decode())
    except EventFilterInvalid as refusal:
        raise invalid(f"{refusal}.") from None
    return {"subjectBeginsWith": "", "subjectEndsWith": "", **event_filter}


def filter_text(document: Document) -> str | None:
    """The filter's text for the engine; None where everything passes."""
    return orjson.dumps(document).decode() if any(document.get(name) for name in _DECIDES) else None
