"""Tests of methods and authorizers of REST APIs: invoked as they are edited, without a deployment or a caller.

https://docs.aws.amazon.com/apigateway/latest/developerguide/how-to-test-method.html
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from redrive.aws.apigateway.authorizers.rest import RestAuthorizers
from redrive.aws.apigateway.control.apis import Apis
from redrive.aws.apigateway.control.errors import not_offered
from redrive.aws.apigateway.control.exchange import Exchange, Refusal, StagePlace
from redrive.aws.apigateway.control.records import ApiDeployment, RestApi
from redrive.aws.apigateway.control.targets import InvokeTarget
from redrive.aws.apigateway.requests.admission import check_request
from redrive.aws.apigateway.requests.answers import ApiAnswer, answer_refusal
from redrive.aws.apigateway.requests.routing import Routes
from redrive.aws.apigateway.rest.integrations import Integrations
from redrive.aws.apigateway.rest.kinds import AUTHORIZER, METHOD, METHOD_INTEGRATION, RESOURCE
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.http import Request
from redrive.model.names import id_text

_STAGE: Final = "test-invoke-stage"
_LINE_CHARS_MAX: Final = 1024


class InvokeTests:
    """Invokes methods and authorizers for their editors."""

    def __init__(
        self, engine: Engine, apis: Apis[RestApi], integrations: Integrations, authorizers: RestAuthorizers
    ) -> None:
        self._runtime = engine.runtime
        self._apis = apis
        self._integrations = integrations
        self._authorizers = authorizers

    async def test_invoke_method(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_TestInvokeMethod.html: for all who may edit the API."""
        if params.get("clientCertificateId"):
            raise not_offered("client certificates")
        api = await self._apis.api(call, params["restApiId"])
        resource, method = RESOURCE.part_in(api.tree, params), METHOD.part_in(api.tree, params)
        METHOD_INTEGRATION.part_in(api.tree, params)  # refuses a method without one
        exchange = self._exchange(call, api, params, resource["path"])
        exchange.route, exchange.resource, exchange.method = (
            resource["path"],
            resource["id"],
            method["httpMethod"],
        )
        route_match = Routes([resource]).find(exchange.path, method["httpMethod"])
        if route_match is not None:
            _, _, exchange.parameters = route_match
        log = _Log(exchange)
        log.begin()
        answer = await self._answer(exchange, api, method, log)
        return {
            "status": answer.status,
            "body": answer.body.decode("utf-8", "replace"),
            "headers": dict(answer.headers),
            "multiValueHeaders": {name: [value] for name, value in answer.headers.items()},
            "log": log.text,
            "latency": self._runtime.clock.now() - exchange.now,
        }

    async def _answer(
        self, exchange: Exchange, api: RestApi, method: Mapping[str, Any], log: "_Log"
    ) -> ApiAnswer:
        """The answer of a method as if it were deployed now; the log has what happens on the way."""
        deployment = ApiDeployment("", exchange.now, "", api.settings, api.tree)
        try:
            await check_request(exchange, method, deployment)
            async with asyncio.timeout(method["methodIntegration"]["timeoutInMillis"] / 1000):
                answer = await self._integrations.answer(
                    exchange, method, api.settings.get("binaryMediaTypes") or ()
                )
        except TimeoutError:
            refusal = Refusal("INTEGRATION_TIMEOUT")
        except Refusal as error:
            refusal = error
        else:
            log.trail()
            log.end(answer)
            return answer
        log.trail()
        log.line(f"Execution failed: {refusal.reason}")
        answer = await answer_refusal(exchange, refusal, api.tree)
        log.end(answer)
        return answer

    async def test_invoke_authorizer(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_TestInvokeAuthorizer.html; nothing is remembered."""
        if params.get("additionalContext"):
            raise not_offered("additional context of tests")
        api = await self._apis.api(call, params["restApiId"])
        authorizer = AUTHORIZER.part_in(api.tree, params)
        exchange = self._exchange(call, api, {**params, "httpMethod": "GET"}, "/")
        log = _Log(exchange)
        log.line(f"Starting authorizer: {authorizer['id']} for request: {exchange.id}")
        status, answer = 0, {}
        try:
            verdict = await self._authorizers.verdict(
                exchange, {**authorizer, "authorizerResultTtlInSeconds": 0}
            )
            answer = {"principalId": verdict.principal, "policy": verdict.policy}
            log.line(f"Using valid authorizer policy for principal: {verdict.principal}")
        except Refusal as refusal:
            status = refusal.status
            log.line(f"Execution failed: {refusal.reason}")
        latency = self._runtime.clock.now() - exchange.now
        return {"clientStatus": status, "log": log.text, "latency": latency, **answer}

    def _exchange(self, call: Call, api: RestApi, params: Structure, path: str) -> Exchange:
        """The exchange that a test describes, of a request that no client sent."""
        path, _, query = (params.get("pathWithQueryString") or path).partition("?")
        headers = {name.lower(): value for name, value in (params.get("headers") or {}).items()}
        headers |= {
            name.lower(): ",".join(values) for name, values in (params.get("multiValueHeaders") or {}).items()
        }
        domain = f"{api.id}.execute-api.{api.region}.amazonaws.com"
        body = (params.get("body") or "").encode()
        request = Request(
            params["httpMethod"],
            path,
            query,
            {"host": domain, **headers},
            body,
            "https",
            call.request.client_host,
        )
        variables = params.get("stageVariables") or {}
        stage = StagePlace(api.account, api.region, api.id, api.settings["name"], _STAGE, variables=variables)
        target = InvokeTarget(api.id, path, domain, _STAGE)
        request_id = id_text(self._runtime.message_id())
        return Exchange(request, target, stage, path, request_id, call.now, trail=[])


class _Log:
    """The log of a test, in API Gateway's words."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.text = f"Execution log for request {exchange.id}\n"

    def line(self, text: str) -> None:
        moment = datetime.fromtimestamp(self._exchange.now / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
        self.text += f"{moment} : {text[:_LINE_CHARS_MAX]}\n"

    def begin(self) -> None:
        exchange = self._exchange
        self.line(f"Starting execution for request: {exchange.id}")
        self.line(f"HTTP Method: {exchange.request.method}, Resource Path: {exchange.route}")
        self.line(f"Method request path: {dict(exchange.parameters)}")
        self.line(f"Method request query string: {dict(exchange.query)}")
        self.line(f"Method request headers: {exchange.request.headers}")
        self.line(f"Method request body before transformations: {exchange.body_text}")

    def trail(self) -> None:
        for name, value in self._exchange.trail or ():
            self.line(f"{name}: {value}")

    def end(self, answer: ApiAnswer) -> None:
        self.line(f"Method response body after transformations: {answer.body.decode('utf-8', 'replace')}")
        self.line(f"Method response headers: {answer.headers}")
        self.line(f"Method completed with status: {answer.status}")
