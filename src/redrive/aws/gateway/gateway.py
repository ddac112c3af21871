"""The way in for all AWS services: recognise, authenticate, parse, check, call, render.

What comes before "authenticate" costs next to nothing and keeps nothing, since anybody may ask for it: a body is
decompressed and parsed for known callers alone. Requests that a part of this server puts together
(`WireCalls`) go the same way; only their caller is known already.
"""

import logging
import zlib
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from redrive.access.patterns import Values
from redrive.access.principals import ANONYMOUS, Principal
from redrive.aws.gateway.authentication import Authentication, Caller
from redrive.aws.gateway.authorization import check_own_policies
from redrive.aws.gateway.inner_calls import BASE_URL
from redrive.aws.gateway.recognise import (
    Recognition,
    action,
    is_compressed,
    recognise,
    service_in_head,
    unrecognised,
)
from redrive.aws.gateway.unoffered import operation_text, refusal, service_text
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import offload
from redrive.aws.kit.service import Facades, UnopenedService
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.profiles import Profile, profile_of, profiles
from redrive.aws.wire.service import Codec, Service
from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.engine.ports import Runtime
from redrive.model.errors import RedriveError
from redrive.model.http import Request, RequestRecord, Response
from redrive.model.names import id_text

logger = logging.getLogger(__name__)

_FAILED: Final = "The request processing has failed because of an unknown error."  # "Common errors"
_NOBODY: Final = Caller(ANONYMOUS, "")  # has no region either
_GZIP: Final = 16 + zlib.MAX_WBITS
_BODY_BYTES_MAX: Final = max(profile.body_bytes_max for profile in profiles().values())
_UNSIGNED_BODY_BYTES_MAX: Final = 16 * 1024  # a subscription's confirmation has 1 KiB


class Gateway:
    """Answers requests to AWS services."""

    def __init__(
        self,
        runtime: Runtime,
        authentication: Authentication,
        facades: Facades,
        public_url: str | None,
    ) -> None:
        """Offer these services.

        Args:
            runtime: Clock, and random numbers for request ids.
            authentication: Tells who calls.
            facades: By botocore's names of the services.
            public_url: What URLs in answers begin with; None for the host that the client used.
        """
        self._runtime = runtime
        self._authentication = authentication
        self._facades = facades
        self._public_url = public_url

    def body_bytes_max(self, request: Request) -> int:
        """The largest body of a request, told by its head alone."""
        service = service_in_head(request)
        return _BODY_BYTES_MAX if service is None else profile_of(service).body_bytes_max

    async def answer(self, request: Request) -> Response:
        """Recognise, authenticate and carry out one request; errors are answers, too."""
        request_id = id_text(self._runtime.message_id())
        recognition = recognise(request)
        if request.record is not None:
            _identify(request.record, recognition, request_id)
        if recognition is None or recognition.codec is None:
            return refusal(request, request_id, self._facades) or unrecognised(request_id)
        service, codec = Service.load(recognition.service), recognition.codec
        try:
            caller = self._caller(request, recognition, service) or await self._authentication.caller(
                request, service.profile.endpoint_prefix
            )
            call = self._call(request, caller, service, request_id)
            name = action(request) if recognition.operation is None else recognition.operation
            return await carry_out(call, service, name, codec, self._facades)
        except AwsError as error:
            if request.record is not None:
                request.record.error = error.code
            is_own = not error.namespace  # the service's, not one that all services have
            if service.profile.bad_requests_alone and error.sender and is_own and not _speaks_query(request):
                error.status = HTTPStatus.BAD_REQUEST
            return codec.render_error(service, error, request_id)
        except Exception:  # a fault of ours: clients repeat what they can read
            logger.exception(
                "%s %s failed, request id %s", service.profile.name, recognition.operation, request_id
            )
            if request.record is not None:
                request.record.error = "InternalFailure"
            return codec.render_error(service, common("InternalFailure", _FAILED), request_id)

    def _caller(self, request: Request, recognition: Recognition, service: Service) -> Caller | None:
        """The caller, where nobody has to be waited for to tell it."""
        if recognition.operation in service.profile.unsigned and _follows_link(request):
            return _NOBODY
        return self._authentication.remembered_caller(request, service.profile.endpoint_prefix)

    def _call(self, request: Request, caller: Caller, service: Service, request_id: str) -> Call:
        """The call of a known caller, whose body is decompressed."""
        if request.record is not None:
            request.record.account = caller.principal.account
        if (
            "content-encoding" in request.headers
            and is_compressed(request)
            and not service.profile.keeps_coding
        ):
            decompress(request, service.profile)
        base_url = self._public_url or f"{request.scheme}://{request.headers.get('host', '')}"
        now = self._runtime.clock.now()
        return Call(request, caller.principal, caller.region, now, request_id, base_url)


