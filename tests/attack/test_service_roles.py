"""Roles that services act as: each parameter of each offered operation that takes one, and each other way to store one.

Each is tried with a role of another account, by another account, by a user and by a session without `iam:PassRole`, and
with a role that does not trust the service. The parameters are found in the published models, so an operation that is
offered one day has to be tried here, or to be refused by name.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from redrive.aws.wire.shapes import Shape
from tests.aws.iam.test_closed_by_default import archive, required
from tests.aws.stage import (
    ACCOUNT,
    OTHER,
    REGION,
    Key,
    Refused,
    Stage,
    allow,
    deny,
    on_stage,
)

#: Operations of these services are about roles, or ask a role's trust for the caller itself.
ABOUT_ROLES: Final = frozenset({"iam", "sts"})
ROLE_MEMBER: Final = re.compile(r"(role(arn)?|credentials(arn)?)$", re.IGNORECASE)
REFUSALS: Final = re.compile(
    r"iam:PassRole|Cross-account pass role|[Aa]ssume|not a valid role|required permissions|test message"
)
UNOFFERED: Final = re.compile(r"not offer|not available|Exactly one destination")
STANDING: Final = f"arn:aws:iam::{ACCOUNT}:role/standing"  # what is there before has it
GOOD: Final = f"arn:aws:iam::{ACCOUNT}:role/good"
UNTRUSTING: Final = f"arn:aws:iam::{ACCOUNT}:role/untrusting"
FOREIGN: Final = f"arn:aws:iam::{OTHER}:role/good"
STREAM: Final = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream/standing"
QUEUE_URI: Final = f"arn:aws:apigateway:{REGION}:sqs:path/{ACCOUNT}/q"
FUNCTION: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:standing"
TEMPLATE: Final = json.dumps(
    {"Resources": {"P": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}}}
)
OTHER_TEMPLATE: Final = TEMPLATE.replace('"v"', '"w"')
SERVICES: Final = ("lambda", "logs", "apigateway", "cloudformation", "firehose", "sns")

Params = dict[str, Any]


class Way(NamedTuple):
    """A request that stores a role."""

    service: str
    operation: str
    params: Callable[[str], Params]


class World:
    """The resources that the requests are about, and fresh names for those that they make."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.made = 0
        self.ids: dict[str, str] = {}

    def new(self) -> str:
        self.made += 1
        return f"made-{self.made}"

    async def build(self) -> None:
        call = partial(self.stage.call, self.stage.root)
        trusted = {
            "Service": [f"{name}.amazonaws.com" for name in SERVICES],
            "AWS": f"arn:aws:iam::{ACCOUNT}:root",
        }
        for name in ("standing", "good"):
            await self.stage.role(name, trusted, allow("*"))
        await self.stage.role("untrusting", {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, allow("*"))
        trust = {"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        await self.stage.call(
            self.stage.stranger, "iam", "CreateRole", RoleName="good", AssumeRolePolicyDocument=document
        )
        await call("sqs", "CreateQueue", QueueName="q")
        await call("s3", "CreateBucket", Bucket="bucket")
        await call("logs", "CreateLogGroup", logGroupName="group")
        self.ids["topic"] = (await call("sns", "CreateTopic", Name="t"))["TopicArn"]
        await call("lambda", "CreateFunction", FunctionName="standing", Role=STANDING, **CODE)
        await call(
            "firehose",
            "CreateDeliveryStream",
            DeliveryStreamName="standing",
            **filled("S3DestinationConfiguration", STANDING),
        )
        await call("cloudformation", "CreateStack", StackName="standing", TemplateBody=TEMPLATE)
        rest = await call("apigateway", "CreateRestApi", name="standing")
        self.ids["rest"], self.ids["root"] = rest["id"], rest["rootResourceId"]
        at = {"restApiId": rest["id"], "resourceId": rest["rootResourceId"], "httpMethod": "GET"}
        await call("apigateway", "PutMethod", **at, authorizationType="NONE")
        await call("apigateway", "PutIntegration", **at, **ASKED)
        api = await call("apigatewayv2", "CreateApi", Name="standing", ProtocolType="HTTP", Target=FUNCTION)
        self.ids["http"] = api["ApiId"]
        (integration,) = (await call("apigatewayv2", "GetIntegrations", ApiId=api["ApiId"]))["Items"]
        self.ids["integration"] = integration["IntegrationId"]
        guard = await call("apigateway", "CreateAuthorizer", restApiId=rest["id"], name="standing", **GUARD)
        self.ids["guard"] = guard["id"]
        router = await call("apigatewayv2", "CreateAuthorizer", ApiId=api["ApiId"], **ROUTED)
        self.ids["router"] = router["AuthorizerId"]
        self.ids["application"] = (
            await call("sns", "CreatePlatformApplication", Name="app", Platform="GCM", Attributes=GCM)
        )["PlatformApplicationArn"]
        await self.stage.advance(5)

    # ---- requests --------------------------------------------------------------------------------------------

    def of_authorizers(self) -> dict[str, Callable[[str], Params]]:
        """Those of authorizers, as `published` has them."""
        http = {"ApiId": self.ids["http"]}
        return {
            "apigateway CreateAuthorizer authorizerCredentials": lambda role: {
                "restApiId": self.ids["rest"],
                **GUARD,
                "name": self.new(),
                "authorizerCredentials": role,
            },
            "apigatewayv2 CreateAuthorizer AuthorizerCredentialsArn": lambda role: {
                **http,
                **ROUTED,
                "AuthorizerCredentialsArn": role,
            },
            "apigatewayv2 UpdateAuthorizer AuthorizerCredentialsArn": lambda role: {
                **http,
                "AuthorizerId": self.ids["router"],
                "AuthorizerCredentialsArn": role,
            },
        }

    def published(self) -> dict[tuple[str, str, str], Callable[[str], Params]]:
        """Requests that are in order but for the role, by service, operation and parameter."""
        stack = {"StackName": "standing"}
        rest = {"restApiId": self.ids["rest"], "resourceId": self.ids["root"], "httpMethod": "GET"}
        http, integration = {"ApiId": self.ids["http"]}, {"IntegrationId": self.ids["integration"]}
        proxy = {"IntegrationType": "AWS_PROXY", "IntegrationUri": FUNCTION, "PayloadFormatVersion": "2.0"}
        quick = {"ProtocolType": "HTTP", "Target": FUNCTION}
        update = {"DeliveryStreamName": "standing", "DestinationId": "destinationId-000000000001"}
        filter_ = {"logGroupName": "group", "filterName": "f", "filterPattern": "", "destinationArn": STREAM}
        requests: dict[str, Callable[[str], Params]] = {
            "lambda CreateFunction Role": lambda role: {"FunctionName": self.new(), **CODE, "Role": role},
            "lambda UpdateFunctionConfiguration Role": lambda role: {
                "FunctionName": "standing",
                "Role": role,
            },
            "logs PutSubscriptionFilter roleArn": lambda role: {**filter_, "roleArn": role},
            "apigateway PutIntegration credentials": lambda role: {**rest, **ASKED, "credentials": role},
            "apigatewayv2 CreateIntegration CredentialsArn": lambda role: {
                **http,
                **proxy,
                "CredentialsArn": role,
            },
            "apigatewayv2 UpdateIntegration CredentialsArn": lambda role: {
                **http,
                **integration,
                "CredentialsArn": role,
            },
            **self.of_authorizers(),
            "apigatewayv2 CreateApi CredentialsArn": lambda role: {
                "Name": "n",
                **quick,
                "CredentialsArn": role,
            },
            "apigatewayv2 UpdateApi CredentialsArn": lambda role: {**http, "CredentialsArn": role},
            "cloudformation CreateStack RoleARN": lambda role: {
                "StackName": self.new(),
                "TemplateBody": TEMPLATE,
                "RoleARN": role,
            },
            "cloudformation UpdateStack RoleARN": lambda role: {
                **stack,
                "TemplateBody": OTHER_TEMPLATE,
                "RoleARN": role,
            },
            "cloudformation CreateChangeSet RoleARN": lambda role: {
                **stack,
                "ChangeSetName": self.new(),
                "TemplateBody": OTHER_TEMPLATE,
                "RoleARN": role,
            },
            "cloudformation ContinueUpdateRollback RoleARN": lambda role: {**stack, "RoleARN": role},
            "cloudformation RollbackStack RoleARN": lambda role: {**stack, "RoleARN": role},
            "cloudformation DeleteStack RoleARN": lambda role: {**stack, "RoleARN": role},
        }
        for kind in ("S3Destination", "ExtendedS3Destination"):
            made, changed = f"{kind}Configuration", f"{kind}Update"
            requests[f"firehose CreateDeliveryStream {made}.RoleARN"] = lambda role, made=made: {
                "DeliveryStreamName": self.new(),
                **filled(made, role),
            }
            requests[f"firehose UpdateDestination {changed}.RoleARN"] = lambda role, changed=changed: {
                **update,
                "CurrentDeliveryStreamVersionId": "1",
                changed: {"RoleARN": role},
            }
        split = {name: name.split(" ") for name in requests}
        return {(split[name][0], split[name][1], split[name][2]): params for name, params in requests.items()}

    def ways(self) -> list[Way]:
        """Requests that store a role in what the models know as text: attributes, patches, definitions, templates."""
        topic, rest, http = self.ids["topic"], self.ids["rest"], self.ids["http"]
        subscribed = {"TopicArn": topic, "Protocol": "firehose", "Endpoint": STREAM}
        method = {"restApiId": rest, "resourceId": self.ids["root"], "httpMethod": "GET"}
        return [
            Way("sns", "Subscribe", lambda role: {**subscribed, "Attributes": {"SubscriptionRoleArn": role}}),
            Way(
                "sns",
                "CreateTopic",
                lambda role: {"Name": "t2", "Attributes": {"SQSSuccessFeedbackRoleArn": role}},
            ),
            Way(
                "sns",
                "SetTopicAttributes",
                lambda role: {
                    "TopicArn": topic,
                    "AttributeName": "HTTPFailureFeedbackRoleArn",
                    "AttributeValue": role,
                },
            ),
            Way("sns", "SetSMSAttributes", lambda role: {"attributes": {"DeliveryStatusIAMRole": role}}),
            Way(
                "sns",
                "CreatePlatformApplication",
                lambda role: {
                    "Name": self.new(),
                    "Platform": "GCM",
                    "Attributes": {**GCM, "SuccessFeedbackRoleArn": role},
                },
            ),
            Way(
                "sns",
                "SetPlatformApplicationAttributes",
                lambda role: {
                    "PlatformApplicationArn": self.ids["application"],
                    "Attributes": {"FailureFeedbackRoleArn": role},
                },
            ),
            Way("apigateway", "UpdateAccount", lambda role: patch("/cloudwatchRoleArn", role)),
            Way("apigateway", "UpdateIntegration", lambda role: {**method, **patch("/credentials", role)}),
            Way(
                "apigateway",
                "UpdateAuthorizer",
                lambda role: {
                    "restApiId": rest,
                    "authorizerId": self.ids["guard"],
                    **patch("/authorizerCredentials", role),
                },
            ),
            Way("apigateway", "ImportRestApi", lambda role: {"body": guarded(role)}),
            Way("apigatewayv2", "ImportApi", lambda role: {"Body": guarded(role).decode()}),
            Way("apigateway", "ImportRestApi", lambda role: {"body": definition("2.0", role)}),
            Way(
                "apigateway", "PutRestApi", lambda role: {"restApiId": rest, "body": definition("2.0", role)}
            ),
            Way(
                "apigateway",
                "PutRestApi",
                lambda role: {"restApiId": rest, "mode": "overwrite", "body": definition("2.0", role)},
            ),
            Way("apigatewayv2", "ImportApi", lambda role: {"Body": definition("3.0", role).decode()}),
            Way(
                "apigatewayv2",
                "ReimportApi",
                lambda role: {"ApiId": http, "Body": definition("3.0", role).decode()},
            ),
        ]


CODE: Final[Params] = {"Code": {"ZipFile": archive()}, "Runtime": "python3.12", "Handler": "f.f"}
GCM: Final = {"PlatformCredential": "key"}
GUARD_URI: Final = f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions/{FUNCTION}/invocations"
GUARD: Final[Params] = {
    "type": "TOKEN",
    "authorizerUri": GUARD_URI,
    "identitySource": "method.request.header.X-Token",
}
ROUTED: Final[Params] = {
    "Name": "router",
    "AuthorizerType": "REQUEST",
    "AuthorizerUri": GUARD_URI,
    "AuthorizerPayloadFormatVersion": "2.0",
    "IdentitySource": [],
}
ASKED: Final[Params] = {"type": "AWS", "integrationHttpMethod": "POST", "uri": QUEUE_URI}


#: Texts of the forms that the models want of members that operations require.
FORMS: Final = {
    "RoleARN": GOOD,
    "BucketARN": "arn:aws:s3:::bucket",
    "KinesisStreamARN": f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/s",
    "MSKClusterARN": f"arn:aws:kafka:{REGION}:{ACCOUNT}:cluster/s",
    "ClusterJDBCURL": "jdbc:redshift://a.b.redshift.amazonaws.com:5439/a",
    "Url": "https://localhost",
    "AccountUrl": "https://account.snowflakecomputing.com",
    "VpcEndpointServiceName": "com.amazonaws.vpce.us-east-1.vpce-svc-01234567890123456",
    "CurrentDeliveryStreamVersionId": "1",
    "DeliveryStreamName": "standing",
    "DestinationId": "destinationId-000000000001",
}


def filled(configuration: str, role: str) -> Params:
    return {configuration: {"RoleARN": role, "BucketARN": "arn:aws:s3:::bucket"}}


def patch(path: str, value: str) -> Params:
    return {"patchOperations": [{"op": "replace", "path": path, "value": value}]}


def definition(version: str, role: str) -> bytes:
    integration = {
        "type": "aws",
        "httpMethod": "POST",
        "uri": QUEUE_URI,
        "credentials": role,
        "responses": {},
    }
    if version == "3.0":
        integration = {**integration, "type": "aws_proxy", "uri": FUNCTION, "payloadFormatVersion": "2.0"}
    key = "swagger" if version == "2.0" else "openapi"
    responses = {"200": {"description": "OK"}}
    operation = {"responses": responses, "x-amazon-apigateway-integration": integration}
    return json.dumps(
        {key: version, "info": {"title": "t", "version": "1"}, "paths": {"/": {"get": operation}}}
    ).encode()


def guarded(role: str) -> bytes:
    """A definition, for both kinds of APIs, whose authorizer has a role."""
    guard = {
        "type": "request",
        "authorizerUri": GUARD_URI,
        "authorizerCredentials": role,
        "authorizerResultTtlInSeconds": 0,
        "authorizerPayloadFormatVersion": "2.0",
    }
    scheme = {"type": "apiKey", "name": "Unused", "in": "header", "x-amazon-apigateway-authorizer": guard}
    return json.dumps(
        {
            "openapi": "3.0.1",
            "info": {"title": "t", "version": "1"},
            "components": {"securitySchemes": {"Guard": scheme}},
            "paths": {},
        }
    ).encode()


def role_members(
    shape: Shape, path: tuple[str, ...] = (), within: frozenset[str] = frozenset()
) -> Iterator[tuple[str, ...]]:
    """The paths of the members of a shape that take a role."""
    if shape.name in within:
        return
    match shape.type:
        case "structure":
            for name, member in shape.members.items():
                yield from role_members(member.shape, (*path, name), within | {shape.name})
        case "list":
            yield from role_members(shape.element.shape, path, within | {shape.name})
        case "string" if path and ROLE_MEMBER.search(path[-1]):
            yield path


def offered(stage: Stage) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every parameter of an offered operation that takes a role."""
    for service, facade in stage.server.core.services.items():
        if service in ABOUT_ROLES:
            continue
        client = stage.client(service)
        for operation in facade.operations:
            for path in role_members(client.service.operation(operation).input):
                yield service, operation, path


def with_role(stage: Stage, service: str, operation: str, path: tuple[str, ...], role: str) -> Params:
    """A request with all that the model requires around a role."""
    shape = stage.client(service).service.operation(operation).input
    params = required(shape)
    inner = params
    for name in path[:-1]:
        shape = shape.members[name].shape
        inner = inner.setdefault(name, required(shape))
    inner[path[-1]] = role
    return in_form(params)


def in_form(value: Any, name: str = "") -> Any:
    """A request whose texts have the forms that the models want."""
    if isinstance(value, dict):
        return {name: in_form(inner, name) for name, inner in value.items()}
    return FORMS.get(name, value) if value == "x" * 20 else value


async def answer(stage: Stage, key: Key, service: str, operation: str, params: Params) -> str:
    """The refusal of a request; empty: it was carried out."""
    try:
        await stage.call(key, service, operation, **params)
    except Refused as refused:
        return str(refused)
    return ""


async def tries(world: World, way: Way, narrow: Key, user: Key) -> list[str]:
    """The tries with a wrong role that were carried out, or refused for another reason than the role."""
    stage = world.stage
    attempts = {
        "a role of another account": (stage.root, FOREIGN),
        "another account": (stage.stranger, GOOD),
        "a user without iam:PassRole": (user, GOOD),
        "a session without iam:PassRole": (narrow, GOOD),
        "a role that does not trust the service": (stage.root, UNTRUSTING),
    }
    wrong = []
    for name, (key, role) in attempts.items():
        told = await answer(stage, key, way.service, way.operation, way.params(role))
        # A stranger's names lead nowhere; what is not there is deleted without a word.
        elsewhere = key is stage.stranger and (told or way.operation == "DeleteStack")
        if not elsewhere and not REFUSALS.search(told):
            wrong.append(f"{way.service} {way.operation}: {name}: {told or 'carried out'}")
    told = await answer(stage, stage.root, way.service, way.operation, way.params(GOOD))
    if REFUSALS.search(told) or (told and way.operation not in STATES):
        wrong.append(f"{way.service} {way.operation}: a good role: {told}")
    await answer(stage, stage.root, way.service, way.operation, way.params(STANDING))
    return wrong


#: These want a stack whose last change failed, or the number of the last change; the role is asked for before that.
STATES: Final = frozenset({"ContinueUpdateRollback", "RollbackStack", "UpdateDestination"})


def test_no_operation_takes_a_role_that_its_caller_may_not_pass() -> None:
    async def play(stage: Stage) -> None:
        world = World(stage)
        await world.build()
        user = await stage.user("ann", allow("*"), deny("iam:PassRole"))
        session_policy = json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [allow(*(f"{name}:*" for name in (*SERVICES, "s3", "sqs", "ssm")))],
            }
        )
        narrow = await stage.assume(await stage.user("bob", allow("*")), GOOD, Policy=session_policy)
        published = world.published()
        await stage.server.parts.open_all()
        found = {(service, operation, ".".join(path)): path for service, operation, path in offered(stage)}
        assert len(found) >= 60, len(found)
        assert not published.keys() - found.keys()
        wrong: list[str] = []
        for name, path in found.items():
            service, operation, _ = name
            if name in published:
                if operation != "DeleteStack":
                    wrong += await tries(world, Way(service, operation, published[name]), narrow, user)
                continue
            told = await answer(
                stage, stage.root, service, operation, with_role(stage, service, operation, path, GOOD)
            )
            if not UNOFFERED.search(told):
                wrong.append(f"{' '.join(name)} is not offered, and answered: {told or 'nothing'}")
        for way in world.ways():
            wrong += await tries(world, way, narrow, user)
        last = "cloudformation", "DeleteStack", "RoleARN"  # of the stack that others change
        wrong += await tries(world, Way(*last[:2], published[last]), narrow, user)
        assert not wrong, "\n".join(wrong)

    on_stage(play, functions="on")
