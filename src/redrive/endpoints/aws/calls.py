"""Calls to Amazon's services, or to servers that stand in for them: where they are, who signs, and what answers mean.

A service says what is wrong by the name of an error; the status is its class. Who we are may be mended by whoever runs
this server, so that is tried again; what we may not do, and what is not there, is the subscriber's and is not.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import botocore.session
import orjson
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials, RefreshableCredentials

from redrive.endpoints import verdicts
from redrive.endpoints.addresses import read_url
from redrive.endpoints.http import HttpEndpoint
from redrive.endpoints.http_connection import WebhookAnswer
from redrive.endpoints.verdicts import (
    ACCEPTED,
    DISABLED,
    IN_TROUBLE,
    INVALID,
    MISSING,
    NOT_ALLOWED,
    NOT_AUTHENTICATED,
    THROTTLED,
    TOO_LARGE,
    Meaning,
    Verdict,
)
from redrive.engine.ports import PushRequest
from redrive.model.attempt import AttemptResult, Reason

REQUEST_ID: Final = "request_id"  # the identifier of an attempt that a service's id of the request is
# In JSON each may take two characters, and both go with their names into the 1,024 of an attempt.
_CODE_CHARS_MAX: Final = 60
_MESSAGE_CHARS_MAX: Final = 400

_SWITCHED_OFF: Final = Meaning(AttemptResult.REFUSED, Reason.DISABLED)  # by the owner of the key

_BY_CODE: Final = {
    "ExpiredToken": NOT_AUTHENTICATED,
    "ExpiredTokenException": NOT_AUTHENTICATED,
    "IncompleteSignature": NOT_AUTHENTICATED,
    "IncompleteSignatureException": NOT_AUTHENTICATED,
    "InvalidClientTokenId": NOT_AUTHENTICATED,
    "InvalidSignatureException": NOT_AUTHENTICATED,
    "MissingAuthenticationToken": NOT_AUTHENTICATED,
    "MissingAuthenticationTokenException": NOT_AUTHENTICATED,
    "RequestExpired": NOT_AUTHENTICATED,
    "SignatureDoesNotMatch": NOT_AUTHENTICATED,
    "UnrecognizedClientException": NOT_AUTHENTICATED,
    "AccessDenied": NOT_ALLOWED,
    "AccessDeniedException": NOT_ALLOWED,
    "InvalidKMSResourceException": NOT_ALLOWED,
    "KMSAccessDeniedException": NOT_ALLOWED,
    "KMSDisabledException": _SWITCHED_OFF,
    "KMSInvalidStateException": _SWITCHED_OFF,
    "KMSNotFoundException": MISSING,
    "ResourceNotFoundException": MISSING,
    "RequestTooLargeException": TOO_LARGE,
    "ResourceConflictException": DISABLED,  # the function is being made or changed
    "SnapStartNotReadyException": DISABLED,
    "EC2ThrottledException": THROTTLED,
    "LimitExceededException": THROTTLED,
    "RequestLimitExceeded": THROTTLED,
    "SlowDown": THROTTLED,
    "Throttling": THROTTLED,
    "ThrottlingException": THROTTLED,
    "TooManyRequestsException": THROTTLED,
}
_BY_STATUS: Final[Mapping[int, Meaning]] = {
    HTTPStatus.UNAUTHORIZED: NOT_AUTHENTICATED,
    HTTPStatus.FORBIDDEN: NOT_ALLOWED,
    HTTPStatus.NOT_FOUND: MISSING,
    HTTPStatus.REQUEST_TIMEOUT: IN_TROUBLE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TOO_LARGE,
}


class AwsAnswer(NamedTuple):
    """A service's answer."""

    status: int
    text: str  # Its body
    code: str = ""  # The name of its error; empty if it has none
    message: str = ""  # Error message
    request_id: str = ""  # Its name for the request; empty if it has none
    function_error: str = ""  # Error kind of a function that failed; empty otherwise


def of_answer(answer: AwsAnswer) -> Verdict:
    """The verdict on an answer; an error's name and text are the service's."""
    identifiers = ((REQUEST_ID, answer.request_id),) if answer.request_id else ()
    if answer.status // 100 == HTTPStatus.OK // 100:
        return ACCEPTED.verdict(answer.status, identifiers=identifiers)
    return of_error(answer.status, answer.code, answer.message)


