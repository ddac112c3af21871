"""The control plane of REST APIs: documents and refusals as recorded."""

from typing import Any

import orjson
import pytest

from tests.contracts.aws.apigateway.gateways import ACCOUNT, REGION, Gateways

MOCK = {"type": "MOCK", "requestTemplates": {"application/json": '{"statusCode": 200}'}}


def test_an_api_lives_and_dies(gateways: Gateways) -> None:
    client = gateways.client
    made = client.create_rest_api(name="Rental", description="cars", tags={"team": "a"})
    assert {name: made[name] for name in ("name", "description", "apiKeySource", "tags")} == {
        "name": "Rental",
        "description": "cars",
        "apiKeySource": "HEADER",
        "tags": {"team": "a"},
    }
    assert made["endpointConfiguration"] == {"types": ["EDGE"], "ipAddressType": "ipv4"}
    assert made["disableExecuteApiEndpoint"] is False
    api = made["id"]
    operations = [
        {"op": "replace", "path": "/name", "value": "Fleet"},
        {"op": "add", "path": "/binaryMediaTypes/image~1png", "value": ""},
        {"op": "remove", "path": "/description"},
    ]
    changed = client.update_rest_api(restApiId=api, patchOperations=operations)
    assert (changed["name"], changed["binaryMediaTypes"]) == ("Fleet", ["image/png"])
    assert "description" not in changed
    arn = f"arn:aws:apigateway:{REGION}::/restapis/{api}"
    client.tag_resource(resourceArn=arn, tags={"cost": "b"})
    client.untag_resource(resourceArn=arn, tagKeys=["team"])
    assert client.get_tags(resourceArn=arn)["tags"] == {"cost": "b"}
    assert [each["id"] for each in client.get_rest_apis()["items"]] == [api]
    gateways.mock(api, "/cars")
    gateways.deploy(api)
    client.delete_rest_api(restApiId=api)
    assert client.get_rest_apis()["items"] == []
    refusal = gateways.refused("get_rest_api", restApiId=api)
    assert refusal == ("NotFoundException", f"Invalid API identifier specified {ACCOUNT}:{api}")
    assert gateways.ask(api, "/prod/cars").status == 403


def test_resources_methods_and_stages_are_shown_as_recorded(gateway: Gateways) -> None:
    client = gateway.client
    api, root = gateway.api()
    resource = gateway.method(
        api, "/cars", "GET", MOCK, requestParameters={"method.request.querystring.q": True}
    )
    gateway.answer(api, resource, "GET", "200")
    deployment = gateway.deploy(api, variables={"v": "1"})
    (first, second) = gateway.resources(api)
    assert first == {"id": root, "path": "/"}
    assert second == {
        "id": resource,
        "parentId": root,
        "pathPart": "cars",
        "path": "/cars",
        "resourceMethods": {"GET": {}},
    }
    shown = client.get_method(restApiId=api, resourceId=resource, httpMethod="GET")
    assert shown["methodIntegration"] == {
        **MOCK,
        "passthroughBehavior": "WHEN_NO_MATCH",
        "timeoutInMillis": 29000,
        "cacheNamespace": resource,
        "cacheKeyParameters": [],
        "integrationResponses": {"200": {"statusCode": "200"}},
    }
    assert shown["methodResponses"].keys() == {"200", "400", "500"}
    whole = client.get_resources(restApiId=api, embed=["methods"])["items"][1]
    assert whole["resourceMethods"]["GET"]["requestParameters"] == {"method.request.querystring.q": True}
    stage = client.get_stage(restApiId=api, stageName="prod")
    assert (stage["deploymentId"], stage["variables"]) == (deployment, {"v": "1"})
    assert (stage["cacheClusterEnabled"], stage["cacheClusterStatus"]) == (False, "NOT_AVAILABLE")
    summary = client.get_deployment(restApiId=api, deploymentId=deployment, embed=["apisummary"])[
        "apiSummary"
    ]
    assert summary == {"/cars": {"GET": {"authorizationType": "NONE", "apiKeyRequired": False}}}


