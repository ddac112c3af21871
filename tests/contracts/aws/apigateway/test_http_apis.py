"""HTTP APIs: their control plane, and routes to queues, topics and HTTP endpoints; on both stores where state matters."""

from typing import Any

import orjson
import pytest

from tests.contracts.aws.apigateway.gateways import ACCOUNT, REGION, Gateways

ROLE = f"arn:aws:iam::{ACCOUNT}:role/Gateway"


def http_api(gateways: Gateways, **params: Any) -> str:
    """The id of a new API with a stage that deploys by itself."""
    client = gateways.of("apigatewayv2")
    api: str = client.create_api(Name="Cars", ProtocolType="HTTP", **params)["ApiId"]
    client.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)
    return api


def route(gateways: Gateways, api: str, key: str, **integration: Any) -> str:
    """The id of the integration of a new route."""
    client = gateways.of("apigatewayv2")
    whole = {"IntegrationType": "AWS_PROXY", "PayloadFormatVersion": "1.0", **integration}
    made: str = client.create_integration(ApiId=api, **whole)["IntegrationId"]
    client.create_route(ApiId=api, RouteKey=key, Target=f"integrations/{made}")
    return made


def test_an_order_goes_to_a_queue(gateways: Gateways) -> None:
    queue = gateways.sqs.create_queue(QueueName="Orders")["QueueUrl"]
    api = http_api(gateways)
    parameters = {
        "QueueUrl": queue,
        "MessageBody": "$request.body.note",
        "MessageAttributes": '{"id": {"DataType": "String", "StringValue": "7"}}',
    }
    route(
        gateways,
        api,
        "POST /orders",
        IntegrationSubtype="SQS-SendMessage",
        CredentialsArn=ROLE,
        RequestParameters=parameters,
    )
    said = gateways.post(api, "/orders", {"note": "a & b"})
    assert (said.status, said.headers["content-type"]) == (200, "text/xml")
    assert b"<MessageId>" in said.body
    (message,) = gateways.received(queue)
    assert message["Body"] == "a & b"
    assert message["MessageAttributes"]["id"]["StringValue"] == "7"


def test_an_order_goes_to_a_topic(gateway: Gateways) -> None:
    topic, queue = gateway.topic_and_queue()
    api = http_api(gateway)
    parameters = {"TopicArn": topic, "Message": "$request.body"}
    route(
        gateway,
        api,
        "POST /orders/{id}",
        IntegrationSubtype="SNS-Publish",
        CredentialsArn=ROLE,
        RequestParameters=parameters,
    )
    assert gateway.post(api, "/orders/7", {"id": 7}).status == 200
    assert [message["Body"] for message in gateway.received(queue)] == ['{"id":7}']
    missing = gateway.ask(api, "/orders", "POST")
    assert (missing.status, missing.document) == (404, {"message": "Not Found"})


def test_a_refusal_of_the_service_is_the_answer(gateway: Gateways) -> None:
    api = http_api(gateway)
    parameters = {"QueueUrl": f"http://localhost/{ACCOUNT}/Nobody", "MessageBody": "x"}
    route(
        gateway,
        api,
        "$default",
        IntegrationSubtype="SQS-SendMessage",
        CredentialsArn=ROLE,
        RequestParameters=parameters,
    )
    said = gateway.ask(api, "/any/where")
    assert said.status == 400
    assert b"NonExistentQueue" in said.body


def test_a_proxy_hands_a_request_on(gateway: Gateways) -> None:
    api = http_api(gateway)
    uri = f"{gateway.server.url}/_redrive/{{proxy}}"
    route(
        gateway,
        api,
        "GET /{proxy+}",
        IntegrationType="HTTP_PROXY",
        IntegrationMethod="GET",
        IntegrationUri=uri,
    )
    said = gateway.ask(api, "/health")
    assert (said.status, said.document["status"]) == (200, "ok")
    route(
        gateway,
        api,
        "GET /nobody",
        IntegrationType="HTTP_PROXY",
        IntegrationMethod="GET",
        IntegrationUri="http://127.0.0.1:1/",
    )
    gone = gateway.ask(api, "/nobody")
    assert (gone.status, gone.document) == (503, {"message": "Service Unavailable"})


def test_pages_are_answered_by_the_apis_rules(gateway: Gateways) -> None:
    cors = {
        "AllowOrigins": ["https://cars.example"],
        "AllowMethods": ["GET"],
        "AllowHeaders": ["x-car"],
        "MaxAge": 60,
    }
    api = http_api(gateway, CorsConfiguration=cors)
    asking = {"Origin": "https://cars.example", "Access-Control-Request-Method": "GET"}
    said = gateway.ask(api, "/cars", "OPTIONS", headers=asking)
    assert (said.status, said.body) == (204, b"")
    assert said.headers["access-control-allow-origin"] == "https://cars.example"
    assert said.headers["access-control-allow-methods"] == "GET"
    assert said.headers["access-control-max-age"] == "60"
    other = gateway.ask(api, "/cars", "OPTIONS", headers={**asking, "Origin": "https://vans.example"})
    assert "access-control-allow-origin" not in other.headers


