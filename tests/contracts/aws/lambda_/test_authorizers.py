"""Functions that decide who may ask an API: REST APIs by tokens and by requests, HTTP APIs in both formats."""

import json
from typing import Any

import pytest

from tests.contracts.aws.apigateway.gateways import ACCOUNT, REGION, Gateways
from tests.contracts.aws.lambda_.workshop import Workshop

#: Decides by the token, and keeps count of its calls in its context.
_DECIDING = """
calls = 0

def handler(event, context):
    global calls
    calls += 1
    token = event.get("authorizationToken") or ",".join(event.get("identitySource") or ["none"])
    if token == "nobody":
        raise Exception("Unauthorized")
    if token == "broken":
        raise ValueError("boom")
    if token == "odd":
        return {"principalId": "u"}
    if token == "nested":
        return answer("Allow", event, {"list": [1]})
    effect, resource = {"no": ("Deny", event["methodArn"]), "other": ("Allow", event["methodArn"] + "/other")}.get(
        token, ("Allow", event["methodArn"])
    )
    seen = sorted(event)
    return answer(effect, {"methodArn": resource}, {"calls": calls, "member": True, "seen": ",".join(seen)})

def answer(effect, event, context):
    statement = {"Effect": effect, "Action": "execute-api:Invoke", "Resource": event["methodArn"]}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {"principalId": "ann", "policyDocument": document, "context": context, "usageIdentifierKey": "k" * 20}

def simple(event, context):
    global calls
    calls += 1
    token = event["identitySource"][0]
    return {"isAuthorized": token == "yes", "context": {"calls": calls, "route": event["routeArn"], "list": [1]}}
"""
_SHOWING = """
import json

def handler(event, context):
    return {"statusCode": 200, "body": json.dumps(event["requestContext"].get("authorizer"))}
"""
_TOKEN = {"type": "TOKEN", "identitySource": "method.request.header.X-Token"}


def _uri(workshop: Workshop, name: str) -> str:
    return f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions/{workshop.arn(name)}/invocations"


class Guarded:
    """A REST API whose methods show what its authorizer hands on."""

    def __init__(self, workshop: Workshop, **authorizer: Any) -> None:
        self.gateways, self.workshop = Gateways(workshop.server), Workshop(workshop.server, ACCOUNT)
        self.deciding = self.workshop.function(_DECIDING)
        self.api, _ = self.gateways.api()
        uri = _uri(self.workshop, self.deciding)
        params = {"name": "guard", "authorizerUri": uri, **_TOKEN, **authorizer}
        self.authorizer: str = self.gateways.client.create_authorizer(restApiId=self.api, **params)["id"]
        showing = _uri(self.workshop, self.workshop.function(_SHOWING))
        proxy = {"type": "AWS_PROXY", "integrationHttpMethod": "POST", "uri": showing}
        custom = {"authorizationType": "CUSTOM", "authorizerId": self.authorizer}
        self.resource = self.gateways.method(self.api, "/cars/{id}", "GET", proxy, **custom)
        self.gateways.deploy(self.api, variables={"v": "1"})

    def ask(
        self, token: str | None = None, path: str = "/prod/cars/7", **headers: str
    ) -> tuple[int, Any, str]:
        """The status, the document, and the kind of error."""
        named = {"X-Token": token} if token is not None else {}
        said = self.gateways.ask(self.api, path, headers={**named, **headers})
        return said.status, said.document, said.headers.get("x-amzn-errortype", "")


