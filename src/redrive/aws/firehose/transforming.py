"""Transformation: a function gets the records of a stream, and says what becomes of each.

https://docs.aws.amazon.com/firehose/latest/dev/data-transformation.html. A record that it answers with `Ok` goes on as
the function has it, `Dropped` goes nowhere, and whatever could not be processed is kept for the folder of errors.
"""

import itertools
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from redrive.aws.firehose.monitoring import LAMBDA, ErrorLog, StreamMetrics
from redrive.aws.firehose.records import DeliveryStream, Processor, WaitingRecord
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import Runtime
from redrive.model.names import id_text

_MIB: Final = 1024 * 1024
_EVENT_BYTES_MAX: Final = 6 * _MIB - 64 * 1024  # what Lambda takes, less what is around the records
_RECORD_BYTES: Final = 160  # of an event besides a record's content
_TEXT_CHARS_MAX: Final = 1024  # of what a function says of its failure: it stands with each of its records
_RESULTS: Final = ("Ok", "Dropped", "ProcessingFailed")
_CODES: Final = {
    "AccessDeniedException": "InvokeAccessDenied",
    "ResourceNotFoundException": "ResourceNotFound",
    "TooManyRequestsException": "InvokeLimitExceeded",
}


class TransformationFailed(Exception):  # noqa: N818 - what happened, as the log says it
    """An invocation has failed, or has an answer that cannot be read.

    Attributes:
        code: `FunctionError` …
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text[:_TEXT_CHARS_MAX])
        self.code = f"{LAMBDA}.{code}"


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why records could not be processed."""

    code: str  # `Lambda.FunctionError` …
    message: str  # Error message
    attempts: int  # How often the function was invoked
    ended_at: int  # When the last of them ended (ms)


@dataclass(slots=True)
class TransformationResult:
    """The records of an object after their transformation."""

    contents: list[bytes] = field(default_factory=list)  # Contents of the records that go on
    failed: list[bytes] = field(default_factory=list)  # Those that could not be processed, as lines of JSON


class Transformation:
    """Invokes the functions of streams."""

    def __init__(
        self, calls: InnerCalls, roles: ServiceRoles, runtime: Runtime, log: ErrorLog, metrics: StreamMetrics
    ) -> None:
        self._calls = calls
        self._roles = roles
        self._runtime = runtime
        self._log = log
        self._metrics = metrics

    async def apply(self, stream: DeliveryStream, records: Sequence[WaitingRecord]) -> TransformationResult:
        """The records as the stream's function has processed them; unchanged, if it has no function."""
        processor = stream.processor("Lambda")
        if processor is None:
            return TransformationResult([record.data for record in records])
        result = TransformationResult()
        for batch in _batches(records, float(processor.parameters["BufferSizeInMBs"])):
            await self._process(stream, processor, batch, result)
        return result

    async def _process(
        self,
        stream: DeliveryStream,
        processor: Processor,
        batch: Sequence[WaitingRecord],
        result: TransformationResult,
    ) -> None:
        """Let the function process a batch, again after failures as often as the stream says; adds to `result`."""
        arn, clock = processor.parameters["LambdaArn"], self._runtime.clock
        attempts_max = 1 + int(processor.parameters["NumberOfRetries"])
        for attempts in itertools.count(1):
            try:
                answers = _read_answers(await self._invoke(stream, arn, batch), batch)
                break
            except TransformationFailed as error:
                self._count(stream, "ExecuteProcessing.Success", 0)
                if attempts == attempts_max:
                    self._log.write(stream, error.code, str(error), clock.now(), arn)
                    failure = Failure(error.code, str(error), attempts, clock.now())
                    result.failed += [_failed_line(record, failure, arn) for record in batch]
                    return
        self._count(stream, "ExecuteProcessing.Success", 1)
        failure = Failure(
            f"{LAMBDA}.FunctionError", "The function answered ProcessingFailed", attempts, clock.now()
        )
        contents: list[bytes] = []
        for record in batch:
            outcome, content = answers[record.id]
            if outcome == "Ok":
                contents.append(content)
            elif outcome != "Dropped":
                result.failed.append(_failed_line(record, failure, arn))
        result.contents += contents
        self._count(stream, "SucceedProcessing.Records", len(contents))
        self._count(stream, "SucceedProcessing.Bytes", sum(map(len, contents)))

    async def _invoke(self, stream: DeliveryStream, arn: str, batch: Sequence[WaitingRecord]) -> bytes:
        """The function's answer to a batch; raises TransformationFailed."""
        event = {
            "invocationId": id_text(self._runtime.message_id()),
            "deliveryStreamArn": stream.arn,
            "region": stream.region,
            "records": [
                {
                    "recordId": record.id,
                    "approximateArrivalTimestamp": record.at,
                    "data": b64encode(record.data).decode(),
                }
                for record in batch
            ],
        }
        principal = await self._roles.role_principal(stream.account, stream.role, stream.region)
        params = {"FunctionName": arn, "Payload": orjson.dumps(event)}
        try:
            answer = await self._calls.call("lambda", "Invoke", params, principal, stream.region)
        except KeyError:
            raise TransformationFailed("ResourceNotFound", "This server does not offer lambda") from None
        except AwsError as refusal:
            raise TransformationFailed(_CODES.get(refusal.code, refusal.code), refusal.message) from refusal
        if answer.get("FunctionError"):
            text = bytes(answer["Payload"]).decode(errors="replace")
            raise TransformationFailed(
                "FunctionError", f"The Lambda function returned an error result: {text}"
            )
        return bytes(answer["Payload"])

    def _count(self, stream: DeliveryStream, metric: str, value: float) -> None:
        self._metrics.add(stream, {metric: value}, self._runtime.clock.now())


