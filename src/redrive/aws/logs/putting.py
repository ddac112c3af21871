"""PutLogEvents: lines of callers, in order of their times, within the limits of one call."""

from collections.abc import Sequence
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.logs import names
from redrive.aws.logs.errors import invalid
from redrive.aws.logs.places import LogPlaces, WriteDown
from redrive.aws.wire.shapes import Structure
from redrive.model.log import EVENT_BYTES, LogEvent, LogGroup
from redrive.model.metric import MINUTE_MS
from redrive.model.queue import DAY_MS

BATCH_BYTES_MAX: Final = 1_048_576
_SPAN_MS: Final = DAY_MS
_PAST_MS: Final = 14 * DAY_MS
_FUTURE_MS: Final = 2 * 60 * MINUTE_MS


class PutEventOperations:
    """Takes events from callers."""

    def __init__(self, places: LogPlaces, write_down: WriteDown) -> None:
        self._places = places
        self._write_down = write_down

    async def put_log_events(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html.

        The sequence token is not asked for, as it is no longer asked for there; one is answered all the same.
        """
        entries: Sequence[Structure] = params["logEvents"]
        group = await self._places.group(names.group_name(call, params["logGroupName"]))
        stream = await self._places.stream(group, params["logStreamName"])
        _check(entries)
        rejected = _rejected(entries, group, call.now)
        first = max(rejected.get("tooOldLogEventEndIndex", 0), rejected.get("expiredLogEventEndIndex", 0))
        last = rejected.get("tooNewLogEventStartIndex", len(entries))
        events = [
            LogEvent(group.id, stream.id, event["timestamp"], call.now, event["message"])
            for event in entries[first:last]
        ]
        if events:
            await self._write_down(events, {stream.id: stream.name})
        answer: Structure = {"nextSequenceToken": f"{call.now:056d}"}
        return answer | {"rejectedLogEventsInfo": rejected} if rejected else answer


def _check(events: Sequence[Structure]) -> None:
    sizes = [len(event["message"].encode()) + EVENT_BYTES for event in events]
    if sum(sizes) > BATCH_BYTES_MAX:
        raise invalid(f"Upload too large: {sum(sizes)} bytes exceeds limit of {BATCH_BYTES_MAX}")
    moments = [event["timestamp"] for event in events]
    if moments != sorted(moments):
        raise invalid("Log events in a single PutLogEvents request must be in chronological order.")
    if moments[-1] - moments[0] > _SPAN_MS:
        raise invalid(
            "The batch of log events in a single PutLogEvents request cannot span more than 24 hours."
        )


def _rejected(events: Sequence[Structure], group: LogGroup, now: int) -> Structure:
    """The first and the end of the events, in order of time, that can be taken; the rest is reported, not refused."""
    moments = [event["timestamp"] for event in events]
    indexes = {
        "tooOldLogEventEndIndex": sum(at < now - _PAST_MS for at in moments),
        "expiredLogEventEndIndex": sum(at < group.expired_before(now) for at in moments),
    }
    rejected = {name: end for name, end in indexes.items() if end}
    too_new = sum(at > now + _FUTURE_MS for at in moments)
    return rejected | ({"tooNewLogEventStartIndex": len(moments) - too_new} if too_new else {})
