"""The front of HTTP APIs: finds the route of a request, and answers by its integration."""

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from redrive.aws.apigateway.authorizers.http import HttpAuthorizers
from redrive.aws.apigateway.control.exchange import Exchange, Refusal
from redrive.aws.apigateway.control.records import (
    DEFAULT_STAGE,
    DEPLOYMENT,
    STAGES,
    HttpApi,
    Tree,
    deployment_key,
)
from redrive.aws.apigateway.http.kinds import INTEGRATIONS, ROUTES, SUBTYPES, TARGET, TIMEOUT_MS
from redrive.aws.apigateway.mapping.sources import as_text, route_value
from redrive.aws.apigateway.requests import function_proxy as functions
from redrive.aws.apigateway.requests.admission import SIGNED, Callers, Throttles, check_policies, signer
from redrive.aws.apigateway.requests.answers import JSON, ApiAnswer, OutgoingCalls, http_headers, url_with
from redrive.aws.apigateway.requests.routing import RoutesCache
from redrive.aws.gateway.authentication import Authentication
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.http_events import needs_base64
from redrive.aws.wire.query.query import QUERY
from redrive.aws.wire.service import Service
from redrive.engine.engine import Engine
from redrive.model.errors import StoreUnavailable

logger = logging.getLogger(__name__)

#: The texts of an HTTP API's own answers, by status.
_TEXTS: Final = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_DOCUMENTS: Final = frozenset({"map", "structure", "list"})
_FORBIDDEN: Final = frozenset(
    {"MISSING_AUTHENTICATION_TOKEN", "ACCESS_DENIED", "INVALID_SIGNATURE", "EXPIRED_TOKEN"}
)


@dataclass(frozen=True, slots=True)
class StagedApi:
    """A stage of an HTTP API, with the tree that it serves."""

    settings: Mapping[str, Any]  # Settings of the stage
    tree: Tree  # Tree that the stage serves
    source: object  # The document that has the tree: cached routes are those of a document