def test_a_stage_shows_a_deployment_unless_it_deploys_by_itself(gateways: Gateways) -> None:
    client = gateways.of("apigatewayv2")
    api = http_api(gateways)
    proxy = {"IntegrationType": "HTTP_PROXY", "IntegrationMethod": "GET"}
    made = route(gateways, api, "GET /a", **proxy, IntegrationUri=f"{gateways.server.url}/_redrive/health")
    client.create_stage(ApiId=api, StageName="v1")
    assert gateways.ask(api, "/v1/a").status == 404, "nothing was deployed"
    client.create_deployment(ApiId=api, StageName="v1")
    client.create_route(ApiId=api, RouteKey="GET /b", Target=f"integrations/{made}")
    assert [gateways.ask(api, path).status for path in ("/v1/a", "/v1/b", "/b", "/a")] == [200, 404, 200, 200]
    client.delete_api(ApiId=api)
    assert gateways.ask(api, "/a").status == 403
    assert client.get_apis()["Items"] == []


def test_a_pace_that_is_too_fast_is_refused(gateway: Gateways) -> None:
    client = gateway.of("apigatewayv2")
    api = http_api(gateway)
    uri = f"{gateway.server.url}/_redrive/health"
    route(gateway, api, "GET /a", IntegrationType="HTTP_PROXY", IntegrationMethod="GET", IntegrationUri=uri)
    limits = {"ThrottlingRateLimit": 1.0, "ThrottlingBurstLimit": 1}
    client.update_stage(ApiId=api, StageName="$default", DefaultRouteSettings=limits)
    assert [gateway.ask(api, "/a").status for _ in range(3)] == [200, 429, 429], "the clock stands still"


@pytest.mark.parametrize(
    ("operation", "params", "text"),
    [
        ("create_api", {"Name": "x", "ProtocolType": "WEBSOCKET"}, "Redrive does not offer WebSocket APIs."),
        ("create_route", {"RouteKey": "orders"}, "The provided route key is not formatted properly"),
        (
            "create_route",
            {"RouteKey": "GET /", "AuthorizationType": "JWT"},
            "Invalid authorizer ID specified. Setting the authorization type to JWT requires a valid JWT authorizer.",
        ),
        (
            "create_authorizer",
            {"Name": "a", "AuthorizerType": "JWT", "IdentitySource": ["$request.header.Authorization"]},
            "Authorizers of the type JWT need an issuer and an audience",
        ),
        (
            "create_authorizer",
            {"Name": "a", "AuthorizerType": "REQUEST", "IdentitySource": ["header"]},
            "Invalid identity source specified: header",
        ),
        (
            "create_authorizer",
            {"Name": "a", "AuthorizerType": "REQUEST", "IdentitySource": [], "AuthorizerUri": "arn:x"},
            "AuthorizerPayloadFormatVersion is a required parameter",
        ),
        ("create_route", {"RouteKey": "GET /", "Target": "integrations/x"}, "Invalid Integration identifier"),
        ("create_integration", {"IntegrationType": "MOCK"}, "Integration type MOCK is not supported"),
        (
            "create_integration",
            {"IntegrationType": "AWS_PROXY", "IntegrationSubtype": "Kinesis-PutRecord"},
            "Redrive does not offer the integration subtype Kinesis-PutRecord; it offers SNS-Publish, SQS-",
        ),
        (
            "create_integration",
            {"IntegrationType": "AWS_PROXY", "IntegrationSubtype": "SQS-SendMessage", "CredentialsArn": ROLE},
            "Parameter: QueueUrl is required",
        ),
        ("create_stage", {"StageName": "a b"}, "Stage name only allows"),
        ("get_route", {"RouteId": "x"}, "Invalid Route identifier specified"),
    ],
)
def test_impossible_parts_are_refused(
    gateway: Gateways, operation: str, params: dict[str, Any], text: str
) -> None:
    named = {} if operation == "create_api" else {"ApiId": http_api(gateway)}
    _, said = gateway.refused(operation, "apigatewayv2", **named, **params)
    assert said.startswith(text)


@pytest.mark.parametrize(
    ("other", "refused"),
    [
        ("GET /a/{x}", True),
        ("GET /a/{y}", True),
        ("POST /a/{y}", False),
        ("GET /a/{y+}", False),
        ("GET /a/{y}/b", False),
    ],
)
def test_routes_of_one_method_and_shape_conflict(gateway: Gateways, other: str, refused: bool) -> None:
    api = http_api(gateway)
    gateway.of("apigatewayv2").create_route(ApiId=api, RouteKey="GET /a/{x}")
    if refused:
        code, text = gateway.refused("create_route", "apigatewayv2", ApiId=api, RouteKey=other)
        assert (code, text) == ("ConflictException", "Route with key GET /a/{x} already exists for this API")
    else:
        assert gateway.of("apigatewayv2").create_route(ApiId=api, RouteKey=other)["RouteKey"] == other


def test_a_definition_makes_an_api(gateway: Gateways) -> None:
    client = gateway.of("apigatewayv2")
    integration = {
        "type": "http_proxy",
        "httpMethod": "GET",
        "uri": f"{gateway.server.url}/_redrive/health",
        "payloadFormatVersion": "1.0",
    }
    definition = {
        "openapi": "3.0.1",
        "info": {"title": "Cars", "version": "1"},
        "paths": {"/health": {"get": {"x-amazon-apigateway-integration": integration}}},
        "x-amazon-apigateway-cors": {"allowOrigins": ["*"]},
    }
    made = client.import_api(Body=orjson.dumps(definition).decode())
    assert (made["Name"], made["CorsConfiguration"]) == ("Cars", {"AllowOrigins": ["*"]})
    assert made["ApiEndpoint"].startswith(f"http://{made['ApiId']}.execute-api.{REGION}.localhost:")
    client.create_stage(ApiId=made["ApiId"], StageName="$default", AutoDeploy=True)
    assert gateway.ask(made["ApiId"], "/health").status == 200
    assert gateway.refused("import_api", "apigatewayv2", Body="{}")[0] == "BadRequestException"
