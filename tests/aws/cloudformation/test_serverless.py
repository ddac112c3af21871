"""Templates of serverless applications: translated, deployed, changed, and shown as they were and became."""

import json
from typing import Any

from tests.aws.cloudformation.stage import stage

SERVERLESS = "AWS::Serverless-2016-10-31"
CODE = "def handler(event, context):\n    return len(event['Records'])\n"
TEMPLATE: dict[str, Any] = {
    "Transform": SERVERLESS,
    "Parameters": {"Stage": {"Type": "String", "Default": "test"}},
    "Globals": {"Function": {"Runtime": "python3.12", "Timeout": 7}},
    "Resources": {
        "Orders": {"Type": "AWS::SNS::Topic"},
        "Work": {"Type": "AWS::SQS::Queue"},
        "Dead": {"Type": "AWS::SQS::Queue"},
        "Photos": {"Type": "AWS::S3::Bucket"},
        "Billing": {
            "Type": "AWS::Serverless::Function",
            "Properties": {
                "Handler": "index.handler",
                "InlineCode": CODE,
                "AutoPublishAlias": "live",
                "Environment": {"Variables": {"STAGE": {"Ref": "Stage"}}},
                "DeadLetterQueue": {"Type": "SQS", "TargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}},
                "Policies": [{"SQSSendMessagePolicy": {"QueueName": {"Fn::GetAtt": ["Work", "QueueName"]}}}],
                "EventInvokeConfig": {"MaximumRetryAttempts": 1},
                "Events": {
                    "FromTopic": {"Type": "SNS", "Properties": {"Topic": {"Ref": "Orders"}}},
                    "FromQueue": {"Type": "SQS", "Properties": {"Queue": {"Fn::GetAtt": ["Work", "Arn"]}}},
                    "FromBucket": {
                        "Type": "S3",
                        "Properties": {
                            "Bucket": {"Ref": "Photos"},
                            "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:Delete"],
                            "Filter": {"S3Key": {"Rules": [{"Name": "suffix", "Value": ".png"}]}},
                        },
                    },
                },
            },
        },
    },
}


def with_event(kind: str, **properties: Any) -> dict[str, Any]:
    """The template with one more event of its function."""
    template: dict[str, Any] = json.loads(json.dumps(TEMPLATE))
    events = template["Resources"]["Billing"]["Properties"]["Events"]
    events["More"] = {"Type": kind, "Properties": properties}
    return template


