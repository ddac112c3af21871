"""JSON in attributes: read, or refused in the words of the parser that SNS has in its place.

Clients compare these texts. Three complaints of Jackson's were recorded or are its plain rule: a word that is no
JSON, a name without quotes, an end too early. Any other keeps Python's reason, in Jackson's frame.
"""

import json
import re
from collections.abc import Collection
from typing import Any, Final

from redrive.aws.sns.documents.errors import AttributeRefused

_SOURCE: Final = "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
_WORD: Final = re.compile(r"\w+")
_VALUES: Final = "JSON String, Number, Array, Object or token 'null', 'true' or 'false'"


def read_object(attribute: str, text: str, known_names: Collection[str] | None = None) -> dict[str, Any]:
    """The JSON object that an attribute holds, with no other members than `known_names`, if these are passed.

    Raises:
        AttributeRefused: The text is no such object.
    """
    document = read(attribute, text)
    if not isinstance(document, dict):
        raise AttributeRefused(f"{attribute}: must be a JSON object")  # chosen
    for name in sorted(document):
        if known_names is not None and name not in known_names:
            raise AttributeRefused(f"{attribute}: invalid JSON. Attribute {name} is unknown.")
    return document


def read(attribute: str, text: str) -> Any:
    """The JSON value that an attribute holds; raises AttributeRefused if the text is no JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        complaint, line, column = _complaint(text, error)
    except (ValueError, RecursionError) as error:  # a number out of range, or nested a thousand deep
        complaint, line, column = str(error), 1, 1
    raise AttributeRefused(
        f"{attribute}: failed to parse JSON. {complaint}\n"
        f" at [Source: {_SOURCE}; line: {line}, column: {column}]"
    )


def _complaint(text: str, error: json.JSONDecodeError) -> tuple[str, int, int]:
    """Jackson's complaint about a text, and the line and column where it stopped reading."""
    character = text[error.pos : error.pos + 1]
    if not character:
        return "Unexpected end-of-input", error.lineno, error.colno
    if error.msg.startswith("Expecting property name"):
        expected = "double-quote to start field name"
        return (
            f"Unexpected character ('{character}' (code {ord(character)})): was expecting {expected}",
            *_position(error),
        )
    word = _WORD.match(text, error.pos)
    if error.msg == "Expecting value" and word:
        reached = error.colno + len(word[0])
        return f"Unrecognized token '{word[0]}': was expecting ({_VALUES})", error.lineno, reached
    return error.msg, *_position(error)


def _position(error: json.JSONDecodeError) -> tuple[int, int]:
    return error.lineno, error.colno