def test_a_token_is_judged_by_a_function_and_its_answer_is_remembered(workshop: Workshop) -> None:
    guarded = Guarded(workshop, identityValidationExpression="[a-z]+", authorizerResultTtlInSeconds=60)
    unauthorized = (401, {"message": "Unauthorized"}, "UnauthorizedException")
    assert [guarded.ask(token) for token in (None, "", "YES", "nobody")] == [unauthorized] * 4
    denied = "User is not authorized to access this resource"
    explicit = f"{denied} with an explicit deny in an identity-based policy"
    assert guarded.ask("no") == (403, {"Message": explicit}, "AccessDeniedException")
    assert guarded.ask("other") == (403, {"Message": denied}, "AccessDeniedException")
    broken = (500, {"message": None}, "AuthorizerConfigurationException")
    assert [guarded.ask(token) for token in ("broken", "odd", "nested")] == [broken] * 3
    status, handed_on, _ = guarded.ask("yes")
    calls = handed_on.pop("calls")
    assert isinstance(handed_on.pop("integrationLatency"), int)
    seen = "authorizationToken,methodArn,type"
    assert (status, handed_on) == (200, {"principalId": "ann", "member": "true", "seen": seen})
    assert guarded.ask("yes")[1]["calls"] == calls
    assert guarded.ask("yes", "/prod/cars/8")[0] == 403, "the policy that is remembered names another method"
    workshop.server.advance(61)
    assert int(guarded.ask("yes")[1]["calls"]) == int(calls) + 1
    guarded.workshop.client.add_permission(
        FunctionName=guarded.deciding,
        StatementId="guard",
        Action="lambda:InvokeFunction",
        Principal="apigateway.amazonaws.com",
        SourceArn=f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{guarded.api}/authorizers/other",
    )
    assert guarded.ask("maybe") == broken, "the function's policy lets another authorizer in alone"


def test_a_request_is_judged_by_all_that_identifies_it(workshop: Workshop) -> None:
    source = "method.request.header.X-Token,method.request.querystring.q,stageVariables.v"
    guarded = Guarded(workshop, type="REQUEST", identitySource=source)
    assert guarded.ask("yes")[0] == 401, "the query is missing"
    status, handed_on, _ = guarded.ask("yes", "/prod/cars/7?q=1")
    assert status == 200
    assert handed_on["seen"] == ",".join(
        [
            *(
                "headers",
                "httpMethod",
                "methodArn",
                "multiValueHeaders",
                "multiValueQueryStringParameters",
                "path",
            ),
            *(
                "pathParameters",
                "queryStringParameters",
                "requestContext",
                "resource",
                "stageVariables",
                "type",
            ),
        ]
    )
    assert guarded.ask("yes", "/prod/cars/7?q=1")[1]["calls"] == handed_on["calls"]
    assert guarded.ask("yes", "/prod/cars/7?q=2")[1]["calls"] != handed_on["calls"]


def test_methods_and_authorizers_are_tried_as_they_are_edited(workshop: Workshop) -> None:
    guarded = Guarded(workshop)
    client, at = guarded.gateways.client, {"restApiId": guarded.api}
    method = {**at, "resourceId": guarded.resource, "httpMethod": "GET"}
    said = client.test_invoke_method(**method, pathWithQueryString="/cars/7?q=1", headers={"X-Team": "a"})
    assert (said["status"], said["body"]) == (200, "null"), "nobody has to authorize a test"
    assert said["multiValueHeaders"]["Content-Type"] == ["application/json"]
    assert "HTTP Method: GET, Resource Path: /cars/{id}" in said["log"]
    assert "Method request path: {'id': '7'}" in said["log"]
    assert said["log"].endswith("Method completed with status: 200\n")
    patch = [{"op": "replace", "path": "/uri", "value": _uri(guarded.workshop, "absent")}]
    client.update_integration(**method, patchOperations=patch)
    failed = client.test_invoke_method(**method)
    assert (failed["status"], json.loads(failed["body"])) == (500, {"message": "Internal server error"})
    assert "Execution failed: " in failed["log"]

    def tried(token: str) -> dict[str, Any]:
        answer = client.test_invoke_authorizer(
            **at, authorizerId=guarded.authorizer, headers={"X-Token": token}
        )
        return {name: answer.get(name) for name in ("clientStatus", "principalId", "policy")}

    allowed = tried("yes")
    source = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{guarded.api}/test-invoke-stage/GET/"
    assert json.loads(allowed.pop("policy"))["Statement"][0]["Resource"] == source
    assert allowed == {"clientStatus": 0, "principalId": "ann"}
    nothing = {"principalId": None, "policy": None}
    assert [tried(token) for token in ("nobody", "broken")] == [
        {"clientStatus": 401, **nothing},
        {"clientStatus": 500, **nothing},
    ]


