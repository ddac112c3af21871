"""Messages as SQS and SNS both have them: group and deduplication ids, attributes, and batches.

Both services check the same things in the same order, in their own words: a check takes the words as a parameter.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, NoReturn, Protocol, TypeVar

from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.model.names import bytes_of

T = TypeVar("T")
R = TypeVar("R")

ENTRIES_MAX: Final = 10
ENTRY_ID_CHARS_MAX: Final = 80
NAME_BYTES_MAX: Final = 256

_ID: Final = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}")  # letters, digits and punctuation
_ENTRY_ID: Final = re.compile(r"[A-Za-z0-9_-]+")
_KINDS: Final = ("Binary", "Number", "String")

Entry = Mapping[str, Any]
"""The parameters of one message: of a call, or of an entry of a batch."""

Attributes = Mapping[str, Mapping[str, Any]]
"""Message attributes by their names, as requests have them."""

# ---- group and deduplication ids -------------------------------------------------------------------------------


class Channel(Protocol):
    """A channel that messages are sent to: a queue or a topic."""

    @property
    def ordered(self) -> bool:
        """True if it is a FIFO one."""
        ...

    @property
    def deduplicates_content(self) -> bool:
        """True if a message without a deduplication id is known by its text."""
        ...


class IdRefusals(NamedTuple):
    """A service's refusals of ids that are not acceptable."""

    malformed: Callable[[str, str], AwsError]  # To the id given for a parameter
    without_group: Callable[[], AwsError]  # To a message for a FIFO channel without a group id
    unordered: Callable[[str], AwsError]  # To a deduplication id for a standard channel
    # To a message for a FIFO channel that has no deduplication id and needs one.
    without_deduplication: Callable[[], AwsError]


def is_id(value: str) -> bool:
    """True if a text may be a group id, a deduplication id or the id of an attempt to receive."""
    return _ID.fullmatch(value) is not None


def check_ids(channel: Channel, entry: Entry, refusals: IdRefusals) -> None:
    """Check the group and deduplication ids of a message for a channel; raises one of the refusals."""
    group, deduplication = entry.get("MessageGroupId"), entry.get("MessageDeduplicationId")
    if group is not None:
        if not is_id(group):
            raise refusals.malformed("MessageGroupId", group)
    elif channel.ordered:
        raise refusals.without_group()
    if deduplication is not None:
        if not channel.ordered:
            raise refusals.unordered(deduplication)
        if not is_id(deduplication):
            raise refusals.malformed("MessageDeduplicationId", deduplication)
    elif channel.ordered and not channel.deduplicates_content:
        raise refusals.without_deduplication()


# ---- sequence numbers ------------------------------------------------------------------------------------------

_SEQUENCE_BEGIN: Final = 188 * 10**17  # as large as AWS's are, and larger than any that a former release gave
_SEQUENCE_STEP: Final = 256
_SCATTER: Final = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: neighbours fall far apart
_WORD: Final = (1 << 64) - 1


def sequence_number(seq: int) -> str:
    """The sequence number of a message in a FIFO queue or topic, by its place there: twenty digits that grow.

    It is large and its steps are uneven, 157 to 415, so that nobody counts on the next one. It depends on the place
    alone: every node writes the same, after a restart too.
    """
    offset = (seq * _SCATTER & _WORD) >> 56
    return str(_SEQUENCE_BEGIN + seq * _SEQUENCE_STEP + offset)


# ---- attributes ------------------------------------------------------------------------------------------------


def kind_of(data_type: str) -> str | None:
    """The kind of an attribute's type: `Number` for `Number.price`; None for a type that does not exist."""
    kind = data_type.partition(".")[0]
    return kind if kind in _KINDS else None


def type_fault(name: str) -> str:
    """The text of both services for an attribute type that does not exist."""
    return (
        f"The message attribute '{name}' has an invalid message attribute type, the set of supported type"
        " prefixes is Binary, Number, and String."
    )


