"""The front of REST APIs: admits a request to its method, and answers by the method's integration."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from redrive.aws.apigateway.authorizers.rest import CUSTOM, RestAuthorizers
from redrive.aws.apigateway.control.exchange import Exchange, Refusal
from redrive.aws.apigateway.control.records import DEPLOYMENT, STAGES, ApiDeployment, RestApi, deployment_key
from redrive.aws.apigateway.control.targets import BODY_BYTES_MAX
from redrive.aws.apigateway.requests.admission import SIGNED, Usage, check_policies, check_request, signer
from redrive.aws.apigateway.requests.answers import ApiAnswer, answer_refusal
from redrive.aws.apigateway.requests.routing import RoutesCache
from redrive.aws.apigateway.rest.integrations import Integrations
from redrive.aws.apigateway.rest.kinds import RESOURCES
from redrive.aws.gateway.authentication import Authentication
from redrive.engine.engine import Engine
from redrive.model.errors import StoreUnavailable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeployedStage:
    """A stage with the deployment that it serves."""

    settings: Mapping[str, Any]  # Settings of the stage
    deployment: ApiDeployment  # The deployment that the stage serves


class RestFront:
    """Answers requests to REST APIs."""

    def __init__(
        self,
        engine: Engine,
        authentication: Authentication,
        integrations: Integrations,
        usage: Usage,
        authorizers: RestAuthorizers,
    ) -> None:
        self._documents = engine.resources.documents
        self._authentication = authentication
        self._integrations = integrations
        self._usage = usage
        self._authorizers = authorizers
        self._routes = RoutesCache()

    async def find_stage(self, api: RestApi, name: str) -> DeployedStage | None:
        """A stage of an API; None: it has no such stage."""
        settings = (api.tree.get(STAGES) or {}).get(name)
        if settings is None:
            return None
        key = deployment_key(api.account, api.region, api.id, settings["deploymentId"])
        deployment = await self._documents.get(DEPLOYMENT, key)
        return None if deployment is None else DeployedStage(settings, deployment)

    async def answer(self, exchange: Exchange, stage: DeployedStage) -> ApiAnswer:
        """The answer to a request to a stage, also to a refused one."""
        deployment, settings = stage.deployment, stage.settings
        api_place = exchange.stage_place
        exchange.stage_place = replace(
            api_place, deployment=deployment.id, variables=settings.get("variables") or {}
        )
        try:
            return await self._admit_and_answer(exchange, stage)
        except Refusal as error:
            refusal = error
        except StoreUnavailable:
            refusal = Refusal("INTEGRATION_FAILURE", reason="The store is unavailable")
        except Exception:  # a fault of ours
            logger.exception("api.failed: request %s to %s", exchange.id, api_place.api)
            refusal = Refusal("API_CONFIGURATION_ERROR")
        return await answer_refusal(exchange, refusal, deployment.tree)

    async def _admit_and_answer(self, exchange: Exchange, stage: DeployedStage) -> ApiAnswer:
        """Find the method of a request, admit its caller, check it and answer by the integration; raises Refusal."""
        deployment, request = stage.deployment, exchange.request
        if len(request.body) > BODY_BYTES_MAX:
            raise Refusal("REQUEST_TOO_LARGE")
        routes = self._routes.of(
            f"{exchange.stage_place.api}/{deployment.id}", deployment, deployment.tree[RESOURCES].values
        )
        route_match = routes.find(exchange.path, request.method)
        if route_match is None:
            raise Refusal("MISSING_AUTHENTICATION_TOKEN")
        resource, method, exchange.parameters = route_match
        exchange.route, exchange.resource = resource["path"], resource["id"]
        exchange.method = method["httpMethod"]
        signed = method["authorizationType"] == SIGNED
        if signed:
            exchange.caller = await signer(self._authentication, request)
        check_policies(exchange, deployment.settings.get("policy"), signed=signed)
        if method["authorizationType"] == CUSTOM:
            await self._authorizers.admit(exchange, method, deployment.tree)
        elif not signed and method["authorizationType"] != "NONE":  # an unknown type must not open the method
            raise Refusal("AUTHORIZER_CONFIGURATION_ERROR")
        by_authorizer = deployment.settings.get("apiKeySource") == "AUTHORIZER"
        await self._usage.admit(exchange, method, stage.settings, by_authorizer=by_authorizer)
        await check_request(exchange, method, deployment)
        binary = deployment.settings.get("binaryMediaTypes") or ()
        integration = method["methodIntegration"]
        try:
            async with asyncio.timeout(integration["timeoutInMillis"] / 1000):
                return await self._integrations.answer(exchange, method, binary)
        except TimeoutError:
            raise Refusal("INTEGRATION_TIMEOUT") from None
