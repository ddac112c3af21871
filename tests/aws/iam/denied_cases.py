"""Resources of every service, each with its twin, and the values of parameters that lead to them."""

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import orjson

from tests.aws.iam.test_closed_by_default import archive
from tests.aws.stage import ACCOUNT, REGION, Stage, allow, policy

ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/worker"
TEMPLATE: Final = (
    '{"Resources":{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"v"}}}}'
)


@dataclass(frozen=True)
class Case:
    """A service whose operations are asked.

    Attributes:
        arns: The forms in which a policy may name the denied resources, each tried by itself.
        spellings: The values of parameters that lead to a denied resource.
        twins: The value of each of those parameters that leads to another.
        values: Of other parameters, by operation and name.
        open: Operations about which no policy of a caller's is asked.
    """

    arns: Sequence[Sequence[str]]
    spellings: Mapping[str, Sequence[Any]]
    twins: Mapping[str, Any]
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    open: frozenset[str] = frozenset()


def each_of(names: Sequence[str], value: Any) -> dict[str, Any]:
    return dict.fromkeys(names, value)


# ---- the services -------------------------------------------------------------------------------------------------


async def ssm(stage: Stage) -> Case:
    for name in ("/team/secret", "plain", "/twin/t"):
        await stage.call(stage.root, "ssm", "PutParameter", Name=name, Value="v", Type="String")
    own = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter"
    names = ["/team/secret", "/team/secret:1", f"{own}/team/secret", f"{own}/team/secret:1"]
    names += [
        "plain",
        "plain:1",
        "//plain",
        f"{own}/plain",
        f"arn:aws-cn:ssm:eu-west-1:{ACCOUNT}:parameter/plain",
    ]
    return Case(
        [[f"{own}/team/secret", f"{own}/plain"], [f"{own}/team/*", f"{own}/pl?in"]],
        {"Name": names, "Names": names, "ResourceId": names, "Path": ["/team", "/team/", "/"]},
        {"Name": "/twin/t", "Names": "/twin/t", "ResourceId": "/twin/t", "Path": "/twin"},
        {"*": {"ResourceType": "Parameter"}},
    )


async def cloudformation(stage: Stage) -> Case:
    ids = {}
    for name in ("secret", "twin"):
        made = await stage.call(
            stage.root, "cloudformation", "CreateStack", StackName=name, TemplateBody=TEMPLATE
        )
        ids[name] = made["StackId"]
        await stage.advance(5)
        more = {"StackName": name, "ChangeSetName": "more", "TemplateBody": TEMPLATE.replace('"v"', '"w"')}
        ids[f"{name} set"] = (await stage.call(stage.root, "cloudformation", "CreateChangeSet", **more))["Id"]
        drift = await stage.call(stage.root, "cloudformation", "DetectStackDrift", StackName=name)
        ids[f"{name} drift"] = drift["StackDriftDetectionId"]
        await stage.advance(5)
    own, number = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack", ids["secret"].rpartition("/")[2]
    names = ["secret", ids["secret"], f"{own}/twin/{number}", f"arn:aws-cn:x:y:z:w/{number}"]
    return Case(
        [[ids["secret"]], [f"{own}/secret/*"], [f"{own}/sec*"]],
        {
            "StackName": names,
            "ChangeSetName": [
                ids["secret set"],
                f"arn:aws:cloudformation:::changeSet/other/{ids['secret set'].rpartition('/')[2]}",
            ],
            "StackDriftDetectionId": [ids["secret drift"]],
        },
        {"StackName": "twin", "ChangeSetName": ids["twin set"], "StackDriftDetectionId": ids["twin drift"]},
        {
            "ValidateTemplate": {"TemplateBody": TEMPLATE},
            "SignalResource": {"Status": "SUCCESS"},
            "CreateChangeSet": {"ChangeSetName": "new"},
        },
    )


