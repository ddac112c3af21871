"""Carrying out of calls whose caller is known, whether it came by the wire or from within: parse, check, call, render."""

from redrive.aws.gateway.authorization import check_own_policies
from redrive.aws.gateway.unoffered import operation_text, service_text
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import offload
from redrive.aws.kit.service import Facades, UnopenedService
from redrive.aws.wire.codec import Codec
from redrive.aws.wire.errors import common
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError
from redrive.model.http import Response


async def carried_out(
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
    called = service.profile.name
    facade = facades.get(called)
    if isinstance(facade, UnopenedService):
        facade = await facade.open()
    if facade is None:
        raise common("UnknownOperationException", service_text(called, operation.name, facades))
    verb = facade.operations.get(operation.name)
    if verb is None:
        raise common("UnknownOperationException", operation_text(called, operation.name))
    params = codec.parse(operation, call.request)
    operation.check(params)
    if call.principal.is_restricted:
        await check_own_policies(call, facade, called, operation.name, params)
    try:
        result = await verb(call, params)
    except RedriveError as refused:
        raise facade.translated(refused) from refused
    if operation.name in service.profile.large_answers:
        return await offload(call.account, lambda: codec.render(operation, result, call.id), patient=True)
    return codec.render(operation, result, call.id)
