"""Delivery streams: filled wherever a server speaks Firehose's API."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson
from typing_extensions import override

from redrive.endpoints.aws.calls import AwsAnswer, AwsClient, ResourceAddress, error_text, of_answer, of_error
from redrive.endpoints.verdicts import IN_TROUBLE, THROTTLED, TimedEndpoint, Verdict
from redrive.engine.ports import PushRequest
from redrive.model.attempt import AttemptResult, Reason

# "PutRecordBatch" of the Firehose API reference. Whether the 4 MiB are of base 64 is not said: here they are.
RECORDS_MAX: Final = 500
_CALL_BYTES_MAX: Final = 4 * 1024 * 1024
_RECORD_BYTES_MAX: Final = 1_000 * 1024
_ANSWER_BYTES_MAX: Final = 512 * 1024  # 500 records, each with an id of some 220 characters or an error
_FRAME_BYTES: Final = 1024  # of a call, besides its records
_RECORD_FRAME_BYTES: Final = 16
_CONTENT_TYPE: Final = "application/x-amz-json-1.1"
_TARGET: Final = "Firehose_20150804."
_ABOUT_ONE: Final = frozenset({Reason.CLIENT_ERROR, Reason.TOO_LARGE})
_BUSY: Final = "ServiceUnavailableException"  # also what a stream says that is filled faster than it may be


class StreamEndpoint(TimedEndpoint):
    """Puts each request, or each part of one, into its stream as a record.

    A request's endpoint is the stream's ARN. Parts go together in as few calls as their number and weight allow, all at
    once; each has its own attempt, as a stream may take some and not others.

    Args:
        now: Milliseconds, for durations.
        client: Makes the calls.
    """

    def __init__(self, now: Callable[[], int], client: AwsClient) -> None:
        super().__init__(now)
        self._client = client

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """The verdict on a push of one or several records, which go out in as many calls as Firehose needs."""
        records = push_request.parts or (push_request.body,)
        address = self._client.place(push_request.endpoint)
        if isinstance(address, Verdict):
            return _together([address] * len(records))
        calls = [self._put(address, push_request.timeout_ms, together) for together in _calls(records)]
        return _together([verdict for verdicts in await asyncio.gather(*calls) for verdict in verdicts])

    async def _put(
        self, address: ResourceAddress, timeout_ms: int, records: Sequence[bytes]
    ) -> Sequence[Verdict]:
        """One call; a verdict for each record."""
        began = self._now()
        entries = [{"Data": b64encode(record).decode()} for record in records]
        document: dict[str, Any] = {"DeliveryStreamName": address.name}
        single = len(records) == 1
        document |= {"Record": entries[0]} if single else {"Records": entries}
        call = PushRequest(
            address.url + "/",
            orjson.dumps(document),
            _CONTENT_TYPE,
            {"X-Amz-Target": _TARGET + ("PutRecord" if single else "PutRecordBatch")},
            timeout_ms,
            answer_bytes_max=_ANSWER_BYTES_MAX,
        )
        answer = await self._client.call(address, call)
        if isinstance(answer, Verdict):
            return [answer] * len(records)
        verdict = _of_answer(answer)
        if verdict.result is AttemptResult.DELIVERED and not single:
            return _each(answer, verdict, len(records))
        if verdict.reason in _ABOUT_ONE and not single:
            return await self._put_halves(address, timeout_ms - (self._now() - began), records)
        return [verdict] * len(records)

    async def _put_halves(
        self, address: ResourceAddress, timeout_ms: int, records: Sequence[bytes]
    ) -> Sequence[Verdict]:
        """Put the records again in two halves: the call was refused, perhaps for one of them, their number or their size.

        One among 500 is found with 18 calls more.
        """
        middle = len(records) // 2
        calls = [
            self._put(address, max(1, timeout_ms), half) for half in (records[:middle], records[middle:])
        ]
        return [verdict for verdicts in await asyncio.gather(*calls) for verdict in verdicts]


def _calls(records: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Records in their order, as many together as a call may have.

    One that is too large for any stream goes alone: else it would have all the others of its call refused.
    """
    together: list[bytes] = []
    weight = _FRAME_BYTES
    for record in records:
        size = (len(record) + 2) // 3 * 4 + _RECORD_FRAME_BYTES  # in base64
        alone = len(record) > _RECORD_BYTES_MAX
        if together and (alone or len(together) >= RECORDS_MAX or weight + size > _CALL_BYTES_MAX):
            yield together
            together, weight = [], _FRAME_BYTES
        together.append(record)
        weight += size
        if alone:
            yield together
            together, weight = [], _FRAME_BYTES
    if together:
        yield together


def _of_answer(answer: AwsAnswer) -> Verdict:
    return _stream_error(answer.status, answer.code, answer.message) or of_answer(answer)


def _stream_error(status: int, code: str, message: str) -> Verdict | None:
    """The one error that means more here than elsewhere: a stream that is filled too fast says it is unavailable."""
    if code != _BUSY:
        return None
    return THROTTLED.verdict(status, error_text(code, message))


def _each(answer: AwsAnswer, call_verdict: Verdict, records: int) -> Sequence[Verdict]:
    """The outcome of each record of a batch, in the order of the request.

    What cannot be read says nothing for certain, so those records are put again.
    """
    try:
        entries = orjson.loads(answer.text)["RequestResponses"]
        verdicts = [_of_entry(entry, call_verdict) for entry in entries]
    except (ValueError, TypeError, KeyError, AttributeError):
        verdicts = []
    if len(verdicts) == records:
        return verdicts
    unknown_outcome = IN_TROUBLE.verdict(answer.status, "An answer that does not tell of each record")
    return [unknown_outcome] * records


def _of_entry(entry: dict[str, Any], call_verdict: Verdict) -> Verdict:
    """The verdict on one record of a call that succeeded as a whole."""
    code = entry.get("ErrorCode")
    if not code:
        return call_verdict
    message = str(entry.get("ErrorMessage") or "")
    # An entry has no status. All that are documented are of the service: ServiceUnavailableException, InternalFailure.
    return _stream_error(503, code, message) or of_error(500, code, message)


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict for all: the only one, or the first that is not a success, with each as a part."""
    if len(verdicts) == 1:
        return verdicts[0]
    first = next(
        (verdict for verdict in verdicts if verdict.result is not AttemptResult.DELIVERED), verdicts[0]
    )
    return replace(first, parts=tuple(verdicts))
