"""API Gateway is asked for what may be spoilt anywhere: it refuses by its own errors, and a refusal changes nothing."""

import asyncio
import json
from dataclasses import replace
from typing import Any, Final

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.model.http import Request
from tests.fuzz.gateway_world import (
    API,
    AUTHORIZER,
    CLIENTS,
    DEPLOYMENT,
    FUNCTION,
    GUARD,
    HTTP_API,
    HTTP_AUTHORIZER,
    INTEGRATION,
    KEY,
    METHOD,
    PLAN,
    RESOURCE,
    ROUTE,
    VALIDATOR,
    GatewayWorld,
)
from tests.fuzz.spoiling import spoilt
from tests.fuzz.watched import Worlds

_OF_API: Final = {"restApiId": API}
_STAGE: Final = {**_OF_API, "stageName": "prod"}
_PLAN: Final = {"usagePlanId": PLAN}


def _patches(*operations: tuple[str, str, str]) -> dict[str, Any]:
    return {"patchOperations": [{"op": op, "path": path, "value": value} for op, path, value in operations]}


_DEFINITION: Final = {
    "openapi": "3.0.1",
    "info": {"title": "Cars", "version": "1"},
    "x-amazon-apigateway-binary-media-types": ["image/png"],
    "x-amazon-apigateway-request-validators": {"all": {"validateRequestBody": True}},
    "x-amazon-apigateway-gateway-responses": {
        "THROTTLED": {"statusCode": 429, "responseTemplates": {"a/b": "x"}}
    },
    "components": {
        "schemas": {"Car": {"type": "object"}},
        "securitySchemes": {
            "Guard": {
                "type": "apiKey",
                "name": "X-Token",
                "in": "header",
                "x-amazon-apigateway-authorizer": {
                    "type": "request",
                    "authorizerUri": GUARD,
                    "authorizerResultTtlInSeconds": 0,
                    "authorizerPayloadFormatVersion": "2.0",
                    "enableSimpleResponses": True,
                },
            }
        },
    },
    "paths": {
        "/cars/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True}],
            "get": {
                "responses": {
                    "200": {"description": "d", "content": {"a/b": {"schema": {"$ref": "#/x/Car"}}}}
                },
                "security": [{"Guard": []}],
                "x-amazon-apigateway-request-validator": "all",
                "x-amazon-apigateway-integration": {
                    "type": "aws_proxy",
                    "httpMethod": "POST",
                    "uri": FUNCTION,
                    "timeoutInMillis": 1000,
                    "payloadFormatVersion": "2.0",
                    "responses": {"default": {"statusCode": "200"}},
                },
            },
        }
    },
}
_BODY: Final = json.dumps(_DEFINITION)
#: A request of each operation that changes something and has a body, by service.
RIGHT: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "apigateway": {
        "CreateApiKey": {"name": "k", "enabled": True, "value": "v" * 20, "tags": {"a": "b"}},
        "CreateAuthorizer": {
            **_OF_API,
            "name": "other",
            "type": "REQUEST",
            "authorizerUri": GUARD,
            "authorizerCredentials": "arn:aws:iam::000000000000:role/r",
            "identitySource": "method.request.header.A,context.stage",
            "authorizerResultTtlInSeconds": 5,
        },
        "UpdateAuthorizer": {
            **_OF_API,
            "authorizerId": AUTHORIZER,
            **_patches(
                ("replace", "/identityValidationExpression", "[a-z]+"),
                ("replace", "/authorizerResultTtlInSeconds", "0"),
            ),
        },
        "TestInvokeAuthorizer": {
            **_OF_API,
            "authorizerId": AUTHORIZER,
            "headers": {"Authorization": "a"},
            "pathWithQueryString": "/cars?a=b",
            "stageVariables": {"a": "b"},
        },
        "TestInvokeMethod": {
            **METHOD,
            "headers": {"A": "b"},
            "multiValueHeaders": {"B": ["c", "d"]},
            "pathWithQueryString": "/cars?a=b",
            "body": "{}",
            "stageVariables": {"a": "b"},
        },
        "CreateDeployment": {**_STAGE, "variables": {"a": "b"}, "description": "d"},
        "CreateModel": {
            **_OF_API,
            "name": "Order",
            "contentType": "application/json",
            "schema": '{"type": "object"}',
        },
        "CreateRequestValidator": {**_OF_API, "name": "some", "validateRequestBody": True},
        "CreateResource": {**_OF_API, "parentId": RESOURCE, "pathPart": "{id}"},
        "CreateRestApi": {
            "name": "Other",
            "binaryMediaTypes": ["image/png"],
            "minimumCompressionSize": 5,
            "endpointConfiguration": {"types": ["REGIONAL"]},
            "policy": '{"Version": "2012-10-17", "Statement": []}',
        },
        "CreateStage": {**_OF_API, "stageName": "test", "deploymentId": DEPLOYMENT, "variables": {"a": "b"}},
        "CreateUsagePlan": {
            "name": "p",
            "apiStages": [{"apiId": API, "stage": "prod", "throttle": {"/cars/GET": {"rateLimit": 1.5}}}],
            "throttle": {"burstLimit": 1, "rateLimit": 1.5},
            "quota": {"limit": 1, "offset": 0, "period": "WEEK"},
        },
        "CreateUsagePlanKey": {**_PLAN, "keyId": KEY, "keyType": "API_KEY"},
        "ImportRestApi": {"body": _BODY},
        "PutGatewayResponse": {
            **_OF_API,
            "responseType": "THROTTLED",
            "statusCode": "429",
            "responseParameters": {"gatewayresponse.header.A": "'b'"},
            "responseTemplates": {"application/json": "{}"},
        },
        "PutIntegration": {
            **METHOD,
            "type": "HTTP",
            "integrationHttpMethod": "POST",
            "uri": "http://localhost/",
            "requestParameters": {"integration.request.header.A": "method.request.header.A"},
            "requestTemplates": {"application/json": "$input.body"},
            "timeoutInMillis": 500,
            "contentHandling": "CONVERT_TO_TEXT",
        },
        "PutIntegrationResponse": {
            **METHOD,
            "statusCode": "200",
            "selectionPattern": "2..",
            "contentHandling": "CONVERT_TO_TEXT",
        },
        "PutMethod": {
            **METHOD,
            "httpMethod": "POST",
            "authorizationType": "NONE",
            "requestModels": {"a/b": "Car"},
        },
        "PutMethodResponse": {**METHOD, "statusCode": "201", "responseModels": {"a/b": "Car"}},
        "PutRestApi": {**_OF_API, "body": _BODY, "mode": "overwrite"},
        "UpdateAccount": _patches(("replace", "/cloudwatchRoleArn", "arn:aws:iam::000000000000:role/r")),
        "UpdateApiKey": {"apiKey": KEY, **_patches(("replace", "/enabled", "true"))},
        "UpdateDeployment": {
            **_OF_API,
            "deploymentId": DEPLOYMENT,
            **_patches(("replace", "/description", "d")),
        },
        "UpdateGatewayResponse": {
            **_OF_API,
            "responseType": "THROTTLED",
            **_patches(("replace", "/statusCode", "430")),
        },
        "UpdateIntegration": {
            **METHOD,
            **_patches(
                ("replace", "/timeoutInMillis", "500"),
                ("add", "/requestTemplates/a~1b", "x"),
                ("replace", "/type", "MOCK"),
                ("add", "/cacheKeyParameters/a", "a"),
            ),
        },
        "UpdateIntegrationResponse": {
            **METHOD,
            "statusCode": "200",
            **_patches(("replace", "/selectionPattern", "5..")),
        },
        "UpdateMethod": {
            **METHOD,
            **_patches(("replace", "/apiKeyRequired", "true"), ("replace", "/authorizationType", "NONE")),
        },
        "UpdateMethodResponse": {
            **METHOD,
            "statusCode": "200",
            **_patches(("add", "/responseModels/a~1b", "Car")),
        },
        "UpdateModel": {
            **_OF_API,
            "modelName": "Car",
            **_patches(("replace", "/schema", '{"type": "object"}')),
        },
        "UpdateRequestValidator": {
            **_OF_API,
            "requestValidatorId": VALIDATOR,
            **_patches(("replace", "/validateRequestBody", "true")),
        },
        "UpdateResource": {**_OF_API, "resourceId": RESOURCE, **_patches(("replace", "/pathPart", "vans"))},
        "UpdateRestApi": {
            **_OF_API,
            **_patches(("replace", "/minimumCompressionSize", "7"), ("add", "/binaryMediaTypes/a~1b", "")),
        },
        "UpdateStage": {
            **_STAGE,
            **_patches(
                ("replace", "/*/*/throttling/rateLimit", "1.5"),
                ("replace", "/deploymentId", DEPLOYMENT),
                ("replace", "/variables/a", "b"),
                ("replace", "/accessLogSettings/format", "$context.requestId"),
            ),
        },
        "UpdateUsagePlan": {
            **_PLAN,
            **_patches(
                ("add", "/apiStages", f"{API}:prod"),
                ("replace", "/quota/limit", "5"),
                ("replace", "/throttle/rateLimit", "1.5"),
                ("replace", f"/apiStages/{API}:prod/throttle/~1cars~1GET/rateLimit", "1.5"),
            ),
        },
    },
    "apigatewayv2": {
        "CreateApi": {
            "Name": "Vans",
            "ProtocolType": "HTTP",
            "CorsConfiguration": {"AllowOrigins": ["*"], "MaxAge": 5},
        },
        "CreateAuthorizer": {
            "ApiId": HTTP_API,
            "Name": "issuer",
            "AuthorizerType": "JWT",
            "IdentitySource": ["$request.header.Authorization"],
            "JwtConfiguration": {"Issuer": "https://issuer.example", "Audience": ["cars"]},
        },
        "UpdateAuthorizer": {
            "ApiId": HTTP_API,
            "AuthorizerId": HTTP_AUTHORIZER,
            "IdentitySource": ["$request.header.A", "$context.stage"],
            "AuthorizerResultTtlInSeconds": 5,
            "EnableSimpleResponses": True,
        },
        "CreateIntegration": {
            "ApiId": HTTP_API,
            "IntegrationType": "HTTP_PROXY",
            "IntegrationMethod": "GET",
            "IntegrationUri": "http://localhost/",
            "PayloadFormatVersion": "1.0",
            "TimeoutInMillis": 500,
        },
        "CreateRoute": {
            "ApiId": HTTP_API,
            "RouteKey": "GET /vans/{id}",
            "Target": f"integrations/{INTEGRATION}",
        },
        "CreateStage": {
            "ApiId": HTTP_API,
            "StageName": "test",
            "AutoDeploy": True,
            "DefaultRouteSettings": {"ThrottlingRateLimit": 1.5, "ThrottlingBurstLimit": 1},
            "StageVariables": {"a": "b"},
        },
        "ImportApi": {"Body": _BODY},
        "ReimportApi": {"ApiId": HTTP_API, "Body": _BODY},
        "UpdateApi": {"ApiId": HTTP_API, "Name": "Lorries", "CorsConfiguration": {"AllowMethods": ["GET"]}},
        "UpdateIntegration": {"ApiId": HTTP_API, "IntegrationId": INTEGRATION, "TimeoutInMillis": 700},
        "UpdateRoute": {"ApiId": HTTP_API, "RouteId": ROUTE, "RouteKey": "ANY /vans"},
        "UpdateStage": {
            "ApiId": HTTP_API,
            "StageName": "$default",
            "RouteSettings": {"$default": {"ThrottlingBurstLimit": 1}},
        },
    },
}
_OPERATIONS: Final = [
    (service, operation) for service in sorted(RIGHT) for operation in sorted(RIGHT[service])
]


