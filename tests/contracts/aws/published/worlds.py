"""Things of each service that its published lists show, more of them than one page holds."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tests.contracts.aws.lambda_.workshop import ECHO, archive
from tests.contracts.aws.published.conftest import ROLE, Published

ALLOW: Final = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]}
)
TRUST: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
        ],
    }
)
POLICY: Final = ALLOW.replace('"Effect"', '"Principal": "*", "Effect"')
THREE: Final = ("a", "b", "c")
#: More than a page of lists whose size callers cannot choose.
MANY: Final = [f"n{number:03}" for number in range(101)]


class Listed(NamedTuple):
    """A list of which there is more than one page.

    Attributes:
        count: How many things there are; 0: there can be none here, or fewer than a page, so only tokens are tried.
        params: Of the operation.
        size: Of a page, where callers choose it or the service has no other.
    """

    count: int
    params: Mapping[str, Any] = {}
    size: int = 2


Lists = Mapping[str, Listed]


class World(NamedTuple):
    """A service that has lists.

    Attributes:
        lists: Makes what they show.
        refusal: The code for another list's token, as botocore shows it.
    """

    lists: Callable[[Published], Lists]
    refusal: str


def _sqs(published: Published) -> Lists:
    sqs = published.of("sqs")
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    arn = "arn:aws:sqs:us-east-1:000000000000:dead"
    for name in THREE:
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2})
        sqs.create_queue(QueueName=f"source-{name}", Attributes={"RedrivePolicy": redrive})
    return {
        "ListQueues": Listed(3, {"QueueNamePrefix": "source-"}),
        "ListDeadLetterSourceQueues": Listed(3, {"QueueUrl": dead}),
    }


def _sns(published: Published) -> Lists:
    sns = published.of("sns")
    topics = [sns.create_topic(Name=name)["TopicArn"] for name in MANY]
    for name in MANY:
        endpoint = f"arn:aws:sqs:us-east-1:000000000000:{name}"
        sns.subscribe(TopicArn=topics[0], Protocol="sqs", Endpoint=endpoint)
    applications = [
        sns.create_platform_application(
            Name=name, Platform="ADM", Attributes={"PlatformPrincipal": "id", "PlatformCredential": "secret"}
        )["PlatformApplicationArn"]
        for name in MANY
    ]
    for name in MANY:
        sns.create_platform_endpoint(PlatformApplicationArn=applications[0], Token=name)
    for number in range(3):
        sns.create_sms_sandbox_phone_number(PhoneNumber=f"+3300000000{number}")
    return {
        "ListTopics": Listed(101, size=100),
        "ListSubscriptions": Listed(101, size=100),
        "ListSubscriptionsByTopic": Listed(101, {"TopicArn": topics[0]}, 100),
        "ListPlatformApplications": Listed(101, size=100),
        "ListEndpointsByPlatformApplication": Listed(101, {"PlatformApplicationArn": applications[0]}, 100),
        "ListSMSSandboxPhoneNumbers": Listed(3),
        "ListPhoneNumbersOptedOut": Listed(0),
        "ListOriginationNumbers": Listed(0),
    }


def _cloudwatch(published: Published) -> Lists:
    watch = published.of("cloudwatch")
    for name in THREE:
        watch.put_metric_alarm(
            AlarmName=name,
            Namespace="test",
            MetricName="m",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
        )
    data = [{"MetricName": f"m{number:03}", "Value": 1} for number in range(501)]
    watch.put_metric_data(Namespace="pages", MetricData=data)
    query = {
        "MetricDataQueries": [
            {
                "Id": "q",
                "MetricStat": {
                    "Metric": {"Namespace": "pages", "MetricName": "m000"},
                    "Period": 60,
                    "Stat": "Sum",
                },
            }
        ],
        "StartTime": published.server.now() - 3600,
        "EndTime": published.server.now() + 60,
    }
    return {
        "DescribeAlarms": Listed(3),
        "DescribeAlarmHistory": Listed(3),
        "ListMetrics": Listed(501, {"Namespace": "pages"}, 500),
        "ListDashboards": Listed(0),  # a page has 1,000
        "GetMetricData": Listed(0, query),  # pages cut rows, not results
    }


def _logs(published: Published) -> Lists:
    logs, group = published.of("logs"), {"logGroupName": "group-a"}
    now = round(published.server.now() * 1000)
    stream = published.of("firehose")
    published.of("s3").create_bucket(Bucket="log-bucket")
    target = stream.create_delivery_stream(
        DeliveryStreamName="logs",
        ExtendedS3DestinationConfiguration={"RoleARN": ROLE, "BucketARN": "arn:aws:s3:::log-bucket"},
    )["DeliveryStreamARN"]
    for name in THREE:
        logs.create_log_group(logGroupName=f"group-{name}")
        logs.create_log_stream(**group, logStreamName=name)
        logs.put_log_events(
            **group, logStreamName=name, logEvents=[{"timestamp": now, "message": f"said {name}"}]
        )
        metric = {"metricName": name, "metricNamespace": "logs", "metricValue": "1"}
        logs.put_metric_filter(**group, filterName=name, filterPattern="", metricTransformations=[metric])
        logs.put_resource_policy(policyName=name, policyDocument=POLICY)
        logs.start_query(**group, startTime=0, endTime=now, queryString="fields @message")
    for name in THREE[:2]:  # there may be no more
        logs.put_subscription_filter(
            **group, filterName=name, filterPattern="", destinationArn=target, roleArn=ROLE
        )
    return {
        "DescribeDestinations": Listed(0),
        "DescribeLogGroups": Listed(3, {"logGroupNamePrefix": "group-"}),
        "DescribeLogStreams": Listed(3, group),
        "DescribeMetricFilters": Listed(3, group),
        "DescribeSubscriptionFilters": Listed(2, group, 1),
        "DescribeResourcePolicies": Listed(3),
        "DescribeQueries": Listed(3),
        "FilterLogEvents": Listed(3, group),
    }


def _lambda(published: Published) -> Lists:
    functions, code = published.of("lambda"), archive({"code.py": ECHO})
    alike = {"Runtime": "python3.11", "Handler": "code.handler", "Role": ROLE, "Code": {"ZipFile": code}}
    for name in THREE:
        functions.create_function(FunctionName=name, **alike)
        functions.update_function_configuration(FunctionName="a", Timeout=10 + THREE.index(name))
        version = functions.publish_version(FunctionName="a")["Version"]
        functions.create_alias(FunctionName="a", Name=f"to-{name}", FunctionVersion=version)
        functions.put_function_event_invoke_config(
            FunctionName="a", Qualifier=f"to-{name}", MaximumRetryAttempts=0
        )
        functions.create_function_url_config(FunctionName="a", Qualifier=f"to-{name}", AuthType="NONE")
        functions.publish_layer_version(LayerName=f"layer-{name}", Content={"ZipFile": code})
        functions.publish_layer_version(LayerName="layer-a", Content={"ZipFile": archive({name: name})})
        published.of("sqs").create_queue(QueueName=f"mapped-{name}")
        functions.create_event_source_mapping(
            FunctionName="a",
            EventSourceArn=f"arn:aws:sqs:us-east-1:000000000000:mapped-{name}",
            Enabled=False,
        )
    for name in THREE[:2]:
        functions.put_provisioned_concurrency_config(
            FunctionName="a", Qualifier=f"to-{name}", ProvisionedConcurrentExecutions=1
        )
    of_one = {"FunctionName": "a"}
    return {
        "ListFunctions": Listed(3),
        "ListVersionsByFunction": Listed(4, of_one),  # and $LATEST
        "ListAliases": Listed(3, of_one),
        "ListFunctionEventInvokeConfigs": Listed(3, of_one),
        "ListFunctionUrlConfigs": Listed(3, of_one),
        "ListProvisionedConcurrencyConfigs": Listed(2, of_one, 1),
        "ListEventSourceMappings": Listed(3),
        "ListLayers": Listed(3),
        "ListLayerVersions": Listed(4, {"LayerName": "layer-a"}),
        "ListCodeSigningConfigs": Listed(0),
    }


def _iam(published: Published) -> Lists:
    iam = published.of("iam")
    policies = [iam.create_policy(PolicyName=name, PolicyDocument=ALLOW)["Policy"]["Arn"] for name in THREE]
    tags = [{"Key": name, "Value": name} for name in THREE]
    for name in THREE:
        iam.create_user(UserName=name)
        iam.create_group(GroupName=name)
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName="a")
        iam.create_policy_version(PolicyArn=policies[0], PolicyDocument=ALLOW)
    for name in THREE:
        iam.add_user_to_group(GroupName="a", UserName=name)
        iam.put_user_policy(UserName="a", PolicyName=name, PolicyDocument=ALLOW)
        iam.put_group_policy(GroupName="a", PolicyName=name, PolicyDocument=ALLOW)
        iam.put_role_policy(RoleName="a", PolicyName=name, PolicyDocument=ALLOW)
        iam.attach_user_policy(UserName=name, PolicyArn=policies[0])
    for name in THREE[1:]:
        iam.add_user_to_group(GroupName=name, UserName="a")
    for arn in policies[1:]:
        iam.attach_user_policy(UserName="a", PolicyArn=arn)
    for arn in policies:
        iam.attach_group_policy(GroupName="a", PolicyArn=arn)
        iam.attach_role_policy(RoleName="a", PolicyArn=arn)
    for _ in range(2):  # there may be no more
        iam.create_access_key(UserName="a")
    iam.tag_user(UserName="a", Tags=tags)
    iam.tag_role(RoleName="a", Tags=tags)
    iam.tag_policy(PolicyArn=policies[0], Tags=tags)
    iam.tag_instance_profile(InstanceProfileName="a", Tags=tags)
    user, group, role, policy = (
        {"UserName": "a"},
        {"GroupName": "a"},
        {"RoleName": "a"},
        {"PolicyArn": policies[0]},
    )
    actions = {"ActionNames": ["sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage"]}
    nothing = ("ListAccountAliases", "ListMFADevices", "ListServerCertificates", "ListSigningCertificates")
    return {
        "ListUsers": Listed(3),
        "ListGroups": Listed(3),
        "ListRoles": Listed(3),
        "ListInstanceProfiles": Listed(3),
        "ListPolicies": Listed(3, {"Scope": "Local"}),
        "ListPolicyVersions": Listed(4, policy),
        "ListEntitiesForPolicy": Listed(5, policy),
        "GetGroup": Listed(3, group),
        "GetAccountAuthorizationDetails": Listed(
            12, {"Filter": ["User", "Group", "Role", "LocalManagedPolicy"]}
        ),
        "ListGroupsForUser": Listed(3, user),
        "ListInstanceProfilesForRole": Listed(3, role),
        "ListUserPolicies": Listed(3, user),
        "ListGroupPolicies": Listed(3, group),
        "ListRolePolicies": Listed(3, role),
        "ListAttachedUserPolicies": Listed(3, user),
        "ListAttachedGroupPolicies": Listed(3, group),
        "ListAttachedRolePolicies": Listed(3, role),
        "ListAccessKeys": Listed(2, user, 1),
        "ListUserTags": Listed(3, user),
        "ListRoleTags": Listed(3, role),
        "ListPolicyTags": Listed(3, policy),
        "ListInstanceProfileTags": Listed(3, {"InstanceProfileName": "a"}),
        "SimulateCustomPolicy": Listed(3, {"PolicyInputList": [ALLOW], **actions}),
        "SimulatePrincipalPolicy": Listed(
            3, {"PolicySourceArn": "arn:aws:iam::000000000000:user/a", **actions}
        ),
        **{operation: Listed(0) for operation in (*nothing, "ListSSHPublicKeys", "ListVirtualMFADevices")},
    }


def _kms(published: Published) -> Lists:
    kms = published.of("kms")
    keys = [kms.create_key()["KeyMetadata"]["KeyId"] for _ in THREE]
    retirer = "arn:aws:iam::000000000000:user/a"
    for name in THREE:
        kms.create_alias(AliasName=f"alias/{name}", TargetKeyId=keys[0])
        kms.create_grant(
            KeyId=keys[0],
            GranteePrincipal=retirer,
            RetiringPrincipal=retirer,
            Operations=["Decrypt"],
            Name=name,
        )
        kms.tag_resource(KeyId=keys[0], Tags=[{"TagKey": name, "TagValue": name}])
        kms.rotate_key_on_demand(KeyId=keys[0])
        published.server.advance(1)
    key = {"KeyId": keys[0]}
    return {
        "ListKeys": Listed(3),
        "ListAliases": Listed(3, key),
        "ListGrants": Listed(3, key),
        "ListRetirableGrants": Listed(3, {"RetiringPrincipal": retirer}),
        "ListResourceTags": Listed(3, key),
        "ListKeyRotations": Listed(3, key),
        "ListKeyPolicies": Listed(0, key),
    }


def _s3(published: Published) -> Lists:
    s3, bucket = published.of("s3"), {"Bucket": "bucket-a"}
    for name in THREE:
        s3.create_bucket(Bucket=f"bucket-{name}")
        s3.put_object(**bucket, Key=name, Body=b"x")
    upload = s3.create_multipart_upload(**bucket, Key="parts")["UploadId"]
    for number in (1, 2, 3):
        s3.upload_part(**bucket, Key="parts", UploadId=upload, PartNumber=number, Body=b"x")
    for name in THREE[1:]:
        s3.create_multipart_upload(**bucket, Key=name)
    return {
        "ListBuckets": Listed(3, {"Prefix": "bucket-"}),
        "ListObjects": Listed(3, bucket),
        "ListObjectsV2": Listed(3, bucket),
        "ListMultipartUploads": Listed(3, bucket),
        "ListParts": Listed(3, {**bucket, "Key": "parts", "UploadId": upload}),
    }


def _ssm(published: Published) -> Lists:
    for name in THREE:
        published.of("ssm").put_parameter(Name=f"/pages/{name}", Value=name, Type="String")
    return {
        "DescribeParameters": Listed(3),
        "GetParametersByPath": Listed(3, {"Path": "/pages"}),
    }


def _cloudformation(published: Published) -> Lists:
    stacks = published.of("cloudformation")
    handles = {name: {"Type": "AWS::CloudFormation::WaitConditionHandle"} for name in MANY}
    exports = {name: {"Value": name, "Export": {"Name": name}} for name in MANY}
    template = json.dumps({"Resources": handles, "Outputs": exports})
    importing = json.dumps(
        {
            "Resources": {"Handle": handles[MANY[0]]},
            "Outputs": {"Imported": {"Value": {"Fn::ImportValue": MANY[0]}}},
        }
    )
    stacks.create_stack(StackName="wide", TemplateBody=template)
    stacks.get_waiter("stack_create_complete").wait(StackName="wide", WaiterConfig={"Delay": 0})
    stacks.create_stack(StackName="user", TemplateBody=importing)
    stacks.get_waiter("stack_create_complete").wait(StackName="user", WaiterConfig={"Delay": 0})
    changed = importing.replace('"Handle"', '"Other"')
    for name in MANY:  # of the small stack: one of the wide stack's takes 30 ms
        stacks.create_change_set(
            StackName="user", ChangeSetName=name, TemplateBody=changed, ChangeSetType="UPDATE"
        )
    stacks.create_change_set(
        StackName="new",
        ChangeSetName="new",
        TemplateBody=template.replace('"Name": "', '"Name": "other-'),
        ChangeSetType="CREATE",
    )
    for name in MANY:
        stacks.create_change_set(
            StackName=f"new-{name}", ChangeSetName="new", TemplateBody=importing, ChangeSetType="CREATE"
        )
    wide = {"StackName": "wide"}
    return {
        "DescribeStacks": Listed(104, size=100),
        "ListStacks": Listed(104, size=100),
        "ListStackResources": Listed(101, wide, 100),
        "DescribeStackEvents": Listed(305, wide, 100),
        "ListExports": Listed(101, size=100),
        "ListImports": Listed(0, {"ExportName": MANY[0]}),
        "ListChangeSets": Listed(101, {"StackName": "user"}, 100),
        "DescribeChangeSet": Listed(101, {"StackName": "new", "ChangeSetName": "new"}, 100),
    }


_AUTHORIZER = (
    "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/"
    "arn:aws:lambda:us-east-1:000000000000:function:f/invocations"
)


def _apigateway(published: Published) -> Lists:
    rest = published.of("apigateway")
    apis = [rest.create_rest_api(name=name)["id"] for name in THREE]
    api = {"restApiId": apis[0]}
    root = rest.get_resources(**api)["items"][0]["id"]
    plans = [rest.create_usage_plan(name=name)["id"] for name in THREE]
    rest.put_method(**api, resourceId=root, httpMethod="GET", authorizationType="NONE")
    rest.put_integration(**api, resourceId=root, httpMethod="GET", type="MOCK")
    for name in THREE:
        key = rest.create_api_key(name=name, enabled=True)["id"]
        rest.create_usage_plan_key(usagePlanId=plans[0], keyId=key, keyType="API_KEY")
        rest.create_resource(**api, parentId=root, pathPart=name)
        rest.create_model(
            **api,
            name=name,
            contentType="application/json",
            schema='{"type": "object", "properties": {"car": {"type": "string"}}}',
        )
        rest.create_request_validator(**api, name=name, validateRequestBody=True)
        rest.create_authorizer(
            **api,
            name=name,
            type="TOKEN",
            identitySource="method.request.header.Authorization",
            authorizerUri=_AUTHORIZER,
        )
        rest.create_deployment(**api)
    days = {"usagePlanId": plans[0], "startDate": "2026-01-01", "endDate": "2026-01-02"}
    return {
        "GetRestApis": Listed(3),
        "GetResources": Listed(4, api),
        "GetDeployments": Listed(3, api),
        "GetModels": Listed(len(rest.get_models(**api)["items"]), api),
        "GetRequestValidators": Listed(3, api),
        "GetAuthorizers": Listed(3, api),
        "GetGatewayResponses": Listed(len(rest.get_gateway_responses(**api, limit=500)["items"]), api, 10),
        "GetApiKeys": Listed(3),
        "GetUsagePlans": Listed(3),
        "GetUsagePlanKeys": Listed(3, {"usagePlanId": plans[0]}),
        "GetUsage": Listed(0, days),
    }


def _apigatewayv2(published: Published) -> Lists:
    http = published.of("apigatewayv2")
    apis = [http.create_api(Name=name, ProtocolType="HTTP")["ApiId"] for name in THREE]
    api = {"ApiId": apis[0]}
    for name in THREE:
        integration = http.create_integration(
            **api,
            IntegrationType="HTTP_PROXY",
            IntegrationMethod="GET",
            IntegrationUri="http://127.0.0.1:9/",
            PayloadFormatVersion="1.0",
        )["IntegrationId"]
        http.create_route(**api, RouteKey=f"GET /{name}", Target=f"integrations/{integration}")
        http.create_stage(**api, StageName=name)
        http.create_deployment(**api)
        http.create_authorizer(
            **api,
            Name=name,
            AuthorizerType="JWT",
            IdentitySource=["$request.header.Authorization"],
            JwtConfiguration={"Issuer": "http://127.0.0.1:9", "Audience": ["cars"]},
        )
    return {
        "GetApis": Listed(3),
        "GetAuthorizers": Listed(3, api),
        "GetIntegrations": Listed(3, api),
        "GetRoutes": Listed(3, api),
        "GetStages": Listed(3, api),
        "GetDeployments": Listed(3, api),
    }


NO_LISTS: Final = World(lambda _: {}, "")
WORLDS: Final[Mapping[str, World]] = {
    "sqs": World(_sqs, "InvalidParameterValue"),
    "sns": World(_sns, "InvalidParameter"),
    "cloudwatch": World(_cloudwatch, "InvalidNextToken"),
    "logs": World(_logs, "InvalidParameterException"),
    "lambda": World(_lambda, "InvalidParameterValueException"),
    "iam": World(_iam, "ValidationError"),
    "kms": World(_kms, "InvalidMarkerException"),
    "s3": World(_s3, "InvalidArgument"),
    "ssm": World(_ssm, "InvalidNextToken"),
    "cloudformation": World(_cloudformation, "ValidationError"),
    "apigateway": World(_apigateway, "BadRequestException"),
    "apigatewayv2": World(_apigatewayv2, "BadRequestException"),
}