def of_error(status: int, code: str, message: str) -> Verdict:
    """The verdict on an error, by its name or else by its status."""
    text = error_text(code, message) if code else message
    meaning = _BY_CODE.get(code)
    return verdicts.of_status(status, text, _BY_STATUS) if meaning is None else meaning.verdict(status, text)


def error_text(code: str, message: str) -> str:
    """An error in the form that delivery logs have it in: JSON, whole whatever it says."""
    text = "".join(each if each.isprintable() else " " for each in message[:_MESSAGE_CHARS_MAX])
    return orjson.dumps({"ErrorCode": code[:_CODE_CHARS_MAX], "ErrorMessage": text}).decode()


def denied(message: str) -> Verdict:
    """We cannot say who we are."""
    return NOT_AUTHENTICATED.verdict(response=message)


def unplaced(arn: str) -> Verdict:
    """The settings do not say which server has it."""
    return MISSING.verdict(response=f"The settings name no server that has {arn}")


# Credentials for calls to AWS: botocore's usual chain, asked without blocking the loop.

# Where there are none, the last place to be asked is a host that does not answer: a second each time.
_ABSENT_MS: Final = 60_000


class CredentialsUnavailable(Exception):  # noqa: N818 - the state of things
    """There should be credentials, and they cannot be had; the message says why."""