def test_authorizers_are_kept_with_their_api(workshop: Workshop) -> None:
    guarded = Guarded(workshop)
    client, at = guarded.gateways.client, {"restApiId": guarded.api}
    named = {**at, "authorizerId": guarded.authorizer}
    shown = client.get_authorizer(**named)
    assert {name: shown[name] for name in ("name", "type", "authType", "authorizerResultTtlInSeconds")} == {
        "name": "guard",
        "type": "TOKEN",
        "authType": "custom",
        "authorizerResultTtlInSeconds": 300,
    }
    assert [each["id"] for each in client.get_authorizers(**at)["items"]] == [guarded.authorizer]
    patch = [{"op": "replace", "path": "/authorizerResultTtlInSeconds", "value": "0"}]
    assert client.update_authorizer(**named, patchOperations=patch)["authorizerResultTtlInSeconds"] == 0
    refused, uri = guarded.gateways.refused, shown["authorizerUri"]
    bad = "BadRequestException"
    valid = "Authorizer URI should be a valid API Gateway ARN that represents a Lambda function invocation."
    for params, code, text in (
        (
            {"name": "guard", "authorizerUri": uri},
            "ConflictException",
            "Authorizer name must be unique. Authorizer guard already exists in this RestApi.",
        ),
        ({"name": "a", "authorizerUri": "arn:x"}, bad, f"Invalid Authorizer URI: arn:x. {valid}"),
        (
            {"name": "a", "authorizerUri": uri, "type": "REQUEST", "identitySource": ""},
            bad,
            "An identity source is required for authorizers of the type REQUEST that cache results",
        ),
        (
            {"name": "a", "authorizerUri": uri, "identitySource": "header"},
            bad,
            "Invalid identity source specified: header",
        ),
        (
            {"name": "a", "authorizerUri": uri, "identityValidationExpression": "("},
            bad,
            "Invalid identity validation expression specified",
        ),
        (
            {"name": "a", "authorizerUri": uri, "authorizerResultTtlInSeconds": 3601},
            bad,
            "Authorizer result TTL must be between 0 and 3600 seconds",
        ),
        (
            {"name": "a", "type": "COGNITO_USER_POOLS"},
            bad,
            "Redrive does not offer authorizers of the type COGNITO_USER_POOLS for REST APIs.",
        ),
    ):
        assert refused("create_authorizer", **at, **{"type": "TOKEN", **params}) == (code, text)
    code, text = refused("delete_authorizer", **named)
    assert (code, text) == (
        "ConflictException",
        "Cannot delete authorizer 'guard', is referenced in method: /cars/{id}/GET",
    )
    method = {**at, "resourceId": guarded.resource, "httpMethod": "GET"}
    none = [{"op": "replace", "path": "/authorizerId", "value": "none"}]
    code, text = refused("update_method", **method, patchOperations=none)
    assert text.startswith("Invalid authorizer ID specified.")
    client.delete_method(**method)
    client.delete_authorizer(**named)
    assert refused("get_authorizer", **named) == (
        "NotFoundException",
        "Invalid Authorizer identifier specified",
    )
    assert guarded.ask("yes")[0] == 200, "what is deployed has it still"


def test_an_authorizer_chooses_the_callers_key(workshop: Workshop) -> None:
    guarded = Guarded(workshop)
    client = guarded.gateways.client
    source = [{"op": "replace", "path": "/apiKeySource", "value": "AUTHORIZER"}]
    client.update_rest_api(restApiId=guarded.api, patchOperations=source)
    key = [{"op": "replace", "path": "/apiKeyRequired", "value": "true"}]
    method = {"restApiId": guarded.api, "resourceId": guarded.resource, "httpMethod": "GET"}
    client.update_method(**method, patchOperations=key)
    guarded.gateways.deploy(guarded.api)
    assert guarded.ask("yes", **{"X-Api-Key": "k" * 20})[0] == 403
    stages = [{"apiId": guarded.api, "stage": "prod"}]
    plan = client.create_usage_plan(name="p", apiStages=stages)["id"]
    made = client.create_api_key(name="k", value="k" * 20, enabled=True)["id"]
    client.create_usage_plan_key(usagePlanId=plan, keyId=made, keyType="API_KEY")
    assert guarded.ask("yes")[0] == 200


