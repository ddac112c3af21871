"""The `filter` of an event subscription, checked as the service checks it."""

from typing import Any, Final

import orjson

from redrive.azure.arm import schema
from redrive.azure.arm.schema import Document
from redrive.azure.wire.errors import invalid
from redrive.model.filtering import EventFilterInvalid, read_event_filter

SUBJECT_CHARS_MAX: Final = 512
_DECIDES: Final = ("subjectBeginsWith", "subjectEndsWith", "includedEventTypes", "advancedFilters")


def accepted_filter(given: Document | None) -> dict[str, Any]:
    """A filter as it is kept, with the defaults of what is missing.

    Raises:
        AzureError: It asks for something that there is not, or for more than the limits allow.
    """
    said = schema.present(given or {})
    for name in ("subjectBeginsWith", "subjectEndsWith"):
        if len(schema.text(said, name) or "") > SUBJECT_CHARS_MAX:
            raise invalid(f"The property '{name}' may have {SUBJECT_CHARS_MAX} characters.")
    schema.texts(said, "includedEventTypes")
    for name in ("isSubjectCaseSensitive", "enableAdvancedFilteringOnArrays"):
        schema.flag(said, name)
    if not all(isinstance(each, dict) for each in schema.items(said, "advancedFilters") or ()):
        raise invalid("The property 'advancedFilters' must be a list of objects.")
    try:
        read_event_filter(orjson.dumps(said).decode())
    except EventFilterInvalid as refusal:
        raise invalid(f"{refusal}.") from None
    return {"subjectBeginsWith": "", "subjectEndsWith": "", **said}


def filter_text(kept: Document) -> str | None:
    """The filter's text for the engine; None where everything passes."""
    return orjson.dumps(kept).decode() if any(kept.get(name) for name in _DECIDES) else None