class AwsCredentials:
    """The credentials of `AWS_ACCESS_KEY_ID`, the shared files, a container or an instance.

    Keys that expire are renewed while they still hold. All of this asks files and hosts, and so has threads.

    Args:
        now: Milliseconds, for how long their absence is remembered.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._credentials_found: Credentials | None = None
        self._looking = asyncio.Lock()
        self._looked_at: int | None = None

    async def current(self) -> ReadOnlyCredentials | None:
        """The keys to sign with now; None if there are none.

        Raises:
            CredentialsUnavailable: There is a source for them, but it does not give them.
        """
        try:
            credentials = self._credentials_found or await self._look()
            if isinstance(credentials, RefreshableCredentials) and credentials.refresh_needed():
                return await asyncio.to_thread(credentials.get_frozen_credentials)
            return None if credentials is None else credentials.get_frozen_credentials()
        except Exception as error:  # botocore lets through whatever its sources raise
            raise CredentialsUnavailable(str(error)) from error

    async def _look(self) -> Credentials | None:
        """The credentials of the environment, looked for once; if there are none, again after a while."""
        async with self._looking:
            if self._credentials_found is None and not self._known_absent():
                self._credentials_found = await asyncio.to_thread(_look)
                self._looked_at = self._now()
            return self._credentials_found

    def _known_absent(self) -> bool:
        return self._looked_at is not None and self._now() - self._looked_at < _ABSENT_MS


def _look() -> Credentials | None:
    return botocore.session.Session().get_credentials()


AWS_ITSELF: Final = "aws"  # in place of a URL
_ARN_PARTS: Final = 6
# It becomes a part of a host's name, and it is a subscriber who chooses it.
_REGION: Final = re.compile("[a-z0-9-]{1,63}")
_SUFFIX: Final = "amazonaws.com"
_SUFFIXES: Final = {"aws-cn": "amazonaws.com.cn"}  # by partition
_PLACES_MAX: Final = 10_000  # ARNs whose places are remembered
_ERROR: Final = "x-amzn-errortype"
_REQUEST: Final = "x-amzn-requestid"
_FUNCTION_ERROR: Final = "x-amz-function-error"


@dataclass(frozen=True, slots=True)
class ResourceAddress:
    """The address of a resource."""

    service: str  # The service, as signatures name it
    region: str
    name: str  # Name of the resource: a function's with its qualifier, a stream's
    url: str  # The server, without a slash at the end
    is_aws: bool  # The endpoint is AWS, not another server that speaks its API
    keys: ReadOnlyCredentials | None = field(repr=False)  # To sign with; None: those of the chain


def read_place(arn: str, value: str) -> ResourceAddress:
    """The endpoint, region and credentials for an ARN.

    Args:
        arn: `arn:…:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER]` or `arn:…:firehose:…:deliverystream/NAME`.
        value: `aws`, or a URL: `{region}` and `{name}` in it are the resource's, a user and a password the keys to sign
            with.

    Raises:
        ValueError: It is no such ARN, or no URL.
    """
    parts = arn.split(":", _ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS:
        raise ValueError(f"{arn} is not an ARN")
    _, partition, service, region, _, resource = parts
    if not _REGION.fullmatch(region):
        raise ValueError(f"{arn} names no region")
    name = resource.replace("/", ":", 1).partition(":")[2]  # behind `function:` or `deliverystream/`
    if value == AWS_ITSELF:
        suffix = _SUFFIXES.get(partition, _SUFFIX)
        return ResourceAddress(
            service, region, name, f"https://{service}.{region}.{suffix}", is_aws=True, keys=None
        )
    filled = value.replace("{region}", region).replace("{name}", quote(name, safe=""))
    destination = read_url(filled)
    keys = None
    if destination.user:
        keys = ReadOnlyCredentials(destination.user, destination.password, None)
    return ResourceAddress(service, region, name, str(destination.url).rstrip("/"), is_aws=False, keys=keys)


class AwsClient:
    """Signs calls and makes them over the connections of webhooks, by the same rules of where those may go.

    Args:
        http: Those connections.
        where: The value of the settings for an ARN; None if they have none.
        credentials: Those of the chain.
    """

    def __init__(
        self, http: HttpEndpoint, where: Callable[[str], str | None], credentials: AwsCredentials
    ) -> None:
        self._http = http
        self._where = where
        self._credentials = credentials
        self.place = lru_cache(_PLACES_MAX)(self._read_place)

    def _read_place(self, arn: str) -> ResourceAddress | Verdict:
        """The place of a resource, or the meaning of its having none."""
        value = self._where(arn)
        if value is None:
            return unplaced(arn)
        try:
            return read_place(arn, value)
        except ValueError as error:
            return INVALID.verdict(response=str(error))

    async def call(self, address: ResourceAddress, push_request: PushRequest) -> AwsAnswer | Verdict:
        """Make a signed call of an endpoint, a URL, at an address; its answer, or the verdict where there is none."""
        try:
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                keys = address.keys or await self._credentials.current()
                if keys is None and address.is_aws:
                    return denied("No credentials were found to sign with")
                answer = await self._http.ask(_signed(address, push_request, keys))
        except TimeoutError as error:
            return verdicts.of_failure(error)
        except CredentialsUnavailable as error:
            return denied(str(error))
        return answer if isinstance(answer, Verdict) else _read(answer)


def _signed(
    address: ResourceAddress, push_request: PushRequest, keys: ReadOnlyCredentials | None
) -> PushRequest:
    """The request with its signature. Without keys it goes unsigned: emulators accept that, and others refuse it.

    The date in the signature is the real one, whatever clock the server goes by: whoever checks it has no other.
    """
    headers = {"User-Agent": "redrive", **push_request.headers}
    if keys is not None:
        request = AWSRequest(
            push_request.method,
            push_request.endpoint,
            data=push_request.body,
            headers={**push_request.headers, "Content-Type": push_request.content_type},
        )
        SigV4Auth(keys, address.service, address.region).add_auth(request)
        headers |= dict(request.headers.items())
        del headers["Content-Type"]  # `PushRequest` has a field for it
    return PushRequest(
        push_request.endpoint,
        push_request.body,
        push_request.content_type,
        headers,
        push_request.timeout_ms,
        headers_kept=(_ERROR, _REQUEST, _FUNCTION_ERROR),
        answer_bytes_max=push_request.answer_bytes_max,
    )


def _read(answer: WebhookAnswer) -> AwsAnswer:
    """An answer, with its error by name: of a header or of the body, in any of the spellings that there are."""
    headers = dict(answer.headers)
    document = _document(answer.text) if answer.status // 100 != 2 else {}  # noqa: PLR2004 - not an error
    code = headers.get(_ERROR) or str(document.get("__type") or document.get("code") or "")
    message = document.get("message") or document.get("Message") or answer.text
    return AwsAnswer(
        answer.status,
        answer.text,
        code.rpartition("#")[2].partition(":")[0],
        str(message),
        headers.get(_REQUEST, ""),
        headers.get(_FUNCTION_ERROR, ""),
    )


def _document(text: str) -> Mapping[str, Any]:
    """The error document of an answer; empty if it is not a JSON object."""
    try:
        document = orjson.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
