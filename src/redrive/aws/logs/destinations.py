"""Destinations of subscription filters: functions, as their policies let, and delivery streams, as a role may.

Events are owed to them, and arrive in the documented form:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html.
"""

import gzip
import logging
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

import orjson

from redrive.access.principals import Principal, account_root, service_acting_for
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.owed_calls import account_and_region_of, make_call
from redrive.aws.gateway.rounds import TRACE, Rounds
from redrive.aws.kit.call import Call
from redrive.aws.logs import names
from redrive.aws.logs.errors import invalid
from redrive.aws.wire.arn import Arn, parse_arn, read_arn
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt
from redrive.model.names import ResourceName

_COMPRESSION: Final = (
    1  # 5 ms for the largest batch, on the thread that answers everybody; 9 takes 16 for a sixth less
)
_SERVICE: Final = "logs"  # that policies and trusts let in
_SESSION: Final = "redrive-logs"
_STREAM: Final = "deliverystream/"
_UNTESTED: Final = (
    "Could not deliver test message to specified Firehose stream. Check if the given Firehose stream is in"
    " ACTIVE state."
)
_BUSY: Final = "The delivery stream did not take the record."
_CROSS_ACCOUNT: Final = (
    "Cross-account lambda invocation passing is not allowed. You must use DestinationPolicies to create cross account"
    " lambda triggers."
)
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Events that are owed to one destination."""

    group: str  # The name of their group
    stream: str  # The name of their stream
    filter: str  # The name of the filter that chose them
    destination: str  # The ARN of a function or a delivery stream
    events: Sequence[Mapping[str, Any]]  # Their ids, moments (ms) and messages, as the destination gets them
    role: str = ""  # The ARN of the role to act as; empty for a function, whose policy decides
    # The number of runs of functions, each begun by log events of the one before, that led to the events.
    rounds: int = 0

    def pack(self) -> str:
        """The events as the body of a delivery."""
        return orjson.dumps(self).decode()

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Read what `pack` wrote; the destination was called `function` when there were no others."""
        document = orjson.loads(body)
        if "function" in document:
            document["destination"] = document.pop("function")
        return cls(**document)

    def to_bytes(self, owner: str) -> bytes:
        """The message that the destination gets, from an account: compressed, as its size is limited."""
        return _compress(
            {
                "messageType": "DATA_MESSAGE",
                "owner": owner,
                "logGroup": self.group,
                "logStream": self.stream,
                "subscriptionFilters": [self.filter],
                "logEvents": self.events,
            }
        )


def control_message(now: int) -> bytes:
    """The message by which a delivery stream is tried when it is subscribed, compressed as all are."""
    text = "CWL CONTROL MESSAGE: Checking health of destination Firehose."
    return _compress(
        {
            "messageType": "CONTROL_MESSAGE",
            "owner": "CloudwatchLogs",
            "logGroup": "",
            "logStream": "",
            "subscriptionFilters": [],
            "logEvents": [{"id": "", "timestamp": now, "message": text}],
        }
    )


def _compress(document: Mapping[str, Any]) -> bytes:
    return gzip.compress(orjson.dumps(document), _COMPRESSION, mtime=0)


class LogDestination(Protocol):
    """One kind of destinations."""

    async def check(self, call: Call, group: ResourceName, arn: str, role: str) -> None:
        """See that a group's events may go to a destination; raises AwsError (`InvalidParameterException`)."""
        ...

    async def deliver(self, group: ResourceName, log_batch: LogBatch) -> None:
        """Hand events of a group over; the destination has them on disk then.

        Raises:
            AwsError: It is gone, or lets nobody in any more.
            KeyError: This server does not offer its service.
            StoreUnavailable: It is unknown whether it has them.
        """
        ...


class Functions:
    """Functions, invoked on behalf of log groups, as `logs.amazonaws.com`."""

    def __init__(self, calls: InnerCalls, rounds: Rounds, *, open_functions: bool) -> None:
        self._calls = calls
        self._rounds = rounds
        # Whether a function without a policy is invoked for groups of its own account. Amazon's is not: its
        # policy has to let `logs.amazonaws.com` in
        self._open_functions = open_functions

    async def check(self, _call: Call, group: ResourceName, arn: str, role: str) -> None:
        """Refuse a function that does not exist, lets no log group in, or logs to the same group."""
        if role:
            raise invalid("destinationArn for vendor lambda cannot be used with roleArn")
        try:
            await self._invoke(group, arn, InvocationType="DryRun")
        except KeyError:
            raise invalid("This server does not offer lambda.") from None
        except AwsError as refused:
            if not refused.sender:
                raise
            raise invalid(
                "Could not execute the lambda function. Make sure you have given CloudWatch Logs permission to execute"
                " your function."
            ) from refused
        await self._check_other_group(group, arn)

    async def deliver(self, group: ResourceName, log_batch: LogBatch) -> None:
        """Invoke the function with events; raises AwsError, too, if it has come to log to that group itself."""
        await self._check_other_group(group, log_batch.destination)
        data = b64encode(log_batch.to_bytes(group.account)).decode()
        await self._invoke(
            group,
            log_batch.destination,
            self._rounds.header(log_batch.rounds + 1),
            InvocationType="Event",
            Payload=orjson.dumps({"awslogs": {"data": data}}),
        )

    async def _invoke(self, group: ResourceName, arn: str, trace: str = "", **params: Any) -> Structure:
        headers = {TRACE: trace} if trace else None
        return await self._calls.call(
            "lambda", "Invoke", {"FunctionName": arn, **params}, self._caller(group), group.region, headers
        )

    async def _check_other_group(self, group: ResourceName, arn: str) -> None:
        """Refuse a function's own log group: each run would write lines, and each line lead to a run."""
        params = {"FunctionName": arn}
        answer = await self._calls.call(
            "lambda", "GetFunctionConfiguration", params, account_root(group.account), group.region
        )
        if answer["LoggingConfig"]["LogGroup"] == group.name:
            raise invalid(
                "The log group provided is reserved for the function log output of the destination function."
            )

    def _caller(self, group: ResourceName) -> Principal:
        arn = f"{names.arn_of(group)}:*"
        return service_acting_for(_SERVICE, group.region, arn, group.account, for_owner=self._open_functions)