async def test_an_application_is_made_of_what_its_resources_stand_for() -> None:
    async with stage() as at:
        stack = await at.create("shop", TEMPLATE)
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        resources = await at.resources("shop")
        types = {resource["ResourceType"] for resource in resources.values()}
        assert types == {
            *("AWS::SNS::Topic", "AWS::SQS::Queue", "AWS::Lambda::Function", "AWS::IAM::Role"),
            *("AWS::Lambda::Version", "AWS::Lambda::Alias", "AWS::Lambda::EventInvokeConfig"),
            *("AWS::SNS::Subscription", "AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping"),
            "AWS::S3::Bucket",
        }
        name = resources["Billing"]["PhysicalResourceId"]
        function = await at.ask("lambda", "GetFunctionConfiguration", FunctionName=name)
        assert (function["Timeout"], function["Environment"]["Variables"]) == (7, {"STAGE": "test"})
        role = resources["BillingRole"]["PhysicalResourceId"]
        policies = await at.ask("iam", "ListAttachedRolePolicies", RoleName=role)
        assert {policy["PolicyName"] for policy in policies["AttachedPolicies"]} == {
            *("AWSLambdaBasicExecutionRole", "AWSLambdaSQSQueueExecutionRole")
        }
        bucket = resources["Photos"]["PhysicalResourceId"]
        notified = await at.ask("s3", "GetBucketNotificationConfiguration", Bucket=bucket)
        arn = f"{function['FunctionArn']}:live"
        ends = {"Key": {"FilterRules": [{"Name": "Suffix", "Value": ".png"}]}}
        rules = notified["LambdaFunctionConfigurations"]
        assert [(rule["LambdaFunctionArn"], rule["Events"], rule["Filter"]) for rule in rules] == [
            (arn, ["s3:ObjectCreated:*"], ends),
            (arn, ["s3:ObjectRemoved:Delete"], ends),
        ]
        original = await at.stacks("GetTemplate", StackName="shop")
        assert json.loads(original["TemplateBody"]) == TEMPLATE
        processed = await at.stacks("GetTemplate", StackName="shop", TemplateStage="Processed")
        assert (
            json.loads(processed["TemplateBody"])["Resources"]["Billing"]["Type"] == "AWS::Lambda::Function"
        )

        chosen = [{"ParameterKey": "Stage", "ParameterValue": "live"}]
        await at.stacks(
            "UpdateStack",
            StackName="shop",
            UsePreviousTemplate=True,
            Parameters=chosen,
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
        assert (await at.ended(stack["StackId"]))["StackStatus"] == "UPDATE_COMPLETE"
        function = await at.ask("lambda", "GetFunctionConfiguration", FunctionName=name)
        assert function["Environment"]["Variables"] == {"STAGE": "live"}
        others: dict[str, Any] = json.loads(json.dumps(TEMPLATE))
        del others["Resources"]["Billing"]["Properties"]["Events"]["FromBucket"]
        assert (await at.update("shop", others))["StackStatus"] == "UPDATE_COMPLETE"
        assert await at.ask("s3", "GetBucketNotificationConfiguration", Bucket=bucket) == {}


async def test_an_application_is_refused_where_it_wants_what_there_is_not() -> None:
    async with stage() as at:
        asked = {"StackName": "shop", "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]}
        wrong = {**TEMPLATE, "Resources": {"F": {"Type": "AWS::Serverless::Function", "Properties": {}}}}
        text = await at.refused("CreateStack", **asked, TemplateBody=wrong)
        assert text.startswith(
            f"Transform {SERVERLESS} failed with: Invalid Serverless Application Specification document."
            " Number of errors found: 1. Resource with id [F] is invalid."
        )
        scheduled = with_event("Schedule", Schedule="rate(1 minute)")
        text = await at.refused("CreateStack", **asked, TemplateBody=scheduled)
        assert "Unrecognized resource types: [AWS::Events::Rule]" in text
        text = await at.refused("CreateStack", **asked, TemplateBody={**TEMPLATE, "Transform": "Mine"})
        assert text == "No transform named Mine found."
        text = await at.refused("CreateStack", StackName="shop", TemplateBody=TEMPLATE)
        assert text == "Requires capabilities : [CAPABILITY_IAM, CAPABILITY_AUTO_EXPAND]"


async def test_an_application_is_summed_up_as_its_author_wrote_it() -> None:
    async with stage() as at:
        summary = await at.stacks("GetTemplateSummary", TemplateBody=TEMPLATE)
        assert "AWS::Serverless::Function" in summary["ResourceTypes"]
        assert summary["DeclaredTransforms"] == [SERVERLESS]
        valid = await at.stacks("ValidateTemplate", TemplateBody=TEMPLATE)
        assert valid["Capabilities"] == ["CAPABILITY_AUTO_EXPAND"]


_GUARDS: Any = {
    "ByToken": {"FunctionArn": {"Fn::GetAtt": ["Guard", "Arn"]}, "Identity": {"ReauthorizeEvery": 0}},
    "ByRequest": {
        "FunctionArn": {"Fn::GetAtt": ["Guard", "Arn"]},
        "FunctionPayloadType": "REQUEST",
        "Identity": {"Headers": ["X-Token"], "QueryStrings": ["q"]},
    },
}
_ROUTED: Any = {
    "Issuer": {
        "IdentitySource": "$request.header.Authorization",
        "JwtConfiguration": {"issuer": "https://issuer.example", "audience": ["cars"]},
    },
    "ByFunction": {
        "FunctionArn": {"Fn::GetAtt": ["Guard", "Arn"]},
        "AuthorizerPayloadFormatVersion": "2.0",
        "EnableSimpleResponses": True,
        "Identity": {"Headers": ["X-Token"]},
    },
}


async def test_an_applications_apis_have_their_authorizers() -> None:
    function = {"Handler": "index.handler", "InlineCode": CODE}

    def event(kind: str, api: str, path: str, **auth: Any) -> dict[str, Any]:
        member = "RestApiId" if kind == "Api" else "ApiId"
        named = {"Path": path, "Method": "get", member: {"Ref": api}}
        return {"Type": kind, "Properties": {**named, **({"Auth": auth} if auth else {})}}

    events = {
        "Token": event("Api", "Cars", "/token"),
        "Request": event("Api", "Cars", "/request", Authorizer="ByRequest"),
        "Open": event("Api", "Cars", "/open", Authorizer="NONE"),
        "Scoped": event("HttpApi", "Fleet", "/scoped", Authorizer="Issuer", AuthorizationScopes=["read"]),
        "Function": event("HttpApi", "Fleet", "/function", Authorizer="ByFunction"),
    }
    template = {
        "Transform": SERVERLESS,
        "Globals": TEMPLATE["Globals"],
        "Resources": {
            "Guard": {"Type": "AWS::Serverless::Function", "Properties": function},
            "Behind": {"Type": "AWS::Serverless::Function", "Properties": {**function, "Events": events}},
            "Cars": {
                "Type": "AWS::Serverless::Api",
                "Properties": {
                    "StageName": "prod",
                    "Auth": {"DefaultAuthorizer": "ByToken", "Authorizers": _GUARDS},
                },
            },
            "Fleet": {"Type": "AWS::Serverless::HttpApi", "Properties": {"Auth": {"Authorizers": _ROUTED}}},
        },
    }
    async with stage() as at:
        stack = await at.create("shop", template)
        assert stack["StackStatus"] == "CREATE_COMPLETE", await at.reasons("shop", "CREATE_FAILED")
        ids = {name: each["PhysicalResourceId"] for name, each in (await at.resources("shop")).items()}
        named = (await at.ask("apigateway", "GetAuthorizers", restApiId=ids["Cars"]))["items"]
        guards_by_id = {each["id"]: each["name"] for each in named}
        resources = await at.ask("apigateway", "GetResources", restApiId=ids["Cars"], embed=["methods"])
        assert {
            each["path"]: guards_by_id.get(each["resourceMethods"]["GET"].get("authorizerId"))
            for each in resources["items"]
            if "resourceMethods" in each
        } == {"/token": "ByToken", "/request": "ByRequest", "/open": None}
        parts = (await at.ask("apigatewayv2", "GetAuthorizers", ApiId=ids["Fleet"]))["Items"]
        kinds = {each["AuthorizerId"]: each["Name"] for each in parts}
        routes = (await at.ask("apigatewayv2", "GetRoutes", ApiId=ids["Fleet"]))["Items"]
        assert {
            each["RouteKey"]: (
                each["AuthorizationType"],
                kinds[each["AuthorizerId"]],
                each.get("AuthorizationScopes"),
            )
            for each in routes
            if "AuthorizerId" in each
        } == {
            "GET /scoped": ("JWT", "Issuer", ["read"]),
            "GET /function": ("CUSTOM", "ByFunction", None),
        }
