"""Types of API Gateway: their tags follow the template, and a stage has all that a template says of it."""

from typing import Any

import pytest

from tests.aws.cloudformation.stage import Stage, stage

_METHOD = {
    "RestApiId": {"Ref": "Api"},
    "ResourceId": {"Fn::GetAtt": ["Api", "RootResourceId"]},
    "HttpMethod": "GET",
    "AuthorizationType": "NONE",
    "Integration": {"Type": "MOCK"},
}


def _template(team: str, described: dict[str, Any], **test: Any) -> dict[str, Any]:
    tags = [{"Key": "team", "Value": team}]

    def of(kind: str, **properties: Any) -> dict[str, Any]:
        return {"Type": f"AWS::ApiGateway{kind}", "Properties": properties}

    deployment = {
        **of("::Deployment", RestApiId={"Ref": "Api"}, StageName="prod", StageDescription=described),
        "DependsOn": "Method",
    }
    staged = {"RestApiId": {"Ref": "Api"}, "StageName": "test", "DeploymentId": {"Ref": "Deployment"}}
    return {
        "Resources": {
            "Api": of("::RestApi", Tags=tags),
            "Method": of("::Method", **_METHOD),
            "Deployment": deployment,
            "Stage": of("::Stage", **staged, Tags=tags, **test),
            "Key": of("::ApiKey", Enabled=True, Tags=tags),
            "Plan": of("::UsagePlan", Tags=tags),
            "Fleet": of("V2::Api", Name="Fleet", ProtocolType="HTTP", Tags={"team": team}),
        }
    }


async def _teams(at: Stage, name: str) -> set[str]:
    """The teams of all that can have tags."""
    ids = {key: found["PhysicalResourceId"] for key, found in (await at.resources(name)).items()}
    api = f"/restapis/{ids['Api']}"
    paths = [api, f"{api}/stages/test", f"/apikeys/{ids['Key']}", f"/usageplans/{ids['Plan']}"]
    named = [f"arn:aws:apigateway:us-east-1::{path}" for path in paths]
    found = [(await at.ask("apigateway", "GetTags", resourceArn=arn))["tags"] for arn in named]
    fleet = f"arn:aws:apigateway:us-east-1::/apis/{ids['Fleet']}"
    found.append((await at.ask("apigatewayv2", "GetTags", ResourceArn=fleet))["Tags"])
    return {tags.get("team", "") for tags in found}


async def _stage(at: Stage, name: str, stage_name: str) -> dict[str, Any]:
    api = (await at.resources(name))["Api"]["PhysicalResourceId"]
    return dict(await at.ask("apigateway", "GetStage", restApiId=api, stageName=stage_name))