def test_patches_reach_what_the_console_and_terraform_patch(gateway: Gateways) -> None:
    client = gateway.client
    api, _ = gateway.api()
    resource = gateway.mock(api, "/cars")
    gateway.deploy(api)
    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:apis"
    operations = [
        {"op": "replace", "path": "/variables/colour", "value": "red"},
        {"op": "replace", "path": "/accessLogSettings/destinationArn", "value": group},
        {"op": "replace", "path": "/accessLogSettings/format", "value": "$context.requestId"},
        {"op": "replace", "path": "/*/*/throttling/rateLimit", "value": "7.5"},
        {"op": "replace", "path": "/~1cars/GET/metrics/enabled", "value": "true"},
    ]
    stage = client.update_stage(restApiId=api, stageName="prod", patchOperations=operations)
    assert stage["variables"] == {"colour": "red"}
    assert stage["accessLogSettings"] == {"destinationArn": group, "format": "$context.requestId"}
    others = {**operations[1], "value": group.replace(ACCOUNT, "999999999999")}
    at = {"restApiId": api, "stageName": "prod"}
    assert gateway.refused("update_stage", **at, patchOperations=[others])[0] == "BadRequestException"
    assert stage["methodSettings"]["*/*"]["throttlingRateLimit"] == 7.5
    assert stage["methodSettings"]["cars/GET"]["metricsEnabled"] is True
    gone = [{"op": "remove", "path": "/*/*"}, {"op": "remove", "path": "/accessLogSettings"}]
    stage = client.update_stage(restApiId=api, stageName="prod", patchOperations=gone)
    assert stage["methodSettings"].keys() == {"cars/GET"}
    assert "accessLogSettings" not in stage
    at = {"restApiId": api, "resourceId": resource, "httpMethod": "GET"}
    wanted = [{"op": "replace", "path": "/apiKeyRequired", "value": "true"}]
    assert client.update_method(**at, patchOperations=wanted)["apiKeyRequired"] is True
    moved = [{"op": "replace", "path": "/pathPart", "value": "vans"}]
    changed = client.update_resource(restApiId=api, resourceId=resource, patchOperations=moved)
    assert changed["path"] == "/vans"


def test_missing_parts_are_refused_in_amazons_words(gateway: Gateways) -> None:
    api, root = gateway.api()
    at: dict[str, Any] = {"restApiId": api, "resourceId": root, "httpMethod": "GET"}
    missing = "NotFoundException"
    assert gateway.refused("get_resource", restApiId=api, resourceId="x") == (
        missing,
        "Invalid Resource identifier specified",
    )
    assert gateway.refused("get_method", **at) == (missing, "Invalid Method identifier specified")
    gateway.client.put_method(**at, authorizationType="NONE")
    assert gateway.refused("get_integration", **at) == (missing, "Invalid Integration identifier specified")
    assert gateway.refused("get_method_response", **at, statusCode="200") == (
        missing,
        "Invalid Response status code specified",
    )
    assert gateway.refused("get_stage", restApiId=api, stageName="x") == (
        missing,
        "Invalid stage identifier specified",
    )
    assert gateway.refused("get_deployment", restApiId=api, deploymentId="x") == (
        missing,
        "Invalid Deployment identifier specified",
    )


def test_impossible_parts_are_refused_in_amazons_words(gateway: Gateways) -> None:
    api, root = gateway.api()
    client = gateway.client
    at: dict[str, Any] = {"restApiId": api, "resourceId": root, "httpMethod": "GET"}
    bad = "BadRequestException"
    assert gateway.refused("create_deployment", restApiId=api) == (
        bad,
        "The REST API doesn't contain any methods",
    )
    client.put_method(**at, authorizationType="NONE")
    assert gateway.refused("create_deployment", restApiId=api) == (bad, "No integration defined for method")
    assert gateway.refused("put_method", **at, authorizationType="NONE") == (
        "ConflictException",
        "Method already exists for this resource",
    )
    assert gateway.refused("put_method", **{**at, "httpMethod": "FETCH"}, authorizationType="NONE")[1] == (
        "Invalid HttpMethod specified. Valid options are GET,PUT,POST,DELETE,PATCH,OPTIONS,HEAD,ANY"
    )
    assert gateway.refused("put_integration", **at, type="AWS", uri="arn:aws:x")[1] == (
        "Enumeration value for HttpMethod must be non-empty"
    )
    code, text = gateway.refused("put_integration", **at, type="HTTPS_PROXY")
    assert code == "ValidationException"
    assert (
        "'HTTPS_PROXY' at 'putIntegrationInput.type' failed to satisfy constraint: Member must satisfy enum value set"
        in text
    )
    proxy = client.create_resource(restApiId=api, parentId=root, pathPart="{proxy+}")["id"]
    assert gateway.refused("create_resource", restApiId=api, parentId=root, pathPart="{id}")[1] == (
        "A sibling ({proxy+}) of this resource already has a variable path part -- only one is allowed"
    )
    assert gateway.refused("create_resource", restApiId=api, parentId=proxy, pathPart="x")[1] == (
        "Cannot create a child of a resource with a greedy path variable: {proxy+}"
    )
    client.create_resource(restApiId=api, parentId=root, pathPart="cars")
    assert gateway.refused("create_resource", restApiId=api, parentId=root, pathPart="cars") == (
        "ConflictException",
        "Another resource with the same parent already has this name: cars",
    )
    operation = [{"op": "replace", "path": "/x", "value": "1"}]
    assert gateway.refused("update_rest_api", restApiId=api, patchOperations=operation)[1] == (
        "Invalid patch path /x"
    )


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("create_rest_api", {"name": "x", "cloneFrom": "y"}),
        ("create_stage", {"stageName": "x", "deploymentId": "y", "canarySettings": {"percentTraffic": 5}}),
        ("create_stage", {"stageName": "x", "deploymentId": "y", "cacheClusterEnabled": True}),
    ],
)
def test_unoffered_features_are_refused_by_name(
    gateway: Gateways, operation: str, params: dict[str, Any]
) -> None:
    api, _ = gateway.api()
    named = {} if operation == "create_rest_api" else {"restApiId": api}
    code, text = gateway.refused(operation, **named, **params)
    assert code == "BadRequestException"
    assert text.startswith("Redrive does not offer "), text


SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "Cars", "version": "1"},
    "x-amazon-apigateway-binary-media-types": ["image/png"],
    "x-amazon-apigateway-request-validators": {"all": {"validateRequestBody": True}},
    "definitions": {"Car": {"type": "object", "required": ["make"]}},
    "paths": {
        "/cars/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "type": "string"}],
            "x-amazon-apigateway-any-method": {
                "x-amazon-apigateway-request-validator": "all",
                "parameters": [{"in": "body", "name": "car", "schema": {"$ref": "#/definitions/Car"}}],
                "responses": {"200": {"description": "it"}},
                "x-amazon-apigateway-integration": {
                    "type": "mock",
                    "passthroughBehavior": "when_no_match",
                    "requestTemplates": {"application/json": '{"statusCode": 200}'},
                    "responses": {
                        "default": {
                            "statusCode": "200",
                            "responseTemplates": {"application/json": '{"id": "$input.params(\'id\')"}'},
                        }
                    },
                },
            },
        }
    },
}


@pytest.mark.parametrize("form", ["swagger", "openapi", "yaml"])
def test_a_definition_is_imported(gateway: Gateways, form: str) -> None:
    document = dict(SWAGGER)
    body = orjson.dumps(document)
    if form == "openapi":
        document = {**document, "openapi": "3.0.1", "components": {"schemas": document.pop("definitions")}}
        del document["swagger"]
        body = orjson.dumps(document).replace(b"#/definitions/", b"#/components/schemas/")
    elif form == "yaml":
        body = b"# as YAML\n" + body  # JSON is YAML
    made = gateway.client.import_rest_api(body=body)
    assert (made["name"], made["binaryMediaTypes"]) == ("Cars", ["image/png"])
    gateway.deploy(made["id"])
    said = gateway.ask(
        made["id"], "/prod/cars/7", "PUT", b'{"make": 1}', {"Content-Type": "application/json"}
    )
    assert (said.status, said.document) == (200, {"id": "7"})


def test_a_definition_is_merged_or_takes_the_place_of_what_was(gateway: Gateways) -> None:
    client = gateway.client
    api, _ = gateway.api()
    gateway.mock(api, "/vans", template="{}")
    gateway.deploy(api)
    client.put_rest_api(restApiId=api, mode="merge", body=orjson.dumps(SWAGGER))
    assert {each["path"] for each in gateway.resources(api)} == {"/", "/vans", "/cars", "/cars/{id}"}
    client.put_rest_api(restApiId=api, mode="overwrite", body=orjson.dumps(SWAGGER))
    assert {each["path"] for each in gateway.resources(api)} == {"/", "/cars", "/cars/{id}"}
    assert gateway.ask(api, "/prod/vans").status == 200, "callers see the deployment"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"a: [",
        b"swagger: '2.0'\npaths: &a [*a]",
        b'{"swagger": "2.0", "paths": {"/x": {"get": {"x-amazon-apigateway-integration": {"type": "soap"}}}}}',
        b'{"swagger": "2.0", "paths": {"/x": {"get": {"security": 7, "responses": [1]}}}}',
        b'{"swagger": "2.0", "paths": {"/x": {"get": {"responses": {"200": 4}, "parameters": [{"in": {}}]}}}}',
        b'{"swagger": "2.0", "paths": ' + b'{"a":' * 100 + b"1" + b"}" * 101,
    ],
)
def test_a_malformed_definition_is_refused(gateway: Gateways, body: bytes) -> None:
    code, _ = gateway.refused("import_rest_api", body=body)
    assert code in {"BadRequestException", "ValidationException"}
    assert gateway.client.get_rest_apis()["items"] == []
