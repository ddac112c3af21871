"""The front of REST APIs: keys and plans, request validation, gateway responses, logs, metrics, HTTP integrations."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from tests.contracts.aws.apigateway.gateways import ACCOUNT, REGION, Gateways

KEY = "k" * 20


def test_a_key_opens_a_method_as_often_as_its_plan_says(gateways: Gateways) -> None:
    client = gateways.client
    api, _ = gateways.api()
    gateways.mock(api, "/cars", template="{}", apiKeyRequired=True)
    gateways.deploy(api)
    key = client.create_api_key(name="team", enabled=True, value=KEY)["id"]
    stages = [{"apiId": api, "stage": "prod"}]
    quota = {"limit": 2, "period": "DAY"}
    plan = client.create_usage_plan(name="few", apiStages=stages, quota=quota)["id"]
    shown = {"x-api-key": KEY}
    refused = gateways.ask(api, "/prod/cars", headers=shown)
    assert (refused.status, refused.message) == (403, "Forbidden"), "the key has no plan yet"
    client.create_usage_plan_key(usagePlanId=plan, keyId=key, keyType="API_KEY")
    assert [gateways.ask(api, "/prod/cars", headers=shown).status for _ in range(3)] == [200, 200, 429]
    assert gateways.ask(api, "/prod/cars", headers=shown).message == "Limit Exceeded"
    assert gateways.ask(api, "/prod/cars").status == 403
    assert gateways.ask(api, "/prod/cars", headers={"x-api-key": "x" * 20}).status == 403
    today = str(datetime.fromtimestamp(gateways.server.now(), UTC).date())
    used = client.get_usage(usagePlanId=plan, startDate=today, endDate=today)["items"]
    assert used == {key: [[2, 0]]}
    gateways.server.advance(timedelta(days=1).total_seconds())
    assert gateways.ask(api, "/prod/cars", headers=shown).status == 200, "another day"
    disabled = [{"op": "replace", "path": "/enabled", "value": "false"}]
    client.update_api_key(apiKey=key, patchOperations=disabled)
    assert gateways.ask(api, "/prod/cars", headers=shown).status == 403
    assert gateways.refused("delete_usage_plan", usagePlanId=plan)[0] == "BadRequestException"


def test_a_pace_that_is_too_fast_is_refused_until_the_bucket_has_filled(gateway: Gateways) -> None:
    api, _ = gateway.api()
    gateway.mock(api, "/cars", template="{}")
    gateway.deploy(api)
    limits = [
        {"op": "replace", "path": "/~1cars/GET/throttling/rateLimit", "value": "1"},
        {"op": "replace", "path": "/~1cars/GET/throttling/burstLimit", "value": "2"},
    ]
    gateway.client.update_stage(restApiId=api, stageName="prod", patchOperations=limits)
    assert [gateway.ask(api, "/prod/cars").status for _ in range(3)] == [200, 200, 429]
    assert gateway.ask(api, "/prod/cars").message == "Too Many Requests"
    gateway.server.advance(1)
    assert [gateway.ask(api, "/prod/cars").status for _ in range(2)] == [200, 429]
    for value in ("nan", "inf", "fast"):
        operation = {**limits[0], "value": value}
        params = {"restApiId": api, "stageName": "prod", "patchOperations": [operation]}
        assert gateway.refused("update_stage", **params)[0] == "BadRequestException", value


def test_a_request_is_validated(gateway: Gateways) -> None:
    client = gateway.client
    api, _ = gateway.api()
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 1}}}
    client.create_model(
        restApiId=api, name="Order", contentType="application/json", schema=orjson.dumps(schema).decode()
    )
    validator = client.create_request_validator(
        restApiId=api, name="all", validateRequestBody=True, validateRequestParameters=True
    )["id"]
    gateway.mock(
        api,
        "/orders",
        "POST",
        template="{}",
        requestModels={"application/json": "Order"},
        requestValidatorId=validator,
        requestParameters={"method.request.header.X-Team": True, "method.request.querystring.q": False},
    )
    gateway.deploy(api)
    assert gateway.post(api, "/prod/orders", {"id": 1}, X_Team="a").status == 200
    missing = gateway.post(api, "/prod/orders", {"id": 1})
    assert (missing.status, missing.message) == (400, "Missing required request parameters: [X-Team]")
    for body in (b"{}", b'{"id": 0}', b'{"id": "1"}', b"no JSON", b"[]"):
        said = gateway.post(api, "/prod/orders", body, X_Team="a")
        assert (said.status, said.message) == (400, "Invalid request body"), body
        assert said.headers["x-amzn-errortype"] == "BadRequestException"


def test_an_api_words_its_own_refusals(gateway: Gateways) -> None:
    api, _ = gateway.api()
    gateway.mock(api, "/cars", template="{}")
    gateway.client.put_gateway_response(
        restApiId=api,
        responseType="MISSING_AUTHENTICATION_TOKEN",
        statusCode="404",
        responseParameters={"gatewayresponse.header.X-Why": "'nowhere'"},
        responseTemplates={"application/json": '{"said": $context.error.messageString}'},
    )
    assert (
        gateway.client.get_gateway_response(restApiId=api, responseType="THROTTLED")["defaultResponse"]
        is True
    )
    gateway.deploy(api)
    said = gateway.ask(api, "/prod/vans")
    assert (said.status, said.document) == (404, {"said": "Missing Authentication Token"})
    assert said.headers["x-why"] == "nowhere"


def test_requests_are_logged_and_counted(gateways: Gateways) -> None:
    api, _ = gateways.api()
    gateways.mock(api, "/cars/{id}", template="{}")
    gateways.deploy(api)
    form = '{"id":"$context.requestId","path":"$context.resourcePath","status":"$context.status","x":"$context.x"}'
    operations = [
        {
            "op": "replace",
            "path": "/accessLogSettings/destinationArn",
            "value": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:apis",
        },
        {"op": "replace", "path": "/accessLogSettings/format", "value": form},
    ]
    gateways.client.update_stage(restApiId=api, stageName="prod", patchOperations=operations)
    said = gateways.ask(api, "/prod/cars/7")
    assert gateways.ask(api, "/prod/vans").status == 403
    events = gateways.of("logs").filter_log_events(logGroupName="apis")["events"]
    first, second = (orjson.loads(event["message"]) for event in events)
    expected = {"id": said.headers["x-amzn-requestid"], "path": "/cars/{id}", "status": "200", "x": "-"}
    assert first == expected
    assert second["status"] == "403"
    now = datetime.fromtimestamp(gateways.server.now(), UTC)
    for metric, expected_sum in [("Count", 2), ("4XXError", 1), ("5XXError", 0)]:
        found = gateways.of("cloudwatch").get_metric_statistics(
            Namespace="AWS/ApiGateway",
            MetricName=metric,
            Dimensions=[{"Name": "ApiName", "Value": "Rental"}, {"Name": "Stage", "Value": "prod"}],
            StartTime=now - timedelta(minutes=5),
            EndTime=now + timedelta(minutes=5),
            Period=60,
            Statistics=["Sum"],
        )["Datapoints"]
        assert sum(point["Sum"] for point in found) == expected_sum, metric


@pytest.mark.parametrize("kind", ["HTTP", "HTTP_PROXY"])
def test_an_http_endpoint_is_asked(gateway: Gateways, kind: str) -> None:
    api, _ = gateway.api()
    integration = {
        "type": kind,
        "integrationHttpMethod": "GET",
        "uri": f"{gateway.server.url}/_redrive/{{what}}",
        "requestParameters": {"integration.request.path.what": "method.request.path.id"},
    }
    resource = gateway.method(api, "/{id}", "GET", integration)
    gateway.answer(api, resource, "GET", "200")
    gone = {**integration, "uri": "http://127.0.0.1:1/", "requestParameters": {}}
    gateway.method(api, "/gone", "GET", gone)
    gateway.deploy(api)
    said = gateway.ask(api, "/prod/health")
    assert (said.status, said.document["status"]) == (200, "ok")
    failed = gateway.ask(api, "/prod/gone")
    assert (failed.status, failed.message) == (504, "Network error communicating with endpoint")


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding"])
def test_a_template_sets_no_header_that_says_where_the_request_ends(gateway: Gateways, name: str) -> None:
    api, _ = gateway.api()
    template = f'#set($context.requestOverride.header["{name}"]="0")POST /take HTTP/1.1'
    integration = {
        "type": "HTTP",
        "integrationHttpMethod": "GET",
        "uri": f"{gateway.server.url}/_redrive/health",
        "requestTemplates": {"application/json": template},
    }
    resource = gateway.method(api, "/cars", "POST", integration)
    gateway.answer(api, resource, "POST", "200")
    gateway.deploy(api)
    refused = gateway.post(api, "/prod/cars", {})
    assert (refused.status, refused.message) == (500, "Internal server error")


def test_a_costly_template_fails_and_lets_others_be_answered(gateway: Gateways) -> None:
    api, _ = gateway.api()
    hostile = "#set($s = 'xxxxxxxx')#foreach($i in [1..999999])#set($s = \"$s$s\")#end$s"
    gateway.mock(api, "/hostile", template=hostile)
    gateway.mock(api, "/cars", template="{}")
    gateway.deploy(api)
    said = gateway.ask(api, "/prod/hostile")
    assert (said.status, said.message) == (500, "Internal server error")
    assert gateway.ask(api, "/prod/cars").status == 200