@pytest.mark.asyncio
async def test_tags_and_stages_follow_the_template() -> None:
    async with stage() as at:
        described = {"LoggingLevel": "INFO", "ThrottlingRateLimit": 7, "Description": "first"}
        made = await at.create("gate", _template("cars", described))
        assert made["StackStatus"] == "CREATE_COMPLETE", await at.reasons("gate", "CREATE_FAILED")
        assert await _teams(at, "gate") == {"cars"}
        prod = await _stage(at, "gate", "prod")
        settings = prod["methodSettings"]["*/*"]
        assert (settings["loggingLevel"], settings["throttlingRateLimit"]) == ("INFO", 7.0)
        assert prod["description"] == "first"
        changed = await at.update("gate", _template("vans", {**described, "LoggingLevel": "ERROR"}))
        assert changed["StackStatus"] == "UPDATE_COMPLETE", await at.reasons("gate", "UPDATE_FAILED")
        assert await _teams(at, "gate") == {"vans"}
        prod = await _stage(at, "gate", "prod")
        assert prod["methodSettings"]["*/*"]["loggingLevel"] == "ERROR"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [
        ({"CanarySetting": {"PercentTraffic": 10}}, "canary releases"),
        ({"ClientCertificateId": "abc"}, "client certificates"),
    ],
)
async def test_settings_that_are_not_offered_are_refused_when_they_come_later(
    wanted: dict[str, Any], refusal: str
) -> None:
    async with stage() as at:
        await at.create("gate", _template("cars", {}))
        changed = await at.update("gate", _template("cars", {}, **wanted))
        assert changed["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        assert refusal in (await at.reasons("gate", "UPDATE_FAILED"))["Stage"]


@pytest.mark.asyncio
async def test_a_rest_api_and_its_parts_lose_what_their_template_no_longer_says() -> None:
    def template(api: dict[str, Any], **more: Any) -> dict[str, Any]:
        parts = {"Api": ("RestApi", api), "Key": ("ApiKey", more)}
        parts["Car"] = (
            "Model",
            {
                **more,
                "RestApiId": {"Ref": "Api"},
                "ContentType": "application/json",
                "Schema": {"type": "object"},
            },
        )
        return {
            "Resources": {
                name: {"Type": f"AWS::ApiGateway::{kind}", "Properties": properties}
                for name, (kind, properties) in parts.items()
            }
        }

    async with stage() as at:
        types = {"BinaryMediaTypes": ["image/png", "image/gif"], "MinimumCompressionSize": 7}
        await at.create("gate", template({"Description": "d", **types}, Description="d"))
        changed = await at.update("gate", template({"BinaryMediaTypes": ["image/gif", "a/b"]}))
        assert changed["StackStatus"] == "UPDATE_COMPLETE", await at.reasons("gate", "UPDATE_FAILED")
        ids = {key: found["PhysicalResourceId"] for key, found in (await at.resources("gate")).items()}
        api = await at.ask("apigateway", "GetRestApi", restApiId=ids["Api"])
        key = await at.ask("apigateway", "GetApiKey", apiKey=ids["Key"])
        model = await at.ask("apigateway", "GetModel", restApiId=ids["Api"], modelName=ids["Car"])
        assert api["binaryMediaTypes"] == ["image/gif", "a/b"]
        assert "minimumCompressionSize" not in api
        assert "description" not in {**api, **key, **model}


@pytest.mark.asyncio
async def test_an_http_api_loses_what_its_template_no_longer_says() -> None:
    function = "arn:aws:lambda:us-east-1:123456789012:function:f"

    def template(api: dict[str, Any], integration: dict[str, Any], staged: dict[str, Any]) -> dict[str, Any]:
        called = {
            "IntegrationType": "AWS_PROXY",
            "IntegrationUri": function,
            "PayloadFormatVersion": "2.0",
            **integration,
        }
        resources = {
            "Api": ("Api", {"Name": "Fleet", "ProtocolType": "HTTP", **api}),
            "Integration": ("Integration", {"ApiId": {"Ref": "Api"}, **called}),
            "Stage": ("Stage", {"ApiId": {"Ref": "Api"}, "StageName": "test", **staged}),
        }
        return {
            "Resources": {
                name: {"Type": f"AWS::ApiGatewayV2::{kind}", "Properties": properties}
                for name, (kind, properties) in resources.items()
            }
        }

    async with stage() as at:
        limits = {"DefaultRouteSettings": {"ThrottlingRateLimit": 1.0}, "StageVariables": {"a": "b"}}
        first = template({"Description": "cars"}, {"TimeoutInMillis": 700, "Description": "old"}, limits)
        made = await at.create("fleet", first)
        assert made["StackStatus"] == "CREATE_COMPLETE", await at.reasons("fleet", "CREATE_FAILED")
        changed = await at.update("fleet", template({}, {}, {}))
        assert changed["StackStatus"] == "UPDATE_COMPLETE", await at.reasons("fleet", "UPDATE_FAILED")
        api = (await at.resources("fleet"))["Api"]["PhysicalResourceId"]
        assert (await at.ask("apigatewayv2", "GetApi", ApiId=api))["Description"] == ""
        (integration,) = (await at.ask("apigatewayv2", "GetIntegrations", ApiId=api))["Items"]
        assert (integration["TimeoutInMillis"], integration["Description"]) == (30_000, "")
        (staged,) = (await at.ask("apigatewayv2", "GetStages", ApiId=api))["Items"]
        assert (staged["DefaultRouteSettings"], staged["StageVariables"]) == ({}, {})


@pytest.mark.asyncio
async def test_authorizers_are_made_changed_and_needed_by_methods_and_routes() -> None:
    function = "arn:aws:lambda:us-east-1:123456789012:function:guard"
    uri = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{function}/invocations"

    def template(seconds: int) -> dict[str, Any]:
        guard = {
            "RestApiId": {"Ref": "Api"},
            "Name": "guard",
            "Type": "TOKEN",
            "AuthorizerUri": uri,
            "IdentitySource": "method.request.header.X-Token",
            "AuthorizerResultTtlInSeconds": seconds,
        }
        routed = {
            "ApiId": {"Ref": "Fleet"},
            "Name": "guard",
            "AuthorizerType": "REQUEST",
            "AuthorizerUri": uri,
        }
        answers = {"AuthorizerPayloadFormatVersion": "2.0", "EnableSimpleResponses": True}
        custom = {"AuthorizationType": "CUSTOM", "AuthorizerId": {"Ref": "Guard"}}
        resources = {
            "Api": ("::RestApi", {"Name": "Cars"}),
            "Guard": ("::Authorizer", guard),
            "Method": ("::Method", {**_METHOD, **custom}),
            "Fleet": ("V2::Api", {"Name": "Fleet", "ProtocolType": "HTTP"}),
            "Router": ("V2::Authorizer", {**routed, **answers}),
            "Route": (
                "V2::Route",
                {
                    "ApiId": {"Ref": "Fleet"},
                    "RouteKey": "GET /",
                    "AuthorizationType": "CUSTOM",
                    "AuthorizerId": {"Fn::GetAtt": ["Router", "AuthorizerId"]},
                },
            ),
        }
        return {
            "Resources": {
                name: {"Type": f"AWS::ApiGateway{kind}", "Properties": properties}
                for name, (kind, properties) in resources.items()
            }
        }

    async with stage() as at:
        made = await at.create("gate", template(60))
        assert made["StackStatus"] == "CREATE_COMPLETE", await at.reasons("gate", "CREATE_FAILED")
        ids = {name: each["PhysicalResourceId"] for name, each in (await at.resources("gate")).items()}
        (route,) = (await at.ask("apigatewayv2", "GetRoutes", ApiId=ids["Fleet"]))["Items"]
        assert (route["AuthorizationType"], route["AuthorizerId"]) == ("CUSTOM", ids["Router"])
        assert (await at.update("gate", template(0)))["StackStatus"] == "UPDATE_COMPLETE"
        (guard,) = (await at.ask("apigateway", "GetAuthorizers", restApiId=ids["Api"]))["items"]
        assert (guard["id"], guard["authorizerResultTtlInSeconds"]) == (ids["Guard"], 0)
        deleted = await at.delete(made)
        assert deleted["StackStatus"] == "DELETE_COMPLETE", await at.reasons(made["StackId"], "DELETE_FAILED")