def test_a_definition_brings_authorizers_along(workshop: Workshop) -> None:
    gateways, workshop = Gateways(workshop.server), Workshop(workshop.server, ACCOUNT)
    deciding, showing = workshop.function(_DECIDING), workshop.function(_SHOWING)
    guard = {"type": "token", "authorizerUri": _uri(workshop, deciding), "authorizerResultTtlInSeconds": 0}
    scheme = {"type": "apiKey", "name": "X-Token", "in": "header", "x-amazon-apigateway-authorizer": guard}
    proxy = {"type": "aws_proxy", "httpMethod": "POST", "uri": _uri(workshop, showing)}
    operation = {"security": [{"Guard": []}], "x-amazon-apigateway-integration": proxy}
    document = {
        "swagger": "2.0",
        "info": {"title": "Cars", "version": "1"},
        "securityDefinitions": {"Guard": scheme},
        "paths": {"/cars": {"get": operation}},
    }
    body = json.dumps(document).encode()
    api = gateways.client.import_rest_api(body=body)["id"]
    gateways.client.put_rest_api(restApiId=api, mode="merge", body=body)
    (authorizer,) = gateways.client.get_authorizers(restApiId=api)["items"]
    assert (authorizer["name"], authorizer["identitySource"]) == ("Guard", "method.request.header.X-Token")
    gateways.deploy(api)
    assert gateways.ask(api, "/prod/cars").status == 401
    assert gateways.ask(api, "/prod/cars", headers={"X-Token": "yes"}).document["principalId"] == "ann"


@pytest.mark.parametrize(("version", "simple"), [("2.0", True), ("2.0", False), ("1.0", False)])
def test_an_http_apis_route_is_judged_by_a_function(workshop: Workshop, version: str, simple: bool) -> None:
    gateways, workshop = Gateways(workshop.server), Workshop(workshop.server, ACCOUNT)
    client = gateways.of("apigatewayv2")
    deciding = workshop.function(
        _DECIDING.replace('event["methodArn"]', 'event.get("methodArn", event.get("routeArn"))'),
        handler="index.simple" if simple else "index.handler",
    )
    api = client.create_api(Name="Cars", ProtocolType="HTTP")["ApiId"]
    client.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)
    guard = client.create_authorizer(
        ApiId=api,
        Name="guard",
        AuthorizerType="REQUEST",
        AuthorizerUri=_uri(workshop, deciding),
        AuthorizerPayloadFormatVersion=version,
        IdentitySource=["$request.header.X-Token"],
        AuthorizerResultTtlInSeconds=60,
        **({"EnableSimpleResponses": True} if simple else {}),
    )["AuthorizerId"]
    arn = workshop.arn(workshop.function(_SHOWING))
    made = client.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
    )["IntegrationId"]
    custom = {"AuthorizationType": "CUSTOM", "AuthorizerId": guard, "Target": f"integrations/{made}"}
    client.create_route(ApiId=api, RouteKey="GET /cars", **custom)
    client.create_route(ApiId=api, RouteKey="GET /vans", **custom)

    def ask(token: str | None, path: str = "/cars") -> tuple[int, Any]:
        said = gateways.ask(api, path, headers={} if token is None else {"X-Token": token})
        return said.status, said.document

    assert ask(None) == (401, {"message": "Unauthorized"})
    assert ask("no") == (403, {"message": "Forbidden"})
    status, handed_on = ask("yes")
    told = handed_on["lambda"]
    assert status == 200
    assert ask("yes")[1]["lambda"]["calls"] == told["calls"]
    if simple:
        assert told["route"] == f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{api}/$default/GET/cars"
        assert told["list"] == [1]
        assert ask("yes", "/vans")[1]["lambda"]["calls"] == told["calls"] + 1
    else:
        assert (told["principalId"], told["member"]) == ("ann", True)
        assert ask("nobody") == (401, {"message": "Unauthorized"})
        assert ask("broken") == (500, {"message": "Internal Server Error"})
        assert ask("yes", "/vans")[0] == 403, "the policy that is remembered names another route"
    assert gateways.refused("delete_authorizer", "apigatewayv2", ApiId=api, AuthorizerId=guard) == (
        "ConflictException",
        "Cannot delete Authorizer. It is used by a route of this API",
    )
