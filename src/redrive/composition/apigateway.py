"""Amazon API Gateway: APIs, and what is behind them."""

from redrive.aws.apigateway.authorizers.functions import AuthorizerFunctions
from redrive.aws.apigateway.authorizers.http import HttpAuthorizers, Issuers
from redrive.aws.apigateway.authorizers.rest import RestAuthorizers
from redrive.aws.apigateway.control.apis import integration_roles
from redrive.aws.apigateway.front import ApiFront
from redrive.aws.apigateway.http.front import HttpApiFront
from redrive.aws.apigateway.requests.admission import Callers, Usage
from redrive.aws.apigateway.requests.answers import OutgoingCalls
from redrive.aws.apigateway.requests.metrics import AccessLog, ApiMetrics
from redrive.aws.apigateway.rest.facade import ApiGateway
from redrive.aws.apigateway.rest.front import RestFront
from redrive.aws.apigateway.rest.integrations import Integrations, ServiceIntegration
from redrive.aws.gateway.gateway import WireCalls
from redrive.aws.kit.service import offered, service_of
from redrive.composition.core import Core
from redrive.composition.extension import Extension, Interface
from redrive.runtime.machine import SystemClock


def extension(core: Core) -> Extension:
    """API Gateway; requests to APIs are told by their host or path."""
    engine, identities = core.engine, core.sessions.identities
    clock, calls = core.runtime.clock, core.calls
    outgoing = OutgoingCalls(core.web)
    callers = Callers(integration_roles(identities), open_functions=core.settings.auth == "off")
    integrations = Integrations(
        ServiceIntegration(WireCalls(core.services, core.runtime)), calls, outgoing, callers, clock
    )
    functions = AuthorizerFunctions(calls, callers, clock)
    rest_authorizers = RestAuthorizers(functions, clock)
    http_authorizers = HttpAuthorizers(functions, Issuers(core.web, SystemClock()))
    rest = RestFront(engine, core.authentication, integrations, Usage(engine), rest_authorizers)
    front = ApiFront(
        engine,
        rest,
        HttpApiFront(engine, core.authentication, calls, outgoing, callers, http_authorizers),
        ApiMetrics(core.telemetry.count),
        AccessLog(core.telemetry.logs, core.stream),
    )
    return Extension(
        interface=Interface(
            services={
                "apigateway": ApiGateway(engine, identities, integrations, rest_authorizers),
                "apigatewayv2": offered(service_of("apigatewayv2"), core),
            },
            hosted=front,
        )
    )