async def logs(stage: Stage) -> Case:
    queries = {}
    for name in ("secret", "twin"):
        await stage.call(stage.root, "logs", "CreateLogGroup", logGroupName=name)
        await stage.call(stage.root, "logs", "CreateLogStream", logGroupName=name, logStreamName="s")
        asked = {"logGroupName": name, "queryString": "fields @message", "startTime": 0, "endTime": 1}
        queries[name] = (await stage.call(stage.root, "logs", "StartQuery", **asked))["queryId"]
    own = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group"
    either = [
        "secret",
        f"{own}:secret",
        f"{own}:secret:*",
        f"arn:aws-cn:logs:{REGION}:{ACCOUNT}:log-group:secret",
    ]
    twins = each_of(("logGroupName", "logGroupNames", "logGroupIdentifier"), "twin")
    arns = each_of(("logGroupIdentifiers", "resourceArn"), f"{own}:twin")
    return Case(
        [[f"{own}:secret"], [f"{own}:secret:*"], [f"{own}:secret:log-stream:s"], [f"{own}:sec*"]],
        {
            **each_of(("logGroupName", "logGroupNames"), ["secret"]),
            **each_of(("logGroupIdentifier", "logGroupIdentifiers", "resourceArn"), either),
            "logGroupNamePrefix": ["s", "secret"],
            "queryId": [queries["secret"]],
        },
        {**twins, **arns, "queryId": queries["twin"], "logGroupNamePrefix": "twin"},
        {"*": {"logStreamName": "s"}},
    )


async def cloudwatch(stage: Stage) -> Case:
    own = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm"
    for name in ("secret", "twin"):
        alarm = {"MetricName": "m", "Namespace": "n", "Statistic": "Sum", "Period": 60, "Threshold": 1.0}
        more = {"EvaluationPeriods": 1, "ComparisonOperator": "GreaterThanThreshold"}
        await stage.call(stage.root, "cloudwatch", "PutMetricAlarm", AlarmName=name, **alarm, **more)
        body = '{"widgets":[]}'
        await stage.call(stage.root, "cloudwatch", "PutDashboard", DashboardName=name, DashboardBody=body)
    dashboard = f"arn:aws:cloudwatch::{ACCOUNT}:dashboard"
    return Case(
        [[f"{own}:secret", f"{dashboard}/secret"], [f"{own}:sec*", f"{dashboard}/s?cret"]],
        {
            **each_of(("AlarmName", "AlarmNames", "DashboardName", "DashboardNames"), ["secret"]),
            **each_of(("AlarmNamePrefix", "DashboardNamePrefix"), ["s", "secret"]),
            **each_of(("ChildrenOfAlarmName", "ParentsOfAlarmName"), ["secret"]),
            "ResourceARN": [f"{own}:secret", f"arn:aws-cn:cloudwatch:{REGION}:{ACCOUNT}:alarm:secret"],
        },
        {
            **each_of(("AlarmName", "AlarmNames", "DashboardName", "DashboardNames"), "twin"),
            **each_of(("AlarmNamePrefix", "DashboardNamePrefix"), "twin"),
            "ResourceARN": f"{own}:twin",
        },
    )


async def firehose(stage: Stage) -> Case:
    own = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream"
    return Case(
        [[f"{own}/secret"], [f"{own}/s*t"]],
        {"DeliveryStreamName": ["secret"]},
        {"DeliveryStreamName": "twin"},
        {"*": {"CurrentDeliveryStreamVersionId": "1"}},
    )


