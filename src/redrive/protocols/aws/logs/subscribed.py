"""Log events on their way to functions: owed once they are on disk, and delivered in the documented form.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html.
"""

import gzip
import logging
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from redrive.access.principals import Principal, account_root, acting_for
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt
from redrive.model.names import ResourceName
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.protocols.aws.logs import names
from redrive.protocols.aws.logs.errors import invalid
from redrive.protocols.aws.owed_calls import asked_at, attempted
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.aws.wire.shapes import Structure

logger = logging.getLogger(__name__)

DIALECT: Final = "logs"
SUBSCRIBED: Final = "subscribed"  # the subscription that is the backlog
TO_FUNCTION: Final = "logs.function"
_SERVICE: Final = "lambda"
_COMPRESSION: Final = (
    1  # 5 ms for the largest batch, on the thread that answers everybody; 9 takes 16 for a sixth less
)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Events that are owed to one function.

    Attributes:
        group: The name of their group.
        stream: The name of their stream.
        filter: The name of the filter that chose them.
        function: The function's ARN.
        events: Their ids, moments (ms) and messages, as the function gets them.
    """

    group: str
    stream: str
    filter: str
    function: str
    events: Sequence[Mapping[str, Any]]

    def pack(self) -> str:
        """The events as the body of a delivery."""
        return orjson.dumps(self).decode()

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Read what `pack` wrote."""
        return cls(**orjson.loads(body))

    def payload(self, owner: str) -> bytes:
        """The event that the function gets: compressed, as its size is limited."""
        told = {
            "messageType": "DATA_MESSAGE",
            "owner": owner,
            "logGroup": self.group,
            "logStream": self.stream,
            "subscriptionFilters": [self.filter],
            "logEvents": self.events,
        }
        compressed = gzip.compress(orjson.dumps(told), _COMPRESSION, mtime=0)
        return orjson.dumps({"awslogs": {"data": b64encode(compressed).decode()}})


class FunctionCalls:
    """Calls functions on behalf of log groups, as `logs.amazonaws.com`."""

    def __init__(self, calls: InnerCalls, *, open_functions: bool) -> None:
        """Call by these calls.

        Args:
            calls: Calls of this server's services.
            open_functions: Whether a function without a policy is invoked for groups of its own account. Amazon's is
                not: its policy has to let `logs.amazonaws.com` in.
        """
        self._calls = calls
        self._open_functions = open_functions

    async def check(self, group: ResourceName, function: str) -> None:
        """See that a group's events may go to a function.

        Raises:
            AwsError: There is no such function, its policy forbids it, or it writes to that group itself.
        """
        try:
            await self._invoke(group, function, InvocationType="DryRun")
        except KeyError:
            raise invalid("This server does not offer lambda.") from None
        except AwsError as refused:
            if not refused.sender:
                raise
            raise invalid(
                "Could not execute the lambda function. Make sure you have given CloudWatch Logs permission to execute"
                " your function."
            ) from refused
        await self._check_other_group(group, function)

    async def deliver(self, group: ResourceName, function: str, payload: bytes) -> None:
        """Invoke a function with events of a group.

        Raises:
            AwsError: The function cannot be invoked, or has come to write to that group since it was subscribed.
            KeyError: This server does not offer functions.
        """
        await self._check_other_group(group, function)
        await self._invoke(group, function, InvocationType="Event", Payload=payload)

    async def _invoke(self, group: ResourceName, function: str, **params: Any) -> Structure:
        return await self._calls.call(
            _SERVICE, "Invoke", {"FunctionName": function, **params}, self._caller(group), group.region
        )

    async def _check_other_group(self, group: ResourceName, function: str) -> None:
        """Refuse a function's own log group: each run would write lines, and each line lead to a run."""
        wanted = {"FunctionName": function}
        found = await self._calls.call(
            _SERVICE, "GetFunctionConfiguration", wanted, account_root(group.account), group.region
        )
        if found["LoggingConfig"]["LogGroup"] == group.name:
            raise invalid(
                "The log group provided is reserved for the function log output of the destination function."
            )

    def _caller(self, group: ResourceName) -> Principal:
        arn = f"{names.arn_of(group)}:*"
        return acting_for("logs", group.region, arn, group.account, for_owner=self._open_functions)


class FunctionEndpoint:
    """Brings log events to functions (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, functions: FunctionCalls) -> None:
        """Call functions so."""
        self._functions = functions

    async def push(self, push_request: PushRequest) -> Attempt:
        """Hand events to a function, which has them on disk then; a refusal is final, and the log says so."""
        forwarded = Forwarded.unpack(push_request.body)
        group = ResourceName(*asked_at(push_request), forwarded.group)
        payload = forwarded.payload(group.account)
        calling = self._functions.deliver(group, forwarded.function, payload)
        error, attempt = await attempted(
            calling, _SERVICE, lambda refused: f"{refused.message} ({refused.code})"
        )
        if error is not None:
            logger.warning(
                "log_subscription.failed group=%s filter=%s function=%s events=%d error=%s",
                group.key,
                forwarded.filter,
                forwarded.function,
                len(forwarded.events),
                error,
            )
        return attempt

    async def close(self) -> None:
        """There is nothing to let go of."""