def is_number(text: str) -> bool:
    """True if a text is a finite decimal number."""
    try:
        return isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def name_fault(name: str, foreign: re.Pattern[str]) -> str | None:
    """The fault of an attribute's name, as SNS words it; None: none. `foreign` matches characters not allowed."""
    if not name:
        return "Message attribute name can not be empty."  # chosen
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"Length of message attribute name must be less than {NAME_BYTES_MAX} bytes."
    if match := foreign.search(name):
        return (
            f"Invalid non-alphanumeric character '#x{ord(match[0]):X}' was found in the message attribute name."
            " Can only include alphanumeric characters, hyphens, underscores, or dots."
        )
    for end, has_dot in (("starting", name.startswith(".")), ("ending", name.endswith("."))):
        if has_dot:
            return f"Invalid message attribute name {end} with character '.' was found."
    return "Message attribute name can not have successive '.' character." if ".." in name else None


def attributes_bytes(attributes: Attributes | None) -> int:
    """The bytes that attributes add to a message: the name, type and value of each."""
    if not attributes:
        return 0
    return sum(attribute_bytes(name, attribute) for name, attribute in attributes.items())


def attribute_bytes(name: str, attribute: Mapping[str, Any]) -> int:
    """The bytes that an attribute adds to a message."""
    texts = bytes_of(name) + bytes_of(attribute.get("DataType") or "")
    return texts + bytes_of(attribute.get("StringValue") or "") + len(attribute.get("BinaryValue") or b"")


def packed(attribute: Mapping[str, Any]) -> tuple[str, str]:
    """The type and the value of a checked attribute as they are kept; a binary value in base 64."""
    data_type: str = attribute["DataType"]
    if data_type.startswith("Binary"):
        return data_type, b64encode(attribute["BinaryValue"]).decode()
    return data_type, attribute["StringValue"]


def unpacked(data_type: str, value: str) -> dict[str, Any]:
    """The attribute that `packed` kept, as answers have it."""
    if data_type.startswith("Binary"):
        return {"DataType": data_type, "BinaryValue": b64decode(value)}
    return {"DataType": data_type, "StringValue": value}


# ---- batches ---------------------------------------------------------------------------------------------------


class BatchRefusals(NamedTuple):
    """A service's refusals of a batch that is not acceptable as a whole."""

    empty: Callable[[], AwsError]  # To one without entries
    too_long: Callable[[int], AwsError]  # To one of so many entries
    # To an id with other characters than letters, digits, hyphens and underscores.
    bad_id: Callable[[str], AwsError]
    long_id: Callable[[str], AwsError]  # To an id of more than 80 characters
    repeated_id: Callable[[str], AwsError]  # To an id that two entries have


def check_batch(entries: Sequence[Entry], refusals: BatchRefusals) -> None:
    """Check how many entries a batch has, and their ids; raises one of the refusals."""
    if not entries:
        raise refusals.empty()
    if len(entries) > ENTRIES_MAX:
        raise refusals.too_long(len(entries))
    ids: list[str] = [entry["Id"] for entry in entries]
    if not _are_good(ids):
        _refuse_ids(ids, refusals)


def _are_good(ids: Sequence[str]) -> bool:
    """True if ids are good ones and differ, as nearly always: one match of all tells in half the time of one for each."""
    if len(set(ids)) < len(ids) or not all(ids) or max(map(len, ids)) > ENTRY_ID_CHARS_MAX:
        return False
    return _ENTRY_ID.fullmatch("".join(ids)) is not None


def _refuse_ids(ids: Sequence[str], refusals: BatchRefusals) -> NoReturn:
    """Raise the refusal of the first id that is malformed or too long, or else of the first that is repeated."""
    for entry_id in ids:
        if not _ENTRY_ID.fullmatch(entry_id):
            raise refusals.bad_id(entry_id)
        if len(entry_id) > ENTRY_ID_CHARS_MAX:
            raise refusals.long_id(entry_id)
    raise refusals.repeated_id(
        next(entry_id for index, entry_id in enumerate(ids) if entry_id in ids[:index])
    )


def accepted(
    entries: Iterable[tuple[Entry, T]], accept: Callable[[Entry, T], R], failures: list[Structure]
) -> list[tuple[Entry, R]]:
    """The entries that `accept` does not refuse, each with its result; the refusals of the others join `failures`."""
    results = []
    for entry, value in entries:
        try:
            results.append((entry, accept(entry, value)))
        except AwsError as refusal:
            failures.append(failed(entry, refusal))
    return results


def failed(entry: Entry, refusal: AwsError) -> Structure:
    """The answer of a batch for an entry that was refused."""
    return {
        "Id": entry["Id"],
        "SenderFault": refusal.sender,
        "Code": refusal.query_code,
        "Message": refusal.message,
    }