def _follows_link(request: Request) -> bool:
    """True for a request that follows a link out of a message: no credential, and a form at most."""
    return credential_scope(request) is None and len(request.body) <= _UNSIGNED_BODY_BYTES_MAX


def decompress(request: Request, profile: Profile) -> None:
    """Put the body in the place of what the client compressed; to be done for known callers alone.

    Raises:
        AwsError: `SerializationException`: the service takes nothing compressed, or it is not gzip though it says so,
            incomplete, or larger than the service's bodies may be.
    """
    if not profile.takes_gzip:
        raise common("SerializationException", "This service takes no compressed content")
    unzip = zlib.decompressobj(_GZIP)
    try:
        content = unzip.decompress(request.body, profile.body_bytes_max)
    except zlib.error as error:
        raise common("SerializationException", "The content is not gzip") from error
    if unzip.unconsumed_tail:
        raise common("SerializationException", f"The content is larger than {profile.body_bytes_max} bytes")
    if not unzip.eof:
        raise common("SerializationException", "The content is incomplete")
    request.body = content
    del request.headers["content-encoding"]


def _speaks_query(request: Request) -> bool:
    """True for a request of the Query protocol, and for one that asks for its statuses."""
    is_other_protocol = "x-amz-target" in request.headers or "smithy-protocol" in request.headers
    return not is_other_protocol or request.headers.get("x-amzn-query-mode", "").lower() == "true"


def _identify(record: RequestRecord, recognition: Recognition | None, request_id: str) -> None:
    record.request_id = request_id
    if recognition is not None:
        record.service = recognition.service
        record.operation = recognition.operation or ""


async def carry_out(
    call: Call,
    service: Service,
    name: str,
    codec: Codec,
    facades: Facades,
) -> Response:
    """The answer of an operation.

    Args:
        call: Its request, its caller and its time.
        service: The service that is called.
        name: The operation, as the request names it.
        codec: Of the request's protocol.
        facades: The services that this server offers.

    Raises:
        AwsError: The service refuses.
    """
    operation = service.operation(name)
    service_name = service.profile.name
    facade = facades.get(service_name)
    if isinstance(facade, UnopenedService):
        facade = await facade.open()
    if facade is None:
        raise common("UnknownOperationException", service_text(service_name, operation.name, facades))
    verb = facade.operations.get(operation.name)
    if verb is None:
        raise common("UnknownOperationException", operation_text(service_name, operation.name))
    params = codec.parse(operation, call.request)
    operation.check(params)
    if call.principal.is_restricted:
        await check_own_policies(call, facade, service_name, operation.name, params)
    try:
        result = await verb(call, params)
    except RedriveError as error:
        raise facade.translated(error) from error
    if operation.name in service.profile.large_answers:
        return await offload(call.account, lambda: codec.render(operation, result, call.id), patient=True)
    return codec.render(operation, result, call.id)


class WireCalls:
    """Answers requests from within."""

    def __init__(self, facades: Facades, runtime: Runtime) -> None:
        """Let these services answer.

        Args:
            facades: By botocore's names of the services; one that comes later is found as well.
            runtime: Time.
        """
        self._facades = facades
        self._runtime = runtime

    async def answer(
        self,
        request: Request,
        caller: Principal,
        region: str,
        request_id: str,
        keys: Mapping[str, Values] | None = None,
        operation: str = "",
    ) -> Response:
        """The answer to a request, also where a service refuses it.

        Args:
            request: As a client would send it, without a signature.
            caller: The principal that asks.
            region: Where it asks.
            request_id: Of the answer.
            keys: Condition keys of policies that follow from why the call is made.
            operation: Its name, whatever the request says; empty: the request says it.
        """
        recognition = recognise(request)
        if recognition is None or recognition.codec is None:
            return unrecognised(request_id)
        service, codec = Service.load(recognition.service), recognition.codec
        name = operation or recognition.operation or action(request)
        call = Call(request, caller, region, self._runtime.clock.now(), request_id, BASE_URL, keys)
        try:
            answer = await carry_out(call, service, name, codec, self._facades)
            if answer.parts is None or answer.length is None:
                return answer
            body = b"".join([part async for part in answer.parts])
            return replace(answer, body=body, length=None, parts=None)
        except AwsError as error:
            return codec.render_error(service, error, request_id)
        except Exception:  # a fault of ours, which the API answers for
            logger.exception("%s %s failed, request id %s", recognition.service, name, request_id)
            return codec.render_error(service, common("InternalFailure", _FAILED), request_id)
