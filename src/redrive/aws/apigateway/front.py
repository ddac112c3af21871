"""The front of all APIs: finds the API and the stage of a request, and counts and logs its answer."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from redrive.aws.apigateway.control.exchange import Exchange, Refusal, StagePlace
from redrive.aws.apigateway.control.records import (
    API_PLACE,
    HTTP_API,
    REST,
    REST_API,
    ApiPlace,
    RestApi,
    api_key,
)
from redrive.aws.apigateway.control.targets import URLS, InvokeTarget, target_of
from redrive.aws.apigateway.http import front as http_front
from redrive.aws.apigateway.http.front import HttpApiFront
from redrive.aws.apigateway.requests.answers import ApiAnswer, answer_refusal, response_of
from redrive.aws.apigateway.requests.metrics import AccessLog, ApiMetrics
from redrive.aws.apigateway.rest.front import RestFront
from redrive.aws.wire.cors import preflight, sharing_headers
from redrive.engine.engine import Engine
from redrive.model.http import Request, Response
from redrive.model.names import id_text

Refuse = Callable[[Request], Response | None]
_UNKNOWN: Final = "INVALID_API_KEY"  # 403 Forbidden, as of a stage or an API that is not there


class ApiFront:
    """Answers requests to APIs (`redrive.server.app.HostedProtocol`)."""

    urls = URLS

    def __init__(
        self, engine: Engine, rest: RestFront, http: HttpApiFront, metrics: ApiMetrics, log: AccessLog
    ) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._rest = rest
        self._http = http
        self._metrics = metrics
        self._log = log

    async def answer(self, request: Request, refusal: Refuse) -> Response:  # noqa: ARG002 - APIs are for pages, too
        """Answer one request. An API is opened to the public by its owner, method by method, and so to pages."""
        request_id = id_text(self._engine.runtime.message_id())
        if request.record is not None:
            request.record.service, request.record.operation = "execute-api", request.method
            request.record.request_id = request_id
        now = self._engine.runtime.clock.now()
        target = target_of(request) or InvokeTarget("", "/", "")
        api_place = await self._documents.get(API_PLACE, target.api)
        exchange = Exchange(request, target, StagePlace("", "", target.api, "", ""), "/", request_id, now)
        if api_place is None:
            return response_of(await self._forbidden(exchange), exchange)
        if request.record is not None:
            request.record.account = api_place.account
        if api_place.kind == REST:
            return await self._rest_answer(exchange, api_place)
        return await self._http_answer(exchange, api_place)

    async def _forbidden(self, exchange: Exchange) -> ApiAnswer:
        return await answer_refusal(exchange, Refusal(_UNKNOWN))

    async def _rest_answer(self, exchange: Exchange, api_place: ApiPlace) -> Response:
        key = api_key(api_place.account, api_place.region, exchange.target.api)
        api = await self._documents.get(REST_API, key)
        stage_name, exchange.path = stage_and_path(exchange.target)
        stage = None if api is None else await self._rest.find_stage(api, stage_name)
        if api is None or stage is None or self._is_closed(api, exchange):
            return response_of(await self._forbidden(exchange), exchange)
        exchange.stage_place = StagePlace(api.account, api.region, api.id, api.settings["name"], stage_name)
        answer = await self._rest.answer(exchange, stage)
        method = _method_with_metrics(exchange, stage.settings.get("methodSettings") or {})
        route = f"{exchange.method} {exchange.route}" if exchange.method else ""
        log = stage.settings.get("accessLogSettings")
        self._count_and_log(exchange, answer, log, route=route, method=method)
        return response_of(answer, exchange)

    async def _http_answer(self, exchange: Exchange, api_place: ApiPlace) -> Response:
        key = api_key(api_place.account, api_place.region, exchange.target.api)
        api = await self._documents.get(HTTP_API, key)
        if api is None or api.settings.get("DisableExecuteApiEndpoint"):
            return response_of(http_front.own_answer(404), exchange)
        exchange.stage_place = StagePlace(api.account, api.region, api.id, api.settings["Name"], "")
        stage = await self._http.find_stage(api, exchange)
        if stage is None:
            return response_of(http_front.own_answer(404), exchange)
        cors = api.settings.get("CorsConfiguration")
        preflight_response = preflight(cors, exchange.request)
        if preflight_response is not None:
            preflight_response.status = HTTPStatus.NO_CONTENT
            return preflight_response
        answer = await self._http.answer(exchange, stage)
        log = stage.settings.get("AccessLogSettings") or {}
        settings = {"destinationArn": log.get("DestinationArn"), "format": log.get("Format")}
        route = exchange.route if exchange.resource else ""
        self._count_and_log(exchange, answer, settings, route=route, is_rest=False)
        answer.headers |= {**sharing_headers(cors, exchange.request), "apigw-requestid": exchange.extended_id}
        return response_of(answer, exchange)

    def _is_closed(self, api: RestApi, exchange: Exchange) -> bool:
        """True if the API is closed to requests to its own host, and this is one; it has no other host here."""
        return bool(api.settings.get("disableExecuteApiEndpoint")) and bool(exchange.target.api)

    def _count_and_log(
        self,
        exchange: Exchange,
        answer: ApiAnswer,
        log: Mapping[str, Any] | None,
        *,
        route: str,
        method: tuple[str, str] | None = None,
        is_rest: bool = True,
    ) -> None:
        """Count and log an answered request; see `ApiMetrics.add` and `AccessLog.write`."""
        now = self._engine.runtime.clock.now()
        latency = exchange.integration.get("latency")
        self._metrics.add(
            exchange.stage_place,
            answer.status,
            exchange.now,
            now - exchange.now,
            latency,
            route=route,
            method=method,
            is_rest=is_rest,
        )
        self._log.write(log, exchange, answer.status, len(answer.body), now)


def _method_with_metrics(exchange: Exchange, settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """The path and the name of a REST API's method, if its stage counts it by itself; else None."""
    method_settings = (
        settings.get(f"{exchange.route.removeprefix('/')}/{exchange.method}") or settings.get("*/*") or {}
    )
    return (
        (exchange.route, exchange.method)
        if exchange.method and method_settings.get("metricsEnabled")
        else None
    )


def stage_and_path(target: InvokeTarget) -> tuple[str, str]:
    """The name of the stage in a request's path, and the rest of the path."""
    if target.stage:
        return target.stage, _collapse_slashes(target.path)
    stage, slash, rest = target.path.lstrip("/").partition("/")
    return stage, _collapse_slashes(slash + rest or "/")


def _collapse_slashes(path: str) -> str:
    """A path in which each run of slashes is a single one."""
    if "//" not in path:
        return path
    parts = [part for part in path.split("/") if part]
    return f"/{'/'.join(parts)}{'/' if path.endswith('/') and parts else ''}"
