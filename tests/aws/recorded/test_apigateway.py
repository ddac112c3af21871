"""API Gateway's recorded answers."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
import pytest

from redrive.model.http import Request
from tests.aws.stage import HOST, Stage, on_stage

Play = Callable[[Stage, str, str], Awaitable[None]]
_INTEGRATION: Final = "x-amazon-apigateway-integration"


def played(play: Play) -> None:
    """Play with an API and a resource of it."""

    async def prepared(stage: Stage) -> None:
        api = await stage.call(stage.root, "apigateway", "CreateRestApi", name="Rental")
        resource = await stage.call(
            stage.root,
            "apigateway",
            "CreateResource",
            restApiId=api["id"],
            parentId=api["rootResourceId"],
            pathPart="cars",
        )
        await play(stage, api["id"], resource["id"])

    on_stage(prepared, auth="off")


@pytest.mark.parametrize(
    ("op", "path", "value", "text"),
    [
        (
            "remove",
            "/pathPart",
            None,
            "Invalid patch path  '/pathPart' specified for op 'remove'. Please choose supported operations",
        ),
        (
            "add",
            "/pathPart",
            "b",
            "Invalid patch path  '/pathPart' specified for op 'add'. Please choose supported operations",
        ),
        (
            "replace",
            "/invalid",
            "b",
            "Invalid patch path  '/invalid' specified for op 'replace'. Must be one of: [/parentId, /pathPart]",
        ),
        ("replace", "/parentId", "unknown", "Invalid Resource identifier specified"),
    ],
)
def test_a_resource_is_moved_and_renamed_alone(op: str, path: str, value: str | None, text: str) -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        operation = {"op": op, "path": path, **({} if value is None else {"value": value})}
        params = {"restApiId": api, "resourceId": resource, "patchOperations": [operation]}
        refusal = await stage.refusal(stage.root, "apigateway", "UpdateResource", **params)
        assert refusal.partition(": ")[2] == text

    played(play)


def test_a_resource_is_not_below_itself() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        operation = {"op": "replace", "path": "/parentId", "value": resource}
        params = {"restApiId": api, "resourceId": resource, "patchOperations": [operation]}
        refusal = await stage.refusal(stage.root, "apigateway", "UpdateResource", **params)
        assert refusal == "BadRequestException: Resources cannot be cyclical."

    played(play)


def test_a_definition_whose_mappings_are_no_texts_is_refused() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        integration = {"type": "MOCK", "requestParameters": {"integration.request.header.x": True}}
        paths = {"/cars": {"get": {"responses": {}, _INTEGRATION: integration}}}
        document = {"swagger": "2.0", "info": {"title": "Rental"}, "paths": paths}
        body = orjson.dumps(document)
        refusal = await stage.refusal(stage.root, "apigateway", "ImportRestApi", body=body)
        assert refusal == "BadRequestException: Invalid OpenAPI input."

    played(play)


_LAMBDA: Final = (
    "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/"
    "arn:aws:lambda:us-east-1:111111111111:function:f/invocations"
)
_ABSENT: Final[list[tuple[str, dict[str, Any], str]]] = [
    (
        "PutMethod",
        {"httpMethod": "GET", "authorizationType": "NONE"},
        "Invalid Resource identifier specified",
    ),
    ("GetIntegration", {"httpMethod": "GET"}, "Invalid Resource identifier specified"),
    (
        "GetIntegrationResponse",
        {"httpMethod": "GET", "statusCode": "200"},
        "Invalid Resource identifier specified",
    ),
    ("UpdateMethod", {"httpMethod": "GET"}, "Invalid Resource identifier specified"),
    (
        "PutIntegrationResponse",
        {"httpMethod": "GET", "statusCode": "200"},
        "Invalid Resource identifier specified",
    ),
    (
        "GetRequestValidator",
        {"requestValidatorId": "v"},
        "Invalid Request Validator identifier specified",
    ),
    (
        "DeleteRequestValidator",
        {"requestValidatorId": "v"},
        "Invalid Request Validator identifier specified",
    ),
    ("GetModel", {"modelName": "Car"}, "Invalid model name specified: Car"),
    ("CreateRequestValidator", {"name": "v"}, "Invalid REST API identifier specified"),
]


def of_method(operation: str, resource: str) -> dict[str, str]:
    """The resource that an operation names, if it does."""
    return {"resourceId": resource} if "Method" in operation or "Integration" in operation else {}


def test_an_absent_api_is_told_by_what_is_below_it() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        assert api != "absent"
        for operation, params, text in _ABSENT:
            named = {"restApiId": "absent", **of_method(operation, resource)}
            refusal = await stage.refusal(stage.root, "apigateway", operation, **named, **params)
            assert refusal.partition(": ")[2] == text

    played(play)


_METHOD: Final = {"httpMethod": "GET"}
_INVALID: Final[list[tuple[str, dict[str, Any], str]]] = [
    (
        "UpdateRestApi",
        {"patchOperations": [{"op": "wrong", "path": "/name", "value": "x"}]},
        (
            "1 validation error detected: Value 'wrong' at 'updateRestApiInput.patchOperations.1.member.op' failed to"
            " satisfy constraint: Member must satisfy enum value set: [add, remove, move, test, replace, copy]"
        ),
    ),
    (
        "PutIntegration",
        {**_METHOD, "type": "wrong"},
        (
            "1 validation error detected: Value 'wrong' at 'putIntegrationInput.type' failed to satisfy"
            " constraint: Member"
            " must satisfy enum value set: [HTTP, MOCK, AWS_PROXY, HTTP_PROXY, AWS]"
        ),
    ),
    (
        "PutIntegration",
        {**_METHOD, "type": "HTTP", "uri": "http://localhost"},
        "Enumeration value for HttpMethod must be non-empty",
    ),
    (
        "PutIntegration",
        {**_METHOD, "type": "HTTP", "integrationHttpMethod": "GET", "uri": "no address"},
        "Invalid HTTP endpoint specified for URI",
    ),
    (
        "PutIntegration",
        {**_METHOD, "type": "AWS", "integrationHttpMethod": "POST", "uri": "no ARN"},
        "Invalid ARN specified in the request",
    ),
    (
        "PutIntegration",
        {
            **_METHOD,
            "type": "AWS",
            "integrationHttpMethod": "POST",
            "uri": "arn:aws:apigateway:us-east-1:sqs:q",
        },
        "AWS ARN for integration must contain path or action",
    ),
    (
        "PutIntegration",
        {
            **_METHOD,
            "type": "AWS_PROXY",
            "integrationHttpMethod": "POST",
            "uri": "arn:aws:apigateway:us-east-1:sqs:action/SendMessage",
        },
        "Integrations of type 'AWS_PROXY' currently only supports Lambda function and Firehose stream invocations.",
    ),
    (
        "PutMethod",
        {
            "httpMethod": "PUT",
            "authorizationType": "NONE",
            "requestParameters": {
                "method.request.querystring.car": True,
                "method.request.header.car": True,
            },
        },
        "Parameter names must be unique across querystring, header and path",
    ),
    ("CreateModel", {"name": "", "contentType": "application/json"}, "Model name must be non-empty"),
    (
        "CreateModel",
        {"name": "Car", "contentType": "application/json", "schema": "{}"},
        "Model schema must have at least 1 property or array items defined",
    ),
    ("CreateRequestValidator", {"name": ""}, "Request Validator name cannot be blank"),
    (
        "DeleteGatewayResponse",
        {"responseType": "THROTTLED"},
        "Gateway response type not defined on api",
    ),
    ("PutRestApi", {"body": b"no definition"}, "Invalid OpenAPI input."),
]
_UNMADE: Final[list[tuple[dict[str, Any], str]]] = [
    ({"description": ""}, "Description cannot be an empty string"),
    (
        {"minimumCompressionSize": 10485761},
        "Invalid minimum compression size, must be between 0 and 10485760",
    ),
    (
        {"endpointConfiguration": {"types": []}},
        "REGIONAL Configuration and EDGE Configuration cannot be both DISABLED.",
    ),
    (
        {"endpointConfiguration": {"types": ["EDGE", "REGIONAL"]}},
        "Cannot create an api with multiple Endpoint Types.",
    ),
    (
        {"endpointConfiguration": {"types": ["PRIVATE"], "ipAddressType": "ipv4"}},
        "Only dualstack ipAddressType is supported for Private APIs.",
    ),
    (
        {"endpointConfiguration": {"types": ["wrong"]}},
        (
            "1 validation error detected: Value '[wrong]' at 'createRestApiInput.endpointConfiguration.types' failed to"
            " satisfy constraint: Member must satisfy constraint: [Member must satisfy enum value set: [PRIVATE, EDGE,"
            " REGIONAL]]"
        ),
    ),
]


def test_parts_of_an_api_are_refused_in_their_own_words() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        named = {"restApiId": api, "resourceId": resource}
        await stage.call(stage.root, "apigateway", "PutMethod", **named, **_METHOD, authorizationType="none")
        shown = await stage.call(stage.root, "apigateway", "GetMethod", **named, **_METHOD)
        assert shown["authorizationType"] == "NONE"
        for operation, params, text in _INVALID:
            params_of_api = {"restApiId": api, **of_method(operation, resource)}
            refusal = await stage.refusal(stage.root, "apigateway", operation, **params_of_api, **params)
            assert refusal.partition(": ")[2] == text
        for settings, text in _UNMADE:
            refusal = await stage.refusal(stage.root, "apigateway", "CreateRestApi", name="x", **settings)
            assert refusal.partition(": ")[2] == text

    played(play)


def test_a_response_of_an_integration_needs_none_of_its_method() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        named = {"restApiId": api, "resourceId": resource, **_METHOD}
        await stage.call(stage.root, "apigateway", "PutMethod", **named, authorizationType="None")
        await stage.call(stage.root, "apigateway", "PutIntegration", **named, type="MOCK")
        params = {**named, "statusCode": "201", "selectionPattern": "made"}
        made = await stage.call(stage.root, "apigateway", "PutIntegrationResponse", **params)
        shown = await stage.call(
            stage.root, "apigateway", "GetIntegrationResponse", **named, statusCode="201"
        )
        assert (made["statusCode"], shown["selectionPattern"]) == ("201", "made")

    played(play)


def test_tags_are_empty_and_truths_are_false_where_nothing_is_said() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        assert resource
        shown = await stage.call(stage.root, "apigateway", "GetRestApi", restApiId=api)
        assert shown["tags"] == {}
        key = await stage.call(stage.root, "apigateway", "CreateApiKey", name="k", enabled=True)
        operation = {"op": "replace", "path": "/enabled", "value": "not-a-boolean"}
        changed = await stage.call(
            stage.root, "apigateway", "UpdateApiKey", apiKey=key["id"], patchOperations=[operation]
        )
        assert (changed["enabled"], changed["tags"]) == (False, {})
        refusal = await stage.refusal(stage.root, "apigateway", "CreateApiKey", name="k", value="v" * 129)
        assert refusal.partition(": ")[2] == "API Key value exceeds maximum size of 128 characters"

    played(play)


@pytest.mark.parametrize(
    ("integration", "status"),
    [
        ({"type": "AWS_PROXY", "integrationHttpMethod": "GET", "uri": _LAMBDA}, 500),
        (
            {
                "type": "MOCK",
                "requestTemplates": {"application/json": '{"statusCode": 200}'},
                "requestParameters": {"integration.request.header.Content-Length": "'7'"},
            },
            500,
        ),
        ({"type": "MOCK", "requestTemplates": {"application/json": '{"statusCode": 200}'}}, 200),
    ],
)
def test_an_integration_that_cannot_be_asked_fails_at_each_call(
    integration: dict[str, Any], status: int
) -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        named = {"restApiId": api, "resourceId": resource, **_METHOD}
        await stage.call(stage.root, "apigateway", "PutMethod", **named, authorizationType="NONE")
        await stage.call(stage.root, "apigateway", "PutIntegration", **named, **integration)
        await stage.call(
            stage.root, "apigateway", "PutIntegrationResponse", **named, statusCode="200", selectionPattern=""
        )
        await stage.call(stage.root, "apigateway", "CreateDeployment", restApiId=api, stageName="test")
        path = f"/_aws/execute-api/{api}/test/cars"
        answer = await stage.send(Request("GET", path, "", {"host": HOST}, b""))
        assert answer.status == status
        if status == 500:
            assert answer.body == b'{"message":"Internal server error"}'
            assert answer.headers["x-amzn-ErrorType"] == "InternalServerErrorException"

    played(play)