Asked = tuple[str, str, Request]
"""A service, its operation, and the request."""


@st.composite
def requests(draw: st.DrawFn) -> Asked:
    """The request of an operation, up to two of whose values in the body are spoilt."""
    service, operation = draw(st.sampled_from(_OPERATIONS))
    request = CLIENTS[service].request(operation, RIGHT[service][operation])
    document: Any = orjson.loads(request.body)
    for _ in range(draw(st.integers(0, 2))):
        document = spoilt(draw, document)
    return service, operation, replace(request, body=json.dumps(document).encode())


async def ask_each(asked: list[Asked]) -> None:
    world = GatewayWorld()
    await world.open()
    try:
        for service, operation, request in asked:
            before = world.everything()
            response = await world.ask(service, request)
            assert response.status < 500, (operation, request.body, response.body)
            if response.status >= 400:
                assert orjson.loads(response.body)
                assert world.everything() == before, (operation, request.body, response.body)
    finally:
        await world.close()


@settings(max_examples=30)
@given(st.lists(requests(), min_size=1, max_size=8))
def test_a_refusal_of_api_gateway_changes_nothing_and_nothing_fails(asked: list[Asked]) -> None:
    asyncio.run(ask_each(asked))


def test_the_unmodified_requests_of_api_gateway_are_accepted() -> None:
    async def ask_all() -> list[tuple[str, bytes]]:
        refused, worlds = [], Worlds(GatewayWorld)
        for service, operation in _OPERATIONS:
            world = await worlds.next()
            response = await world.ask(
                service, CLIENTS[service].request(operation, RIGHT[service][operation])
            )
            if response.status >= 300:
                refused.append((operation, response.body))
        await worlds.close()
        return refused

    assert asyncio.run(ask_all()) == []
