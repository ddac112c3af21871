"""CBOR (RFC 8949) by cbor2, as far as Smithy RPC v2 needs it: tags stay tags, and nesting has an end."""

from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from itertools import count
from typing import Any, Final

from cbor2 import CBORDecodeEOF, CBORDecoder, CBORError, CBORTag, dumps

from redrive.aws.wire.shapes import Value

EPOCH_SECONDS: Final = 1  # the tag of a point in time

# The deepest input of CloudWatch's model has eight levels; members it does not know may have more.
_DEPTH_MAX: Final = 64

# A metric may have 30 dimensions and PutMetricData a thousand metrics; 950,000 tags or maps in a mebibyte take 0.4 s.
_ITEMS_MAX: Final = 50_000
#: No more items fit into so many bytes than are read in a few milliseconds.
_UNCOUNTED_BYTES: Final = 16 * 1024
#: No hook sees arrays: 950,000 empty ones take 160 ms. A mebibyte of Chinese has 360,000 bytes that could begin one.
_ARRAY_BYTES: Final = bytes(range(0x80, 0xA0))
_ARRAYS_MAX: Final = 400_000

# Tags that cbor2 makes something of: numbers of any size, regular expressions, mails, references to other items. Smithy
# uses none of it, and with some of it a few bytes cost much.
_TAGS_READ: Final = (
    *(0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43_000, 55_799),
)


class MalformedCbor(ValueError):  # noqa: N818 - an answer, like the errors of the model
    """The bytes are not one item, or not one that Smithy has a use for."""


def decode(content: bytes) -> Value:
    """Read one item that takes all the bytes; a tagged item is a `cbor2.CBORTag`.

    Raises:
        MalformedCbor: The content is not such an item, is nested too deeply, or holds too many maps and tags.
    """
    is_large = len(content) > _UNCOUNTED_BYTES
    if is_large:
        other_bytes = content.translate(None, _ARRAY_BYTES)  # those that begin no array
        if len(content) - len(other_bytes) > _ARRAYS_MAX:
            raise MalformedCbor("the request holds too many values")
    decoder = CBORDecoder(
        BytesIO(content),
        max_depth=_DEPTH_MAX,
        **(_counting_hooks() if is_large else _HOOKS),
    )
    try:
        item = decoder.decode()
    except CBORError as error:
        raise MalformedCbor(str(error)) from error
    try:
        decoder.read(1)
    except CBORDecodeEOF:
        return item
    raise MalformedCbor("bytes follow the item")


def encode(value: Value) -> bytes:
    """Write a value, with lists and maps of indefinite length, as Amazon's do (recorded of lists).

    Half a surrogate pair, which UTF-8 has no way to write, becomes a question mark.
    """
    try:
        return dumps(value, indefinite_containers=True)
    except UnicodeEncodeError:
        return dumps(_without_surrogates(value), indefinite_containers=True)


def _without_surrogates(value: Value) -> Value:
    """A value with a question mark for each half of a surrogate pair, which UTF-8 cannot have."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value


def _with_text_keys(items: Mapping[Any, Any], _immutable: bool) -> Mapping[Any, Any]:  # noqa: FBT001 - cbor2's signature
    if not set(map(type, items)) <= {str}:
        raise MalformedCbor("the key of a map is not a string")
    return items


def _as_tag(tag: int, item: Value, _immutable: bool) -> CBORTag:  # noqa: FBT001 - cbor2's signature
    return CBORTag(tag, item)


_AS_TAGS: Final[Mapping[int, Callable[[Any, bool], CBORTag]]] = {
    tag: partial(_as_tag, tag) for tag in _TAGS_READ
}
_HOOKS: Final[Mapping[str, Any]] = {"object_hook": _with_text_keys, "semantic_decoders": _AS_TAGS}


def _counting_hooks() -> Mapping[str, Any]:
    """Hooks like `_HOOKS`, which also refuse more maps and tags than a request has use for."""
    numbers = count(1)

    def with_count(hook: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_call(*arguments: Any) -> Any:
            if next(numbers) > _ITEMS_MAX:
                raise MalformedCbor("the request holds too many values")
            return hook(*arguments)

        return count_and_call

    return {
        "object_hook": with_count(_with_text_keys),
        "semantic_decoders": {tag: with_count(as_tag) for tag, as_tag in _AS_TAGS.items()},
        "tag_hook": with_count(lambda tag, _immutable: tag),
    }
