"""JSON bodies as documents, of no more values than a service has use for."""

from typing import Final

import orjson

from redrive.aws.wire.errors import common
from redrive.aws.wire.shapes import Value

#: A body that is no longer cannot hold more values than are made of it in a few milliseconds.
_UNCOUNTED_BYTES: Final = 16 * 1024
_QUOTES_PER_VALUE: Final = 4  # around its name and around itself


def load(body: bytes, values_max: int) -> Value:
    """Read a JSON body.

    Raises:
        orjson.JSONDecodeError: It is no JSON.
        AwsError: `SerializationException`: it holds more objects, lists and elements than `values_max`.
    """
    if len(body) > _UNCOUNTED_BYTES and _exceeds(body, values_max):
        raise common("SerializationException", "The request holds too many values")
    return orjson.loads(body)


def _exceeds(body: bytes, most: int) -> bool:
    """True if a JSON document has more objects, lists and elements than that, told before any of them is made.

    Texts may hold brackets and commas of their own, so where there are many the texts are taken out: without escapes,
    every other piece between quotes is one. All of it are searches for bytes, 2 ms for a mebibyte.
    """
    if _marks(body) <= most:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > _QUOTES_PER_VALUE * (most + 1):
        return True
    return _marks(b"".join(unescaped.split(b'"')[::2])) > most


def _marks(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[") + text.count(b",")
