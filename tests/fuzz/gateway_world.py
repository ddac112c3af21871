"""API Gateway in memory, with one of everything: REST and HTTP APIs, a method, a stage, a key, a plan."""

import random
from collections.abc import Awaitable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from typing_extensions import override

from redrive.aws.apigateway.authorizers.functions import AuthorizerFunctions
from redrive.aws.apigateway.authorizers.rest import RestAuthorizers
from redrive.aws.apigateway.control.apis import integration_roles
from redrive.aws.apigateway.control.exchange import Refusal
from redrive.aws.apigateway.requests.admission import Callers
from redrive.aws.apigateway.requests.answers import ApiAnswer
from redrive.aws.apigateway.rest.facade import ApiGateway
from redrive.aws.apigateway.rest.integrations import Integrations, ServiceIntegration
from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway, WireCalls
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.service import offered, service_of
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.model.http import Request, Response
from tests.aws.wire.clients import Client
from tests.fuzz.watched import Watched

CLIENTS: Final = {name: Client(name, "rest-json") for name in ("apigateway", "apigatewayv2")}
#: They stand for ids that the server gives.
RESOURCE, DEPLOYMENT, VALIDATOR, KEY, PLAN = "RESOURCEID", "DEPLOYMENTID", "VALIDATORID", "KEYID", "PLANID"
AUTHORIZER, HTTP_AUTHORIZER = "GUARDID", "ROUTERID"
HTTP_API, ROUTE, INTEGRATION, HTTP_DEPLOYMENT = "HTTPAPIID", "ROUTEID", "INTEGRATIONID", "HTTPDEPLOYMENTID"
API: Final = "rental"
METHOD: Final = {"restApiId": API, "resourceId": RESOURCE, "httpMethod": "GET"}
_SIGNED: Final = (
    "AWS4-HMAC-SHA256 Credential=AKIA/20231114/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"
)
FUNCTION: Final = "arn:aws:lambda:us-east-1:000000000000:function:f"
GUARD: Final = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{FUNCTION}/invocations"


class _Nowhere:
    """Asks no HTTP endpoint."""

    async def ask(self, method: str, url: str, *_: Any) -> ApiAnswer:
        raise Refusal("INTEGRATION_FAILURE", reason=f"{method} {url}")


class GatewayWorld(Watched):
    """The two services on a store in memory."""

    def __init__(self) -> None:
        super().__init__()
        runtime = Runtime(self._clock, random.Random(7), "node")
        self.engine = Engine(self._store, runtime)
        identities = Identities(self.engine.resources.documents, restricts=False)
        host = SimpleNamespace(engine=self.engine, sessions=SimpleNamespace(identities=identities))
        calls, callers = InnerCalls({}, runtime), Callers(integration_roles(identities), open_functions=True)
        integrations = Integrations(
            ServiceIntegration(WireCalls({}, runtime)), calls, _Nowhere(), callers, self._clock
        )
        authorizers = RestAuthorizers(AuthorizerFunctions(calls, callers, self._clock), self._clock)
        self.facades = {
            "apigateway": ApiGateway(self.engine, identities, integrations, authorizers),
            "apigatewayv2": offered(service_of("apigatewayv2"), host),
        }
        self._gateway = Gateway(runtime, TrustAll("us-east-1"), self.facades, None)

    @override
    def handle(self, request: Request) -> Awaitable[Response]:
        return self._gateway.answer(request)

    async def open(self) -> None:
        """Make something of everything."""
        await self.engine.open()
        made = await self.call("apigateway", "CreateRestApi", name="Rental", tags={"_custom_id_": API})
        resource = await self.call(
            "apigateway", "CreateResource", restApiId=API, parentId=made["rootResourceId"], pathPart="cars"
        )
        self.known[RESOURCE] = resource["id"]
        await self.call("apigateway", "PutMethod", **METHOD, authorizationType="NONE")
        await self.call("apigateway", "PutMethodResponse", **METHOD, statusCode="200")
        templates = {"application/json": '{"statusCode": 200}'}
        await self.call("apigateway", "PutIntegration", **METHOD, type="MOCK", requestTemplates=templates)
        await self.call("apigateway", "PutIntegrationResponse", **METHOD, statusCode="200")
        await self._remember(DEPLOYMENT, "CreateDeployment", restApiId=API, stageName="prod")
        await self._remember(VALIDATOR, "CreateRequestValidator", restApiId=API, name="all")
        guard = {"name": "guard", "type": "TOKEN", "authorizerUri": GUARD}
        await self._remember(AUTHORIZER, "CreateAuthorizer", restApiId=API, **guard)
        await self.call(
            "apigateway",
            "CreateModel",
            restApiId=API,
            name="Car",
            contentType="application/json",
            schema='{"type": "object"}',
        )
        await self._remember(KEY, "CreateApiKey", name="team", value="k" * 20)
        await self._remember(PLAN, "CreateUsagePlan", name="few", quota={"limit": 2, "period": "DAY"})
        await self.call("apigatewayv2", "CreateApi", Name="Fleet", ProtocolType="HTTP", Target=FUNCTION)
        (api,) = (await self.call("apigatewayv2", "GetApis"))["Items"]
        self.known[HTTP_API] = api["ApiId"]
        for place, name, plural in (
            (ROUTE, "RouteId", "Routes"),
            (INTEGRATION, "IntegrationId", "Integrations"),
        ):
            (part,) = (await self.call("apigatewayv2", f"Get{plural}", ApiId=HTTP_API))["Items"]
            self.known[place] = part[name]
        made = await self.call(
            "apigatewayv2",
            "CreateAuthorizer",
            ApiId=HTTP_API,
            Name="router",
            AuthorizerType="REQUEST",
            AuthorizerUri=GUARD,
            AuthorizerPayloadFormatVersion="2.0",
            IdentitySource=[],
        )
        self.known[HTTP_AUTHORIZER] = made["AuthorizerId"]
        deployed = await self.call("apigatewayv2", "CreateDeployment", ApiId=HTTP_API)
        self.known[HTTP_DEPLOYMENT] = deployed["DeploymentId"]

    async def _remember(self, place: str, operation: str, **params: Any) -> None:
        self.known[place] = (await self.call("apigateway", operation, **params))["id"]

    async def ask(self, service: str, request: Request) -> Response:
        """Ask, with ids in the places of what stands for them."""
        path, query, body = request.path, request.query, request.body
        for name, value in self.known.items():
            path, query = path.replace(name, value), query.replace(name, value)
            body = body.replace(name.encode(), value.encode())
        headers = {**request.headers, "authorization": _SIGNED.format(service)}
        return await self.answer(replace(request, path=path, query=query, headers=headers, body=body))

    async def call(self, service: str, operation: str, **params: Any) -> dict[str, Any]:
        """The answer to a call that is carried out."""
        client = CLIENTS[service]
        response = await self.ask(service, client.request(operation, params))
        assert response.status < 300, (operation, response.body)
        return client.answer(operation, response)
