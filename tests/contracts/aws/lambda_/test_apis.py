"""Functions behind APIs: events in both payload formats, answers as responses, and the functions' own policies."""

import orjson

from tests.contracts.aws.apigateway.gateways import ACCOUNT, REGION, Gateways
from tests.contracts.aws.lambda_.workshop import Workshop

_ANSWERS = """
def handler(event, context):
    if "fail" in event.get("path", event.get("rawPath", "")):
        raise ValueError("boom")
    if "malformed" in event.get("path", ""):
        return "no response"
    import json
    return {"statusCode": 201, "headers": {"X-Car": True}, "body": json.dumps(event)}
"""


def test_a_rest_api_stands_in_front_of_a_function(workshop: Workshop) -> None:
    gateways, workshop = Gateways(workshop.server), Workshop(workshop.server, ACCOUNT)
    name = workshop.function(_ANSWERS)
    arn = workshop.arn(name)
    api, _ = gateways.api()
    uri = f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions/{arn}/invocations"
    gateways.method(
        api, "/{proxy+}", "ANY", {"type": "AWS_PROXY", "integrationHttpMethod": "POST", "uri": uri}
    )
    gateways.deploy(api, variables={"v": "1"})
    said = gateways.ask(api, "/prod/cars/a%20b?q=1&q=2", "POST", b"hello", {"X-Team": "a"})
    assert (said.status, said.headers["x-car"]) == (201, "true")
    event = said.document
    assert {name: event[name] for name in ("resource", "path", "httpMethod", "body", "isBase64Encoded")} == {
        "resource": "/{proxy+}",
        "path": "/cars/a%20b",
        "httpMethod": "POST",
        "body": "hello",
        "isBase64Encoded": False,
    }
    assert event["pathParameters"] == {"proxy": "cars/a b"}
    assert event["multiValueQueryStringParameters"] == {"q": ["1", "2"]}
    assert (event["queryStringParameters"], event["stageVariables"]) == ({"q": "2"}, {"v": "1"})
    assert event["headers"]["X-Team"] == "a"
    context = event["requestContext"]
    assert (context["path"], context["stage"], context["apiId"]) == ("/prod/cars/a%20b", "prod", api)
    for path in ("/prod/fail", "/prod/malformed"):
        failed = gateways.ask(api, path)
        assert (failed.status, failed.message) == (502, "Internal server error"), path
    _close(workshop, name, f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{api}/prod/ANY/other")
    assert gateways.ask(api, "/prod/cars").status == 500, "the policy lets another resource in alone"


def _close(workshop: Workshop, name: str, source: str) -> None:
    """Let the function be invoked for one source alone."""
    workshop.client.add_permission(
        FunctionName=name,
        StatementId="api",
        Action="lambda:InvokeFunction",
        Principal="apigateway.amazonaws.com",
        SourceArn=source,
    )


def test_an_http_api_stands_in_front_of_a_function(workshop: Workshop) -> None:
    gateways, workshop = Gateways(workshop.server), Workshop(workshop.server, ACCOUNT)
    name = workshop.function(_ANSWERS)
    arn = workshop.arn(name)
    client = gateways.of("apigatewayv2")
    api = client.create_api(Name="Cars", ProtocolType="HTTP", Target=arn)["ApiId"]
    said = gateways.ask(api, "/cars?q=1&q=2", headers={"Cookie": "a=1; b=2"})
    assert said.status == 201
    event = said.document
    assert (event["version"], event["routeKey"], event["rawPath"]) == ("2.0", "$default", "/cars")
    assert (event["cookies"], event["queryStringParameters"]) == (["a=1", "b=2"], {"q": "1,2"})
    made = client.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="1.0"
    )["IntegrationId"]
    client.create_route(ApiId=api, RouteKey="GET /old/{id}", Target=f"integrations/{made}")
    event = gateways.ask(api, "/old/7").document
    assert (event["version"], event["resource"], event["pathParameters"]) == ("1.0", "/old/{id}", {"id": "7"})
    client.create_route(ApiId=api, RouteKey="POST /old/{id}", Target=f"integrations/{made}")
    for path in ("/old/7", "/cars"):
        event = gateways.ask(api, path, "POST", b"\x89PNG", {"Content-Type": "image/png"}).document
        assert (event["body"], event["isBase64Encoded"]) == ("iVBORw==", True), path
    failed = gateways.ask(api, "/fail")
    assert (failed.status, orjson.loads(failed.body)) == (500, {"message": "Internal Server Error"})
