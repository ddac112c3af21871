"""API Gateway's recorded answers to those who call APIs."""

from typing import Any, Final

import orjson
import pytest

from redrive.aws.apigateway.control.exchange import Exchange, Refusal, StagePlace
from redrive.aws.apigateway.control.targets import InvokeTarget
from redrive.aws.apigateway.mapping.sources import variables_of
from redrive.aws.apigateway.mapping.velocity.template import render_within
from redrive.aws.apigateway.requests.function_proxy import answer_of, event_of
from redrive.model.budget import Budget
from redrive.model.http import Request, Response
from tests.aws.recorded.test_apigateway import played
from tests.aws.stage import HOST, REGION, Stage

_ID: Final = "01234567-89ab-cdef-0123-456789abcdef"
_TRACE: Final = "Root=1-6553f32b-0123456789abcdef01234567"
_QUEUES: Final = f"arn:aws:apigateway:{REGION}:sqs:path/"


def exchange(body: bytes = b"", **headers: str) -> Exchange:
    """A request to an API, at a moment that there was."""
    request = Request("POST", "/cars", "", {"host": HOST, **headers}, body)
    place = StagePlace("111111111111", REGION, "api", "Rental", "prod")
    target = InvokeTarget("api", "/prod/cars", "localhost")
    return Exchange(request, target, place, "/cars", _ID, 1_700_000_555_000)


async def called(stage: Stage, api: str, resource: str, **integration: Any) -> Response:
    """The answer of a method with this behind it."""
    named = {"restApiId": api, "resourceId": resource, "httpMethod": "GET"}
    await stage.call(stage.root, "apigateway", "PutMethod", **named, authorizationType="NONE")
    await stage.call(stage.root, "apigateway", "PutIntegration", **named, **integration)
    await stage.call(stage.root, "apigateway", "PutIntegrationResponse", **named, statusCode="200")
    await stage.call(stage.root, "apigateway", "CreateDeployment", restApiId=api, stageName="test")
    path = f"/_aws/execute-api/{api}/test/cars"
    return await stage.send(Request("GET", path, "", {"host": HOST}, b""))


def test_the_request_of_a_mock_says_the_status_of_its_answer() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        template = '#set($context.responseOverride.status = 444){"statusCode": 200}'
        templates = {"application/json": template}
        answer = await called(stage, api, resource, type="MOCK", requestTemplates=templates)
        assert answer.status == 444

    played(play)


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Authorization", "Connection", "TE"])
def test_a_service_is_not_asked_with_headers_that_cannot_be_mapped(name: str) -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        headers = {f"integration.request.header.{name}": "'7'"}
        answer = await called(
            stage,
            api,
            resource,
            type="AWS",
            integrationHttpMethod="POST",
            uri=_QUEUES,
            requestParameters=headers,
        )
        assert (answer.status, answer.body) == (500, b'{"message":"Internal server error"}')
        assert answer.headers["x-amzn-ErrorType"] == "InternalServerErrorException"

    played(play)


def test_a_service_that_is_not_offered_cannot_be_asked() -> None:
    """No record: nothing is pretended, where a default response would make a success of the refusal."""

    async def play(stage: Stage, api: str, resource: str) -> None:
        uri = f"arn:aws:apigateway:{REGION}:dynamodb:action/PutItem"
        answer = await called(stage, api, resource, type="AWS", integrationHttpMethod="POST", uri=uri)
        assert (answer.status, answer.body) == (500, b'{"message":"Internal server error"}')

    played(play)


def test_the_answer_of_a_service_names_its_trace() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        integration = {"type": "AWS", "integrationHttpMethod": "POST", "uri": _QUEUES}
        answer = await called(stage, api, resource, **integration)
        assert answer.headers["X-Amzn-Trace-Id"].startswith("Root=1-")

    played(play)