async def apigateway(stage: Stage) -> Case:
    ids = {}
    for name in ("secret", "twin"):
        ids[name] = (await stage.call(stage.root, "apigateway", "CreateRestApi", name=name))["id"]
        ids[f"{name} key"] = (await stage.call(stage.root, "apigateway", "CreateApiKey", name=name))["id"]
        ids[f"{name} plan"] = (await stage.call(stage.root, "apigateway", "CreateUsagePlan", name=name))["id"]
    own = f"arn:aws:apigateway:{REGION}::"
    tagged = [
        f"{own}/restapis/{ids['secret']}",
        f"arn:aws-cn:apigateway:{REGION}::/restapis/{ids['secret']}/",
    ]
    tagged += [f"{own}/apikeys/{ids['secret key']}"]
    denied = [
        f"/restapis/{ids['secret']}",
        f"/apikeys/{ids['secret key']}",
        f"/usageplans/{ids['secret plan']}",
    ]
    return Case(
        [[own + path + end for path in denied for end in ("", "/*")], [f"{own}{path}*" for path in denied]],
        {
            "restApiId": [ids["secret"]],
            "apiKey": [ids["secret key"]],
            "usagePlanId": [ids["secret plan"]],
            "resourceArn": tagged,
        },
        {
            "restApiId": ids["twin"],
            "apiKey": ids["twin key"],
            "usagePlanId": ids["twin plan"],
            "resourceArn": f"{own}/restapis/{ids['twin']}",
        },
        {"*": {"statusCode": "200"}},
        frozenset(
            {
                "CreateApiKey",
                "CreateRestApi",
                "CreateUsagePlan",
                "GetAccount",
                "ImportRestApi",
                "UpdateAccount",
            }
        ),
    )


async def apigatewayv2(stage: Stage) -> Case:
    ids = {}
    for name in ("secret", "twin"):
        made = await stage.call(stage.root, "apigatewayv2", "CreateApi", Name=name, ProtocolType="HTTP")
        ids[name] = made["ApiId"]
    own = f"arn:aws:apigateway:{REGION}::/apis"
    return Case(
        [[f"{own}/{ids['secret']}", f"{own}/{ids['secret']}/*"], [f"{own}/{ids['secret']}*"]],
        {"ApiId": [ids["secret"]], "ResourceArn": [f"{own}/{ids['secret']}", f"arn:/apis/{ids['secret']}"]},
        {"ApiId": ids["twin"], "ResourceArn": f"{own}/{ids['twin']}"},
        open=frozenset({"CreateApi", "ImportApi"}),
    )


