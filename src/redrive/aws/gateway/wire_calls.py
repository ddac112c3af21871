"""Calls in the services' own protocols from within: requests that a part of this server puts together byte by byte.

As those of clients, they are recognised, parsed and checked by the published model; only their caller is known already.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from redrive.access.patterns import Values
from redrive.access.principals import Principal
from redrive.aws.gateway.gateway import carried_out
from redrive.aws.gateway.inner_calls import BASE_URL
from redrive.aws.gateway.recognise import action, recognise, unrecognised
from redrive.aws.kit.call import Call
from redrive.aws.kit.service import Facades
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.engine.ports import Runtime
from redrive.model.http import Request, Response

logger = logging.getLogger(__name__)

_FAILED: Final = "The request processing has failed because of an unknown error."


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
    ) -> Response:
        """The answer to a request, also where a service refuses it.

        Args:
            request: As a client would send it, without a signature.
            caller: The principal that asks.
            region: Where it asks.
            request_id: Of the answer.
            keys: Condition keys of policies that follow from why the call is made.
        """
        recognised = recognise(request)
        if recognised is None or recognised.codec is None:
            return unrecognised(request_id)
        service, codec = Service.load(recognised.service), recognised.codec
        name = recognised.operation or action(request)
        call = Call(request, caller, region, self._runtime.clock.now(), request_id, BASE_URL, keys)
        try:
            answer = await carried_out(call, service, name, codec, self._facades)
            if answer.parts is None or answer.length is None:
                return answer
            body = b"".join([part async for part in answer.parts])
            return replace(answer, body=body, length=None, parts=None)
        except AwsError as refused:
            return codec.render_error(service, refused, request_id)
        except Exception:  # a fault of ours, which the API answers for
            logger.exception("%s %s failed, request id %s", recognised.service, name, request_id)
            return codec.render_error(service, common("InternalFailure", _FAILED), request_id)