class DeliveryStreams:
    """Delivery streams of Firehose, filled as the role that a filter names."""

    def __init__(self, calls: InnerCalls, identities: Identities) -> None:
        self._calls = calls
        self._roles = ServiceRoles(identities, _SERVICE, _SESSION, _unassumable)

    async def check(self, call: Call, group: ResourceName, arn: str, role: str) -> None:
        """Refuse a stream that does not take a message from the role."""
        if not role:
            raise invalid("destinationArn for vendor firehose cannot be used without roleArn")
        await self._roles.check(call, role)
        try:
            await self._put(group, arn, role, control_message(call.now))
        except KeyError:
            raise invalid("This server does not offer firehose.") from None
        except AwsError as refusal:
            raise invalid(_UNTESTED) from refusal

    async def deliver(self, group: ResourceName, log_batch: LogBatch) -> None:
        """Put events into the stream, as one record."""
        record = log_batch.to_bytes(group.account)
        await self._put(group, log_batch.destination, log_batch.role, record)

    async def _put(self, group: ResourceName, arn: str, role: str, record: bytes) -> None:
        """Put a record into a stream; raises AwsError."""
        name = arn.rpartition("/")[2]
        records = {"DeliveryStreamName": name, "Records": [{"Data": record}]}
        caller = await self._roles.role_principal(group.account, role, group.region)
        answer = await self._calls.call("firehose", "PutRecordBatch", records, caller, group.region)
        if answer.get("FailedPutCount"):
            raise common("ServiceUnavailableException", _BUSY)


def _unassumable(_: str) -> AwsError:
    return invalid(_UNTESTED)


def destination_of(text: str, account: str, region: str, role: str) -> str:
    """The service of a destination (an ARN) that a log group of this account and region may have.

    - `role`: the role by which events are put there; empty: none.

    Raises:
        AwsError: `InvalidParameterException`, or `AccessDeniedException` for another account's function.
    """
    parsed_arn = read_arn(text)
    if parsed_arn is None:
        raise invalid(f"Invalid ARN: {text}")
    if parsed_arn.service == "lambda" and parsed_arn.account != account:
        raise AwsError("AccessDeniedException", _CROSS_ACCOUNT)
    if parsed_arn.service == "kinesis" and not role:
        raise invalid("destinationArn for vendor kinesis cannot be used without roleArn")
    if not _is_destination(parsed_arn):
        raise invalid(
            f"Destinations of {parsed_arn.service} are not available: functions and Firehose delivery streams are."
        )
    if (parsed_arn.region, parsed_arn.account) != (region, account):
        raise invalid("destinationArn must be of the log group's account and region.")
    return parsed_arn.service


def _is_destination(arn: Arn) -> bool:
    return arn.service == "lambda" or (arn.service == "firehose" and arn.resource.startswith(_STREAM))


class SubscribedEndpoint:
    """Brings log events to destinations (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, destinations: Mapping[str, LogDestination]) -> None:
        self._destinations = destinations

    async def push(self, push_request: PushRequest) -> Attempt:
        """Hand events over; a refusal is final, and the log says so."""
        log_batch = LogBatch.unpack(push_request.body)
        group = ResourceName(*account_and_region_of(push_request), log_batch.group)
        service = parse_arn(log_batch.destination).service
        delivery = self._destinations[service].deliver(group, log_batch)
        error, attempt = await make_call(
            delivery, service, lambda refused: f"{refused.message} ({refused.code})"
        )
        if error is not None:
            logger.warning(
                "log_subscription.failed group=%s filter=%s destination=%s events=%d error=%s",
                group.key,
                log_batch.filter,
                log_batch.destination,
                len(log_batch.events),
                error,
            )
        return attempt

    async def close(self) -> None:
        """There is nothing to let go of."""
