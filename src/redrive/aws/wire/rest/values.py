"""Values of REST requests outside of their bodies: in the path, the query and the headers."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs

from redrive.aws.wire import timestamps
from redrive.aws.wire.errors import common
from redrive.aws.wire.shapes import Shape, Value

_FIELDS_MAX: Final = 100  # in a query; no operation has more than forty
_TRUTHS: Final = {"true": True, "false": False}


def query_of(query: str) -> Mapping[str, list[str]]:
    """Return the parameters of a query; raises AwsError (`SerializationException`: they are too many)."""
    try:
        return parse_qs(query, keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError as error:  # too many fields
        raise common("SerializationException") from error


def value_of(shape: Shape, texts: list[str]) -> Value:
    """Return a value that stands as text in a path, a query or a header.

    Raises:
        AwsError: `SerializationException`.
    """
    try:
        match shape.type:
            case "list":
                return [value_of(shape.element.shape, [text]) for text in texts]
            case "integer" | "long":
                return int(texts[-1])
            case "float" | "double":
                return float(texts[-1])
            case "boolean":
                return _TRUTHS[texts[-1].lower()]
            case "timestamp":
                return timestamps.from_text(texts[-1])
            case _:
                return texts[-1]
    except (KeyError, ValueError) as error:
        raise common("SerializationException", f"{texts[-1]} can not be converted") from error