async def sqs(stage: Stage) -> Case:
    own, urls = f"arn:aws:sqs:{REGION}:{ACCOUNT}", {}
    for name in ("secret", "twin"):
        urls[name] = (await stage.call(stage.root, "sqs", "CreateQueue", QueueName=name))["QueueUrl"]
    dead = {"RedrivePolicy": f'{{"deadLetterTargetArn":"{own}:twin","maxReceiveCount":3}}'}
    await stage.call(stage.root, "sqs", "CreateQueue", QueueName="origin", Attributes=dead)
    task = base64.b64encode(orjson.dumps({"taskId": "1", "sourceArn": f"{own}:secret"})).decode()
    host = urls["secret"].partition(f"/{ACCOUNT}")[0]
    spelled = [urls["secret"], f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/secret"]
    spelled += [f"{host}/queue/{REGION}/{ACCOUNT}/secret", f"{ACCOUNT}/secret", "secret"]
    return Case(
        [[f"{own}:secret"], [f"{own}:s*"]],
        {
            "QueueUrl": spelled,
            "QueueName": ["secret"],
            "QueueNamePrefix": ["s", "secret"],
            **each_of(("SourceArn", "DestinationArn"), [f"{own}:secret"]),
            "TaskHandle": [task],
        },
        {
            "QueueUrl": urls["twin"],
            "QueueName": "twin",
            "QueueNamePrefix": "twin",
            **each_of(("SourceArn", "DestinationArn"), f"{own}:twin"),
        },
    )


async def sns(stage: Stage) -> Case:
    own, subscribed = f"arn:aws:sns:{REGION}:{ACCOUNT}", {}
    await stage.call(stage.root, "sqs", "CreateQueue", QueueName="q")
    for name in ("secret", "twin"):
        arn = (await stage.call(stage.root, "sns", "CreateTopic", Name=name))["TopicArn"]
        to = {
            "Protocol": "sqs",
            "Endpoint": f"arn:aws:sqs:{REGION}:{ACCOUNT}:q",
            "ReturnSubscriptionArn": True,
        }
        made = await stage.call(stage.root, "sns", "Subscribe", TopicArn=arn, **to)
        subscribed[name] = made["SubscriptionArn"]
        keys = {"PlatformCredential": "x" * 20}
        await stage.call(
            stage.root, "sns", "CreatePlatformApplication", Name=name, Platform="GCM", Attributes=keys
        )
    topics = [f"{own}:secret", f"arn:aws-cn:sns:{REGION}:{ACCOUNT}:secret"]
    subscriptions = [subscribed["secret"], subscribed["secret"].replace("arn:aws:", "arn:aws-cn:")]
    device = "endpoint/GCM/secret/12345678-1234-1234-1234-123456789012"
    applications = [f"{own}:app/GCM/secret", f"arn:aws-cn:sns:{REGION}:{ACCOUNT}:app/GCM/secret"]
    return Case(
        [
            [f"{own}:secret", f"{own}:app/GCM/secret", f"{own}:{device}", subscribed["secret"]],
            [f"{own}:secret", f"{own}:app/*/secret", f"{own}:endpoint/*/secret/*"],
        ],
        {
            **each_of(("TopicArn", "ResourceArn"), topics),
            "TargetArn": [*topics, f"{own}:{device}"],
            "SubscriptionArn": subscriptions,
            "PlatformApplicationArn": applications,
            "EndpointArn": [f"{own}:{device}", f"arn:aws-cn:sns:{REGION}:{ACCOUNT}:{device}"],
            "Name": ["secret"],
        },
        {
            **each_of(("TopicArn", "ResourceArn", "TargetArn"), f"{own}:twin"),
            "SubscriptionArn": subscribed["twin"],
            "PlatformApplicationArn": f"{own}:app/GCM/twin",
            "EndpointArn": f"{own}:{device.replace('secret', 'twin')}",
            "Name": "twin",
        },
        {"*": {"PhoneNumber": "+15555550100", "Platform": "GCM", "OneTimePassword": "123456"}},
        frozenset({"ConfirmSubscription"}),
    )


async def s3(stage: Stage) -> Case:
    for name in ("secret", "twin"):
        await stage.call(stage.root, "s3", "CreateBucket", Bucket=name)
        await stage.call(stage.root, "s3", "PutObject", Bucket=name, Key="key", Body=b"x")
    return Case(
        [["arn:aws:s3:::secret", "arn:aws:s3:::secret/*"], ["arn:aws:s3:::sec*"]],
        {"Bucket": ["secret"], "CopySource": ["secret/key", "/secret/key", "%73ecret/key"]},
        {"Bucket": "twin", "CopySource": "twin/key"},
    )


async def kms(stage: Stage) -> Case:
    keys = {}
    for name in ("secret", "twin"):
        made = (await stage.call(stage.root, "kms", "CreateKey"))["KeyMetadata"]
        keys[name] = made
        await stage.call(
            stage.root, "kms", "CreateAlias", AliasName=f"alias/{name}", TargetKeyId=made["KeyId"]
        )
        sealed = await stage.call(stage.root, "kms", "Encrypt", KeyId=made["KeyId"], Plaintext=b"x")
        keys[f"{name} blob"] = sealed["CiphertextBlob"]
        granted = {"GranteePrincipal": ROLE, "Operations": ["Decrypt"]}
        grant = await stage.call(stage.root, "kms", "CreateGrant", KeyId=made["KeyId"], **granted)
        keys[f"{name} grant"], keys[f"{name} id"] = grant["GrantToken"], grant["GrantId"]
    arn = keys["secret"]["Arn"]
    spelled = [keys["secret"]["KeyId"], arn, "alias/secret", f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/secret"]
    twin = keys["twin"]["KeyId"]
    return Case(
        [[arn, f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/secret"], [f"{arn[:-1]}*", "arn:aws:kms:*:*:alias/s*"]],
        {
            **each_of(("KeyId", "DestinationKeyId", "SourceKeyId"), spelled),
            "TargetKeyId": [keys["secret"]["KeyId"], arn],
            "AliasName": ["alias/secret"],
            "CiphertextBlob": [keys["secret blob"]],
            "GrantToken": [keys["secret grant"]],
        },
        {
            **each_of(("KeyId", "DestinationKeyId", "SourceKeyId", "TargetKeyId"), twin),
            "AliasName": "alias/twin",
            "CiphertextBlob": keys["twin blob"],
            "GrantToken": keys["twin grant"],
        },
        {
            "*": {
                "GrantId": keys["secret id"],
                "ReplicaRegion": "eu-west-1",
                "PrimaryRegion": "eu-west-1",
                "KeySpec": "AES_256",
                "SigningAlgorithm": "ECDSA_SHA_256",
                "MacAlgorithm": "HMAC_SHA_256",
            },
            "CreateKey": {"KeySpec": "SYMMETRIC_DEFAULT"},
            "Decrypt": {"CiphertextBlob": keys["secret blob"]},
            "ReEncrypt": {"CiphertextBlob": keys["secret blob"]},
            "CreateAlias": {"AliasName": "alias/new"},
        },
    )


async def lambda_(stage: Stage) -> Case:
    own = f"arn:aws:lambda:{REGION}:{ACCOUNT}"
    trusted = {"AWS": f"arn:aws:iam::{ACCOUNT}:root", "Service": "lambda.amazonaws.com"}
    await stage.role("worker", trusted, allow("*"))
    await stage.call(stage.root, "sqs", "CreateQueue", QueueName="q")
    code = {"Role": ROLE, "Code": {"ZipFile": archive()}, "Runtime": "python3.12", "Handler": "f.f"}
    mappings = {}
    for name in ("secret", "twin"):
        await stage.call(stage.root, "lambda", "CreateFunction", FunctionName=name, Publish=True, **code)
        alias = {"Name": "live", "FunctionVersion": "1"}
        await stage.call(stage.root, "lambda", "CreateAlias", FunctionName=name, **alias)
        layer = {"LayerName": name, "Content": {"ZipFile": archive()}}
        await stage.call(stage.root, "lambda", "PublishLayerVersion", **layer)
        source = {"EventSourceArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:q", "FunctionName": name}
        mappings[name] = (await stage.call(stage.root, "lambda", "CreateEventSourceMapping", **source))[
            "UUID"
        ]
    function, mapping = f"{own}:function:secret", f"{own}:event-source-mapping:{mappings['secret']}"
    names = ["secret", "secret:1", "secret:live", "secret:$LATEST", f"{ACCOUNT}:function:secret", function]
    names += [f"{function}:1", "function:secret", f"{REGION}:{ACCOUNT}:function:secret"]
    return Case(
        [
            [function, f"{own}:layer:secret", f"{own}:layer:secret:1", mapping],
            [f"{function}*", f"{own}:layer:secret*", mapping],
        ],
        {
            "FunctionName": names,
            "Resource": [function, mapping],
            "LayerName": ["secret", f"{own}:layer:secret"],
            "Arn": [f"{own}:layer:secret:1"],
            "UUID": [mappings["secret"]],
        },
        {
            "FunctionName": "twin",
            "Resource": f"{own}:function:twin",
            "LayerName": "twin",
            "Arn": f"{own}:layer:twin:1",
            "UUID": mappings["twin"],
        },
        {
            "*": {
                "MaximumRetryAttempts": 1,
                "CodeSigningConfigArn": f"{own}:code-signing-config:csc-0123456789abcdef0",
            },
            **each_of(("CreateAlias", "UpdateAlias"), {"FunctionVersion": "1"}),
            "UpdateEventSourceMapping": {"FunctionName": "twin"},
            "AddPermission": {"Action": "lambda:InvokeFunction", "Principal": "*"},
            "AddLayerVersionPermission": {"Action": "lambda:GetLayerVersion", "Principal": "*"},
        },
    )


async def iam(stage: Stage) -> Case:
    own, keys = f"arn:aws:iam::{ACCOUNT}", {}
    for name in ("secret", "twin"):
        await stage.call(stage.root, "iam", "CreateUser", UserName=name, Path="/p/")
        keys[name] = (await stage.call(stage.root, "iam", "CreateAccessKey", UserName=name))["AccessKey"][
            "AccessKeyId"
        ]
        await stage.call(stage.root, "iam", "CreateGroup", GroupName=name)
        await stage.role(name, {"AWS": f"{own}:root"})
        await stage.call(stage.root, "iam", "CreateInstanceProfile", InstanceProfileName=name)
        await stage.call(
            stage.root, "iam", "CreatePolicy", PolicyName=name, PolicyDocument=policy(allow("s3:*"))
        )
    denied = ["user/p/secret", "group/secret", "role/secret", "instance-profile/secret", "policy/secret"]
    linked = {
        name: f"aws-service-role/{name}.amazonaws.com/AWSServiceRoleFor{name.upper()}"
        for name in ("ecs", "rds")
    }
    denied.append(f"role/{linked['ecs']}")
    names = ("UserName", "GroupName", "RoleName", "InstanceProfileName")
    arns = {"PolicyArn": "policy/{}", "PolicySourceArn": "user/p/{}"}
    return Case(
        [[f"{own}:{each}" for each in denied], [f"{own}:*secret", f"{own}:role/*/ecs.amazonaws.com/*"]],
        {
            "AWSServiceName": ["ecs.amazonaws.com"],
            "DeletionTaskId": [f"task/{linked['ecs']}/{UUID(int=1)}"],
            **each_of(names, ["secret", "SECRET"]),
            **{name: [f"{own}:{form.format('secret')}"] for name, form in arns.items()},
            **each_of(("NewUserName", "NewGroupName"), ["secret", "SECRET"]),
        },
        {
            "AWSServiceName": "rds.amazonaws.com",
            "DeletionTaskId": f"task/{linked['rds']}/{UUID(int=1)}",
            **each_of(names, "twin"),
            **{name: f"{own}:{form.format('twin')}" for name, form in arns.items()},
            **each_of(("NewUserName", "NewGroupName"), "twin"),
        },
        {
            "*": {"VersionId": "v1", "Status": "Active"},
            "CreatePolicy": {"PolicyName": "secret"},
            "GetAccessKeyLastUsed": {"AccessKeyId": keys["secret"]},
        },
    )


async def sts(stage: Stage) -> Case:
    trust = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    secret, twin = await stage.role("secret", trust), await stage.role("twin", trust)
    return Case(
        [[secret, f"arn:aws:sts::{ACCOUNT}:federated-user/secret"]],
        {"RoleArn": [secret], "Name": ["secret"]},
        {"RoleArn": twin, "Name": "twin"},
        {"*": {"AccessKeyId": "AKIAIOSFODNN7EXAMPLE"}},
        frozenset({"DecodeAuthorizationMessage", "GetCallerIdentity", "GetSessionToken"}),
    )


CASES: Final[dict[str, Callable[[Stage], Awaitable[Case]]]] = {
    "apigateway": apigateway,
    "apigatewayv2": apigatewayv2,
    "cloudformation": cloudformation,
    "cloudwatch": cloudwatch,
    "firehose": firehose,
    "iam": iam,
    "kms": kms,
    "lambda": lambda_,
    "logs": logs,
    "s3": s3,
    "sns": sns,
    "sqs": sqs,
    "ssm": ssm,
    "sts": sts,
}