def test_the_event_of_a_request_is_without_its_connection_and_keys() -> None:
    came = exchange(b"x", connection="close", **{"content-length": "1", "x-team": "a"})
    event = orjson.loads(event_of(came, is_base64=False))
    assert event["headers"].keys() == {
        *("Host", "X-Amzn-Trace-Id", "X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Team"),
    }
    assert event["headers"]["X-Amzn-Trace-Id"] == _TRACE
    assert not {"apiKey", "apiKeyId"} & event["requestContext"]["identity"].keys()
    came = exchange(**{"x-amzn-trace-id": "Root=1-a-b"})
    came.api_key = ("id", "value")
    event = orjson.loads(event_of(came, is_base64=False))
    assert event["headers"]["X-Amzn-Trace-Id"] == "Root=1-a-b"
    assert event["requestContext"]["identity"]["apiKey"] == "value"


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        ({}, 200, b""),
        ({"headers": {"x": "y"}}, 200, b""),
        ({"statusCode": "201", "body": "made"}, 201, b"made"),
        ({"body": "bWFkZQ==", "isBase64Encoded": True}, 200, b"bWFkZQ=="),
    ],
)
def test_a_function_may_leave_out_what_it_answers(answer: dict[str, Any], status: int, body: bytes) -> None:
    said = answer_of(orjson.dumps(answer), allows_base64=False)
    assert (said.status, said.body) == (status, body)


@pytest.mark.parametrize(
    "answer",
    [
        *("text", ["list"], {"a": 1}, {"multiValueHeaders": ["x"]}),
        *({"statusCode": status} for status in ("many", 99, "02000", True)),
    ],
)
def test_an_answer_of_another_shape_is_a_bad_gateway(answer: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        answer_of(orjson.dumps(answer), allows_base64=False)
    assert (refusal.value.status, refusal.value.message) == (502, "Internal server error")


@pytest.mark.parametrize(
    ("body", "template", "text"),
    [
        ('{"a": [{"foo": "bar"}]}', "$input.path('$.a')", '[{"foo":"bar"}]'),
        ('{"foo": [{"nested": "bar"}]}', "$input.path('$')", '{foo=[{"nested":"bar"}]}'),
        ("", '#if($input.body == "")empty#end $input.body', "empty {}"),
        ("", "$input.json('$')", "{}"),
        ('{"a": {}}', "#set($m = $input.path('$.a'))#set($m.b = {})#set($m.b.c = 1)$m", "{b={c=1}}"),
        ("", "#set($m = {})#set($x = $m.put('k', [1, 'v']))$m", "{k=[1, v]}"),
    ],
)
def test_templates_write_lists_of_bodies_as_json(body: str, template: str, text: str) -> None:
    assert render_within(template, variables_of(exchange(), body), Budget()) == text


def test_missing_parameters_are_listed_in_the_order_of_a_hash_table() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        validator = await stage.call(
            stage.root, "apigateway", "CreateRequestValidator", restApiId=api, validateRequestParameters=True
        )
        named = {"restApiId": api, "resourceId": resource, "httpMethod": "GET"}
        wanted = {
            "method.request.querystring.qs1": True,
            "method.request.path.issuer": True,
            "method.request.header.x-header-param": True,
        }
        params = {"requestParameters": wanted, "requestValidatorId": validator["id"]}
        await stage.call(stage.root, "apigateway", "PutMethod", **named, authorizationType="NONE", **params)
        await stage.call(stage.root, "apigateway", "PutIntegration", **named, type="MOCK")
        await stage.call(stage.root, "apigateway", "CreateDeployment", restApiId=api, stageName="test")
        path = f"/_aws/execute-api/{api}/test/cars"
        answer = await stage.send(Request("GET", path, "", {"host": HOST}, b""))
        text = "Missing required request parameters: [x-header-param, issuer, qs1]"
        assert (answer.status, orjson.loads(answer.body)) == (400, {"message": text})

    played(play)
