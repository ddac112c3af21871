"""Batches: up to ten entries in one call, each with its own answer."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Final

from redrive.aws.kit.messages import ENTRIES_MAX, ENTRY_ID_CHARS_MAX, BatchRefusals, Entry, check_batch
from redrive.aws.sqs.errors import error
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

_BAD_ID: Final = (
    "A batch entry id can only contain alphanumeric characters, hyphens and underscores."
    f" It can be at most {ENTRY_ID_CHARS_MAX} letters long."
)


def entries_of(params: Structure, kind: str) -> Sequence[Entry]:
    """The entries of a batch, checked as a whole.

    Args:
        params: The call's.
        kind: The entries' name in the query protocol, which the text for an empty batch speaks of.

    Raises:
        AwsError: There are no entries or too many, or their ids are not usable.
    """
    entries: Sequence[Entry] = params["Entries"]
    check_batch(entries, _refusals(kind))
    return entries


@cache
def _refusals(kind: str) -> BatchRefusals:
    return BatchRefusals(
        empty=partial(error, "EmptyBatchRequest", f"There should be at least one {kind} in the request."),
        too_long=_too_long,
        bad_id=_bad_id,
        long_id=_bad_id,
        repeated_id=_repeated_id,
    )


def _too_long(entries: int) -> AwsError:
    return error(
        "TooManyEntriesInBatchRequest",
        f"Maximum number of entries per request are {ENTRIES_MAX}. You have sent {entries}.",
    )


def _bad_id(_: str) -> AwsError:
    return error("InvalidBatchEntryId", _BAD_ID)


def _repeated_id(entry_id: str) -> AwsError:
    return error("BatchEntryIdsNotDistinct", f"Id {entry_id} repeated.")


def answer(successful: Sequence[Structure], failures: Sequence[Structure]) -> Structure:
    """The answer to the whole batch; SQS leaves out a list that is empty."""
    result: Structure = {}
    if successful:
        result["Successful"] = list(successful)
    if failures:
        result["Failed"] = list(failures)
    return result
