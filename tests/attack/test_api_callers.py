"""Callers of APIs: what they make an integration do, and the spellings of paths by which they go round policies."""

from typing import Any, Final
from urllib.parse import quote

import pytest

from redrive.model.http import Request
from tests.attack.test_function_rights import code
from tests.aws.stage import HOST, REGION, Stage, allow, deny, on_stage, policy, signed

BY_GATEWAY: Final = {"Service": "apigateway.amazonaws.com"}
FORM: Final = "application/x-www-form-urlencoded"
#: Spellings of `/o/5` that lead to the same route with the same parameter.
SPELLINGS: Final = ("/o/5", "/o/%35", "/o/5/", "/o//5", "//o/5")
#: Parts of dots are texts as others to the routes, so they lead no policy elsewhere.
DOTS: Final = {"/o/..": "/o/..", "/o/%2E%2e": "/o/..", "/o/%2e": "/o/."}


def request_to(api: str, path: str, body: bytes = b"", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    method = "POST" if body else "GET"
    return Request(method, f"/_aws/execute-api/{api}/s{path}", "", {"host": HOST, **named}, body)


# ---- integrations -------------------------------------------------------------------------------------------------


async def integrated(stage: Stage, uri: str, **members: Any) -> str:
    """The id of an API whose root calls a service as a role that may do anything with it, for whoever asks."""
    role = await stage.role("gateway", BY_GATEWAY, allow("*"))
    api = await stage.call(stage.root, "apigateway", "CreateRestApi", name="a")
    at = {"restApiId": api["id"], "resourceId": api["rootResourceId"], "httpMethod": "POST"}
    await stage.call(stage.root, "apigateway", "PutMethod", **at, authorizationType="NONE")
    integration = {"type": "AWS", "integrationHttpMethod": "POST", "uri": uri, "credentials": role, **members}
    await stage.call(stage.root, "apigateway", "PutIntegration", **at, **integration)
    for answer_of in ("PutMethodResponse", "PutIntegrationResponse"):
        await stage.call(stage.root, "apigateway", answer_of, **at, statusCode="200")
    await stage.call(stage.root, "apigateway", "CreateDeployment", restApiId=api["id"], stageName="s")
    api_id: str = api["id"]
    return api_id


@pytest.mark.parametrize("padding", [0, 40_000], ids=["short", "behind what is searched for an action"])
def test_a_form_of_a_caller_changes_neither_the_action_nor_what_the_integration_names(padding: int) -> None:
    async def play(stage: Stage) -> None:
        urls = {}
        for name in ("inbox", "secret"):
            made = await stage.call(stage.root, "sqs", "CreateQueue", QueueName=name)
            urls[name] = made["QueueUrl"]
        await stage.call(stage.root, "sqs", "SendMessage", QueueUrl=urls["secret"], MessageBody="a secret")
        names = {
            "integration.request.querystring.QueueUrl": f"'{urls['inbox']}'",
            "integration.request.querystring.MessageBody": "'told'",
        }
        uri = f"arn:aws:apigateway:{REGION}:sqs:action/SendMessage"
        api = await integrated(stage, uri, requestParameters=names)
        fields = f"Action=ReceiveMessage&QueueUrl={quote(urls['secret'], safe='')}&MessageBody=other"
        body = f"{fields}&x={'x' * padding}&{fields}".encode()
        answer = await stage.send(request_to(api, "/", body, content_type=FORM))
        assert (answer.status, b"SendMessageResponse" in answer.body) == (200, True), answer.body
        for name, bodies in (("inbox", ["told"]), ("secret", ["a secret"])):
            received = await stage.call(stage.root, "sqs", "ReceiveMessage", QueueUrl=urls[name])
            assert [message["Body"] for message in received["Messages"]] == bodies

    on_stage(play)


@pytest.mark.parametrize("body", [b"[" * 100_000, b"1" * 5000])
def test_a_document_that_cannot_be_read_is_no_exception(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("gateway", BY_GATEWAY, allow("*"))
        made = await stage.call(stage.root, "apigatewayv2", "CreateApi", Name="h", ProtocolType="HTTP")
        at = {"ApiId": made["ApiId"]}
        names = {"QueueUrl": "q", "MessageBody": "m", "MessageAttributes": "$request.body"}
        sends = {
            "IntegrationSubtype": "SQS-SendMessage",
            "PayloadFormatVersion": "1.0",
            "CredentialsArn": role,
        }
        integration = await stage.call(
            stage.root,
            "apigatewayv2",
            "CreateIntegration",
            **at,
            **sends,
            IntegrationType="AWS_PROXY",
            RequestParameters=names,
        )
        target = f"integrations/{integration['IntegrationId']}"
        await stage.call(stage.root, "apigatewayv2", "CreateRoute", **at, RouteKey="POST /", Target=target)
        await stage.call(stage.root, "apigatewayv2", "CreateStage", **at, StageName="s", AutoDeploy=True)
        answer = await stage.send(request_to(at["ApiId"], "/", body, content_type="text/plain"))
        assert answer.status == 500
        assert "Traceback" not in caplog.text

    on_stage(play)


# ---- policies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "denied"), [*((each, "/o/5") for each in SPELLINGS), *DOTS.items()])
@pytest.mark.parametrize("authorization", ["NONE", "AWS_IAM"])
def test_a_deny_of_a_path_holds_for_all_of_its_spellings(authorization: str, path: str, denied: str) -> None:
    """By the policy of the API itself, and by that of the user who signs."""

    async def play(stage: Stage) -> None:
        invoke = "execute-api:Invoke"
        api = await stage.call(stage.root, "apigateway", "CreateRestApi", name="a")
        method = f"arn:aws:execute-api:{REGION}:*:{api['id']}/s/GET"
        if authorization == "NONE":
            to_all = {"Effect": "Allow", "Principal": "*", "Action": invoke, "Resource": "*"}
            not_five = {**to_all, "Effect": "Deny", "Resource": f"{method}{denied}"}
            patches = [{"op": "replace", "path": "/policy", "value": policy(to_all, not_five)}]
            await stage.call(
                stage.root, "apigateway", "UpdateRestApi", restApiId=api["id"], patchOperations=patches
            )
        at = {"restApiId": api["id"], "parentId": api["rootResourceId"]}
        for part in ("o", "{id}"):
            made = await stage.call(stage.root, "apigateway", "CreateResource", **at, pathPart=part)
            at["parentId"] = made["id"]
        at = {"restApiId": api["id"], "resourceId": at["parentId"], "httpMethod": "GET"}
        await stage.call(stage.root, "apigateway", "PutMethod", **at, authorizationType=authorization)
        mock = {"type": "MOCK", "requestTemplates": {"application/json": '{"statusCode": 200}'}}
        await stage.call(stage.root, "apigateway", "PutIntegration", **at, **mock)
        for answer_of in ("PutMethodResponse", "PutIntegrationResponse"):
            await stage.call(stage.root, "apigateway", answer_of, **at, statusCode="200")
        await stage.call(stage.root, "apigateway", "CreateDeployment", restApiId=api["id"], stageName="s")
        bob = await stage.user("bob", allow(invoke), deny(invoke, on=f"{method}{denied}"))

        async def status(path: str) -> int:
            request = request_to(api["id"], path)
            return (
                await stage.send(
                    signed(request, "execute-api", bob) if authorization == "AWS_IAM" else request
                )
            ).status

        assert await status("/o/6") == 200
        assert await status(path) == 403

    on_stage(play)


DECIDES: Final = """
def f(event, context):
    arn = event.get("methodArn") or event["routeArn"]
    of_api = "/".join(arn.split("/")[:2])
    denied = [f"{of_api}/GET/o/5"]
    statements = [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": [arn]},
                  {"Effect": "Deny", "Action": "execute-api:Invoke", "Resource": denied}]
    return {"principalId": "somebody", "policyDocument": {"Version": "2012-10-17", "Statement": statements}}
"""


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_an_authorizer_s_policy_holds_for_all_spellings_and_for_nothing_else(version: str) -> None:
    """An authorizer allows the ARN that it is told of: a star in the path is none in that policy."""

    async def play(stage: Stage) -> None:
        role = await stage.role("worker", {"Service": "lambda.amazonaws.com"}, allow("*"))
        arns = {}
        for name, source in (
            ("decides", DECIDES),
            ("answers", "def f(event, context):\n    return {'statusCode': 200}"),
        ):
            made = await stage.call(
                stage.root, "lambda", "CreateFunction", FunctionName=name, Role=role, **code(source)
            )
            arns[name] = made["FunctionArn"]
            given = {
                "StatementId": "api",
                "Action": "lambda:InvokeFunction",
                "Principal": BY_GATEWAY["Service"],
            }
            await stage.call(stage.root, "lambda", "AddPermission", FunctionName=name, **given)
        api = (await stage.call(stage.root, "apigatewayv2", "CreateApi", Name="h", ProtocolType="HTTP"))[
            "ApiId"
        ]
        functions = f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions"
        authorizer = await stage.call(
            stage.root,
            "apigatewayv2",
            "CreateAuthorizer",
            ApiId=api,
            Name="decides",
            AuthorizerType="REQUEST",
            AuthorizerUri=f"{functions}/{arns['decides']}/invocations",
            AuthorizerPayloadFormatVersion=version,
            AuthorizerResultTtlInSeconds=60,
            IdentitySource=["$request.header.Authorization"],
        )
        proxy = {"IntegrationType": "AWS_PROXY", "IntegrationUri": arns["answers"]}
        integration = await stage.call(
            stage.root, "apigatewayv2", "CreateIntegration", ApiId=api, PayloadFormatVersion="2.0", **proxy
        )
        await stage.call(
            stage.root,
            "apigatewayv2",
            "CreateRoute",
            ApiId=api,
            RouteKey="GET /o/{id}",
            AuthorizationType="CUSTOM",
            AuthorizerId=authorizer["AuthorizerId"],
            Target=f"integrations/{integration['IntegrationId']}",
        )
        await stage.call(stage.root, "apigatewayv2", "CreateStage", ApiId=api, StageName="s", AutoDeploy=True)

        async def status(path: str, token: str) -> int:
            return (await stage.send(request_to(api, path, authorization=token))).status

        for number, path in enumerate(SPELLINGS):
            assert await status(path, f"five {number}") == 403
        for path in ("/o/6", "/o/%36", "/o/6/", "/o/a%2Fb%20c", "/o/a@b"):
            assert await status(path, path) == 200
        for number, star in enumerate(("/o/*", "/o/%2A", "/o/?", "/o/%3f")):
            assert await status(star, f"star {number}") == 200
            assert await status("/o/7", f"star {number}") == 403  # by what is remembered of the one before

    on_stage(play, functions="on")