class HttpApiFront:
    """Answers requests to HTTP APIs."""

    def __init__(
        self,
        engine: Engine,
        authentication: Authentication,
        calls: InnerCalls,
        outgoing: OutgoingCalls,
        callers: Callers,
        authorizers: HttpAuthorizers,
    ) -> None:
        self._documents = engine.resources.documents
        self._authorizers = authorizers
        self._clock = engine.runtime.clock
        self._authentication = authentication
        self._calls = calls
        self._outgoing = outgoing
        self._callers = callers
        self._throttles = Throttles()
        self._routes = RoutesCache()

    async def find_stage(self, api: HttpApi, exchange: Exchange) -> StagedApi | None:
        """The stage with which a path begins, or the unnamed one; None: the API has neither.

        Sets the stage and the rest of the path in the exchange.
        """
        stages: Mapping[str, Any] = api.tree.get(STAGES) or {}
        target = exchange.target
        path = f"/{target.stage}{target.path}" if target.stage else target.path
        name, slash, rest = path.lstrip("/").partition("/")
        if name in stages:
            exchange.path = f"{slash}{rest}" or "/"
        else:
            name = DEFAULT_STAGE
            # What the target has as a stage is the path's first part; a slash at the end may be the target's own.
            exchange.path = path.rstrip("/") if target.stage else path
        settings = stages.get(name)
        if settings is None:
            return None
        variables = settings.get("StageVariables") or {}
        deployment_id = settings.get("DeploymentId") or ""
        exchange.stage_place = replace(
            exchange.stage_place, stage=name, variables=variables, deployment=deployment_id
        )
        if settings.get("AutoDeploy"):
            return StagedApi(settings, api.tree, api)
        key = deployment_key(api.account, api.region, api.id, deployment_id)
        deployment = await self._documents.get(DEPLOYMENT, key)
        return None if deployment is None else StagedApi(settings, deployment.tree, deployment)

    async def answer(self, exchange: Exchange, stage: StagedApi) -> ApiAnswer:
        """The answer to a request to a stage, also to a refused one."""
        try:
            return await self._admit_and_answer(exchange, stage)
        except Refusal as refusal:
            exchange.error = {"message": refusal.reason, "responseType": refusal.kind}
            return own_answer(_status_of(refusal), refusal.challenge)
        except TimeoutError:
            exchange.error = {"message": "Endpoint request timed out", "responseType": "INTEGRATION_TIMEOUT"}
            return own_answer(503)
        except StoreUnavailable:
            return own_answer(503)
        except Exception:  # a fault of ours
            logger.exception("api.failed: request %s to %s", exchange.id, exchange.stage_place.api)
            return own_answer(500)

    async def _admit_and_answer(self, exchange: Exchange, stage: StagedApi) -> ApiAnswer:
        """Find the route of a request, admit its caller and answer by the integration; raises Refusal."""
        key = f"{exchange.stage_place.api}/{stage.settings['StageName']}"
        routes = self._routes.of(key, stage.source, lambda: _as_resources(stage.tree))
        route_match = routes.find(exchange.path, exchange.request.method)
        if route_match is None:
            return own_answer(404)
        _, route, exchange.parameters = route_match
        exchange.route, exchange.resource = route["RouteKey"], route["RouteId"]
        exchange.method = route["RouteKey"].partition(" ")[0]
        if route.get("AuthorizationType") == SIGNED:
            exchange.caller = await signer(self._authentication, exchange.request)
            check_policies(exchange, None, signed=True)
        elif route.get("AuthorizationType", "NONE") != "NONE":
            await self._authorizers.admit(exchange, route, stage.tree)
        self._check_pace(exchange, stage.settings)
        integration = (stage.tree.get(INTEGRATIONS) or {}).get(route.get("Target", "").removeprefix(TARGET))
        if integration is None:
            return own_answer(500)
        started_at = self._clock.now()
        try:
            async with asyncio.timeout((integration.get("TimeoutInMillis") or TIMEOUT_MS) / 1000):
                answer = await self._call_integration(exchange, integration)
        finally:
            exchange.integration["latency"] = self._clock.now() - started_at
        exchange.integration["status"] = answer.status
        return answer

    def _check_pace(self, exchange: Exchange, settings: Mapping[str, Any]) -> None:
        """Refuse a request beyond the limits of its route, or else of the stage's routes."""
        route_limits = (settings.get("RouteSettings") or {}).get(exchange.route) or {}
        limits = {**(settings.get("DefaultRouteSettings") or {}), **route_limits}
        rate, burst = limits.get("ThrottlingRateLimit"), limits.get("ThrottlingBurstLimit")
        if rate is None or burst is None:
            return
        bucket = (exchange.stage_place.api, exchange.stage_place.stage, exchange.route)
        if not self._throttles.take(bucket, float(rate), float(burst), exchange.now):
            raise Refusal("THROTTLED")

    # ---- integrations ----------------------------------------------------------------------------------------

    async def _call_integration(self, exchange: Exchange, integration: Mapping[str, Any]) -> ApiAnswer:
        """The answer of an integration: of another server, of a service or of a function."""
        if integration["IntegrationType"] == "HTTP_PROXY":
            return await self._pass_through(exchange, integration)
        path = "/$default" if exchange.route == "$default" else exchange.route.partition(" ")[2]
        credentials = integration.get("CredentialsArn")
        source_arn = exchange.stage_place.arn(exchange.method.replace("ANY", "*"), path)
        caller = await self._callers.of(exchange, credentials, source_arn)
        subtype = integration.get("IntegrationSubtype")
        if subtype is not None:
            return await self._service_answer(exchange, integration, subtype, caller)
        function_arn = functions.function_arn(integration["IntegrationUri"])
        if integration.get("PayloadFormatVersion") == "1.0":
            event = functions.event_of(exchange, is_base64=needs_base64(exchange.request), version="1.0")
            payload = await functions.invoke(self._calls, function_arn, event, caller, exchange)
            return functions.answer_of(payload, allows_base64=True)
        event = functions.event_v2_of(exchange)
        payload = await functions.invoke(self._calls, function_arn, event, caller, exchange)
        return functions.answer_v2_of(payload)

    async def _service_answer(
        self, exchange: Exchange, integration: Mapping[str, Any], subtype: str, caller: Any
    ) -> ApiAnswer:
        """The answer of a service's operation, in the form of its query protocol."""
        service, operation, _ = SUBTYPES[subtype]
        operation_model = Service.load(service).operation(operation)
        params: dict[str, Any] = {}
        region = exchange.stage_place.region
        for name, source in (integration.get("RequestParameters") or {}).items():
            value = route_value(exchange, source)
            if name == "Region":
                region = value or region
            elif value is not None and name in operation_model.input.members:
                params[name] = _parse(value, operation_model.input.members[name].shape.type)
        try:
            result = await self._calls.call(service, operation, params, caller, region)
        except AwsError as refusal:
            exchange.integration["error"] = refusal.message
            response = QUERY.render_error(operation_model.service, refusal, exchange.id)
        else:
            response = QUERY.render(operation_model, result, exchange.id)
        return ApiAnswer(response.status, response.body, {"content-type": response.content_type})

    async def _pass_through(self, exchange: Exchange, integration: Mapping[str, Any]) -> ApiAnswer:
        """The answer of another server to the request as it came."""
        request, method = exchange.request, integration["IntegrationMethod"]
        url = url_with(exchange, integration["IntegrationUri"], exchange.parameters, request.query)
        return await self._outgoing.ask(
            request.method if method == "ANY" else method,
            url,
            http_headers(exchange),
            request.body,
            integration.get("TimeoutInMillis") or TIMEOUT_MS,
        )


def own_answer(status: int, challenge: str = "") -> ApiAnswer:
    """An answer of the API itself; `challenge`: the header that says how to authenticate."""
    headers = {"content-type": JSON, **({"www-authenticate": challenge} if challenge else {})}
    return ApiAnswer(status, orjson.dumps({"message": _TEXTS[status]}), headers)


def _status_of(refusal: Refusal) -> int:
    if refusal.kind in _FORBIDDEN:
        return 403
    if refusal.kind == "UNAUTHORIZED":
        return 401
    if refusal.kind == "THROTTLED":
        return 429
    return 503 if refusal.kind == "INTEGRATION_FAILURE" else 500


def _as_resources(tree: Tree) -> Iterator[Mapping[str, Any]]:
    """Routes as resources of REST APIs, with the default route under the path `$default`."""
    by_path: dict[str, dict[str, Any]] = {}
    for route in (tree.get(ROUTES) or {}).values():
        method, _, path = route["RouteKey"].partition(" ")
        if path:
            by_path.setdefault(path, {})[method] = route
    for path, methods in by_path.items():
        yield {"path": path, "id": path, "resourceMethods": methods}
    default = [route for route in (tree.get(ROUTES) or {}).values() if route["RouteKey"] == "$default"]
    for route in default:
        yield {"path": "$default", "id": "$default", "resourceMethods": {"ANY": route}}


def _parse(value: str, kind: str) -> Any:
    """The text of a parameter as a value of the operation's type, documents from JSON; raises Refusal if it is none."""
    try:
        if kind in {"integer", "long"}:
            return int(value)
        if kind in _DOCUMENTS:
            return json.loads(value)
    except (ValueError, RecursionError):
        raise Refusal("API_CONFIGURATION_ERROR", reason=f"{as_text(value)} is not a valid {kind}") from None
    return value
