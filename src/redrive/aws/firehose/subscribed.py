"""Delivery streams as subscribers: what topics have for a stream becomes records of it, or goes to another server."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import orjson

from redrive.access.principals import Principal
from redrive.aws.firehose.putting import BATCH_BYTES_MAX
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import Endpoint, PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.errors import StoreUnavailable

#: The header of a request that names the role of its subscription, by its ARN.
ROLE: Final = "x-redrive-role-arn"
_RESOURCE: Final = "deliverystream/"
_TEXT_CHARS_MAX: Final = 400  # an attempt keeps 1,024 characters, and a character may take two in JSON
_THROTTLED: Final = ("ServiceUnavailableException", "LimitExceededException", "ThrottlingException")
_REASONS: Final = {
    "ResourceNotFoundException": Reason.MISSING,
    "AccessDeniedException": Reason.DENIED,
    "InvalidKMSResourceException": Reason.DENIED,
}


class SubscribedStreams:
    """Puts what topics have for streams of this server into them (`redrive.engine.ports.Endpoint`).

    A request's endpoint is the stream's ARN; each of its parts is a record.
    """

    def __init__(
        self,
        calls: InnerCalls,
        roles: ServiceRoles,
        elsewhere: Callable[[str], Endpoint | None],
        new_request_id: Callable[[], str],
    ) -> None:
        """Put records into streams that are found here.

        Args:
            calls: Calls Firehose.
            roles: The roles of subscriptions.
            elsewhere: The endpoint of a stream that the settings put on another server; None: it is on this one.
            new_request_id: Makes ids of requests.
        """
        self._new_request_id = new_request_id
        self._calls = calls
        self._roles = roles
        self._elsewhere = elsewhere

    async def push(self, push_request: PushRequest) -> Attempt:
        """Put records into a stream; they are on disk then."""
        elsewhere = self._elsewhere(push_request.endpoint)
        if elsewhere is not None:
            return await elsewhere.push(push_request)
        records = push_request.parts or (push_request.body,)
        arn = parse_arn(push_request.endpoint)
        role = push_request.headers.get(ROLE, "")
        if not await self._roles.may_act(arn.account, role, arn.region):
            return _refused(
                "AccessDeniedException", f"SNS is unable to assume role {role}", HTTPStatus.FORBIDDEN
            )
        principal = await self._roles.acting(arn.account, role, arn.region)
        attempts: list[Attempt] = []
        for together in _calls(records):
            attempts += await self._put(principal, arn.region, arn.resource.removeprefix(_RESOURCE), together)
        return _whole(attempts)

    async def _put(
        self, principal: Principal, region: str, name: str, records: Sequence[bytes]
    ) -> Sequence[Attempt]:
        params = {"DeliveryStreamName": name, "Records": [{"Data": record} for record in records]}
        try:
            answer = await self._calls.call("firehose", "PutRecordBatch", params, principal, region)
        except AwsError as refused:
            return [_refused(refused.code, refused.message, refused.status)] * len(records)
        except StoreUnavailable as away:
            return [_refused("ServiceUnavailableException", str(away), 503)] * len(records)
        request_id = self._new_request_id()
        return [_of_entry(entry, request_id) for entry in answer["RequestResponses"]]

    async def close(self) -> None:
        """There is nothing to let go of."""


def _calls(records: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Records in their order, as many together as a call takes."""
    calls: list[list[bytes]] = []
    room = 0
    for record in records:
        if not calls or len(record) > room:
            calls.append([])
            room = BATCH_BYTES_MAX
        calls[-1].append(record)
        room -= len(record)
    return list(calls)


def _of_entry(entry: Mapping[str, str], request_id: str) -> Attempt:
    if "ErrorCode" in entry:
        return _refused(entry["ErrorCode"], entry.get("ErrorMessage", ""), 503)
    return Attempt(
        AttemptResult.DELIVERED, Reason.ACCEPTED, HTTPStatus.OK, "", 0, (("request_id", request_id),)
    )


def _refused(code: str, message: str, status: int) -> Attempt:
    text = orjson.dumps({"ErrorCode": code, "ErrorMessage": message[:_TEXT_CHARS_MAX]}).decode()
    if code in _THROTTLED:
        return Attempt(AttemptResult.FAILED, Reason.THROTTLED, status, text, 0)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, status, text, 0)
    return Attempt(AttemptResult.REFUSED, _REASONS.get(code, Reason.CLIENT_ERROR), status, text, 0)


def _whole(attempts: Sequence[Attempt]) -> Attempt:
    """One attempt for all: the first that failed, or else the first, with each as a part."""
    attempt_shown = next((attempt for attempt in attempts if not attempt.delivered), attempts[0])
    if len(attempts) == 1:
        return attempt_shown
    return Attempt(
        attempt_shown.result,
        attempt_shown.reason,
        attempt_shown.status,
        attempt_shown.response,
        attempt_shown.duration_ms,
        attempt_shown.identifiers,
        tuple(attempts),
    )