def _batches(records: Sequence[WaitingRecord], mebibytes: float) -> Iterator[Sequence[WaitingRecord]]:
    """The records in their order, as many together as an invocation takes."""
    batch: list[WaitingRecord] = []
    total_bytes = event_bytes = 0
    for record in records:
        record_bytes = len(record.data)
        encoded_bytes = (record_bytes + 2) // 3 * 4 + _RECORD_BYTES
        if batch and (
            total_bytes + record_bytes > mebibytes * _MIB or event_bytes + encoded_bytes > _EVENT_BYTES_MAX
        ):
            yield batch
            batch, total_bytes, event_bytes = [], 0, 0
        batch.append(record)
        total_bytes, event_bytes = total_bytes + record_bytes, event_bytes + encoded_bytes
    if batch:
        yield batch


def _read_answers(payload: bytes, batch: Sequence[WaitingRecord]) -> Mapping[str, tuple[str, bytes]]:
    """The outcome and the content of each record, by its id.

    Raises:
        TransformationFailed: The answer is malformed, or its records are not those of the batch.
    """
    try:
        entries = [_read_record(each) for each in orjson.loads(payload)["records"]]
    except (ValueError, TypeError, KeyError, AttributeError, NotBase64):
        text = "The answer of the Lambda function is not JSON with a result for each record"
        raise TransformationFailed("JsonProcessingException", text) from None
    answers = {record_id: (outcome, content) for record_id, outcome, content in entries}
    if len(answers) < len(entries):
        raise TransformationFailed(
            "DuplicatedRecordId", "Multiple records were returned with the same record id"
        )
    if any(record.id not in answers for record in batch):
        raise TransformationFailed("MissingRecordId", "One or more record ids were not returned")
    return answers


def _read_record(record: Mapping[str, Any]) -> tuple[str, str, bytes]:
    """The id, the outcome and the content of a record that a function returned."""
    outcome = record["result"]
    if outcome not in _RESULTS:
        raise ValueError(outcome)
    content = b64decode(record["data"], validate=True) if outcome == "Ok" else b""
    return str(record["recordId"]), outcome, content


def _failed_line(record: WaitingRecord, failure: Failure, arn: str) -> bytes:
    line = {
        "attemptsMade": failure.attempts,
        "arrivalTimestamp": record.at,
        "errorCode": failure.code,
        "errorMessage": failure.message,
        "attemptEndingTimestamp": failure.ended_at,
        "rawData": b64encode(record.data).decode(),
        "lambdaArn": arn,
    }
    return orjson.dumps(line) + b"\n"
