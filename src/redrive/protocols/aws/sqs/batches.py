"""Batches: up to ten entries in one call, each with an answer of its own."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from redrive.protocols.aws.sqs.errors import error
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.aws.wire.shapes import Structure

ENTRIES_MAX = 10
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")

Entry = Mapping[str, Any]


def entries_of(params: Structure, kind: str) -> Sequence[Entry]:
    """The entries of a batch, whose form as a whole is good.

    Args:
        params: The call's.
        kind: The entries' name in the query protocol, which the text for an empty batch speaks of.

    Raises:
        AwsError: There are none or too many, or their ids are not usable.
    """
    entries: Sequence[Entry] = params["Entries"]
    if not entries:
        raise error("EmptyBatchRequest", f"There should be at least one {kind} in the request.")
    if len(entries) > ENTRIES_MAX:
        raise error(
            "TooManyEntriesInBatchRequest",
            f"Maximum number of entries per request are {ENTRIES_MAX}. You have sent {len(entries)}.",
        )
    _check_ids([entry["Id"] for entry in entries])
    return entries


def _check_ids(ids: Sequence[str]) -> None:
    if not all(map(_ID.fullmatch, ids)):
        raise error(
            "InvalidBatchEntryId",
            "A batch entry id can only contain alphanumeric characters, hyphens and underscores."
            " It can be at most 80 letters long.",
        )
    if len(set(ids)) < len(ids):
        repeated = next(one for one in ids if ids.count(one) > 1)
        raise error("BatchEntryIdsNotDistinct", f"Id {repeated} repeated.")


def failed(entry: Entry, refusal: AwsError) -> Structure:
    """The answer to an entry that was refused."""
    return {
        "Id": entry["Id"],
        "SenderFault": refusal.sender,
        "Code": refusal.query_code,
        "Message": refusal.message,
    }


def answer(successful: Sequence[Structure], failures: Sequence[Structure]) -> Structure:
    """The answer to the whole batch; SQS leaves out a list that is empty."""
    result: Structure = {}
    if successful:
        result["Successful"] = list(successful)
    if failures:
        result["Failed"] = list(failures)
    return result
