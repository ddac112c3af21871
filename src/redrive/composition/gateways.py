"""Amazon API Gateway: APIs, and what is behind them."""

from collections.abc import Mapping

from redrive.composition.core import Core
from redrive.composition.extension import Extension
from redrive.protocols.aws.apigateway.access_log import AccessLog
from redrive.protocols.aws.apigateway.callers import Callers
from redrive.protocols.aws.apigateway.facade import ApiGateway
from redrive.protocols.aws.apigateway.front import ApiFront
from redrive.protocols.aws.apigateway.http_facade import HttpApiGateway
from redrive.protocols.aws.apigateway.http_front import HttpFront
from redrive.protocols.aws.apigateway.integrations import Integrations
from redrive.protocols.aws.apigateway.metrics import ApiMetrics
from redrive.protocols.aws.apigateway.outgoing import OutgoingCalls
from redrive.protocols.aws.apigateway.rest_front import RestFront
from redrive.protocols.aws.apigateway.services import ServiceIntegration
from redrive.protocols.aws.apigateway.usage import Usage
from redrive.protocols.aws.apigateway.velocity.template import Renderer
from redrive.protocols.aws.call import Facade
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.protocols.aws.wire_calls import WireCalls


def extension(core: Core, services: Mapping[str, Facade]) -> Extension:
    """APIs, whose requests are told by their host or path.

    Args:
        core: What they are built on.
        services: What may be behind them.
    """
    engine, identities = core.engine, core.sessions.identities
    renderer, clock = Renderer(), core.runtime.clock
    calls = InnerCalls(services, core.runtime)
    outgoing = OutgoingCalls(core.web)
    callers = Callers(identities, open_functions=core.settings.auth == "off")
    integrations = Integrations(
        ServiceIntegration(WireCalls(services, core.runtime, identities if identities.restricts else None)),
        calls,
        outgoing,
        callers,
        renderer,
        clock,
    )
    rest = RestFront(engine, core.authentication, integrations, renderer, Usage(engine))
    front = ApiFront(
        engine,
        rest,
        HttpFront(engine, core.authentication, calls, outgoing, callers),
        renderer,
        ApiMetrics(core.telemetry.count),
        AccessLog(core.telemetry.logs, core.stream),
    )
    return Extension(
        services={"apigateway": ApiGateway(engine), "apigatewayv2": HttpApiGateway(engine)},
        hosted=front,
        kinds=[*ApiGateway.kinds, *HttpApiGateway.kinds],
    )
