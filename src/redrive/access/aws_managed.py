"""Amazon's own managed policies, those that people attach to what runs here; none of them can be changed.

What they allow of services that are offered here is what Amazon's allow; of other services they are silent, but for those
that allow everything.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from redrive.access.identities import ManagedPolicy, PolicyVersion

AMAZON: Final = "aws"  # stands in the place of an account in their ARNs
_SINCE: Final = int(datetime(2015, 2, 6, 18, 39, 46, tzinfo=UTC).timestamp() * 1000)
_SERVICE_ROLE: Final = "/service-role/"
_LOGS: Final = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents")
_PASS: Final = ("iam:GetRole", "iam:ListRoles", "iam:PassRole")

_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "/AdministratorAccess": ("*",),
    "/AmazonKinesisFirehoseFullAccess": ("firehose:*",),
    "/AmazonS3FullAccess": ("s3:*",),
    "/AmazonS3ReadOnlyAccess": ("s3:Get*", "s3:List*", "s3:Describe*"),
    "/AmazonSNSFullAccess": ("sns:*",),
    "/AmazonSNSReadOnlyAccess": (*("sns:Check*", "sns:Get*", "sns:List*"),),
    "/AmazonSQSFullAccess": ("sqs:*",),
    "/AmazonSQSReadOnlyAccess": ("sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:List*"),
    "/AWSCloudFormationFullAccess": ("cloudformation:*",),
    "/AWSCloudFormationReadOnlyAccess": (
        *("cloudformation:Describe*", "cloudformation:EstimateTemplateCost", "cloudformation:Get*"),
        *("cloudformation:List*", "cloudformation:ValidateTemplate", "cloudformation:Detect*"),
    ),
    "/AWSKeyManagementServicePowerUser": (
        *("kms:CreateAlias", "kms:CreateKey", "kms:DeleteAlias", "kms:Describe*", "kms:GenerateRandom"),
        *("kms:Get*", "kms:List*", "kms:TagResource", "kms:UntagResource", "iam:ListGroups", "iam:ListRoles"),
        "iam:ListUsers",
    ),
    "/AWSLambda_FullAccess": (
        *("cloudformation:DescribeStacks", "cloudformation:ListStackResources", "cloudwatch:GetMetricData"),
        *("cloudwatch:ListMetrics", "kms:ListAliases", "lambda:*", "logs:DescribeLogGroups", *_PASS),
        *("iam:GetPolicy", "iam:GetPolicyVersion", "iam:GetRolePolicy", "iam:ListAttachedRolePolicies"),
        *("iam:ListRolePolicies", "logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents"),
    ),
    "/AWSLambda_ReadOnlyAccess": (
        *("cloudwatch:GetMetricData", "cloudwatch:ListMetrics", "kms:ListAliases", "lambda:Get*"),
        *("lambda:List*", "logs:DescribeLogGroups", "logs:DescribeLogStreams", "logs:FilterLogEvents"),
        *("iam:GetPolicy", "iam:GetPolicyVersion", "iam:GetRole", "iam:GetRolePolicy", "iam:ListRoles"),
    ),
    "/AWSLambdaExecute": ("logs:*", "s3:GetObject", "s3:PutObject"),
    "/AWSXRayDaemonWriteAccess": (
        *("xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules"),
        *("xray:GetSamplingTargets", "xray:GetSamplingStatisticSummaries"),
    ),
    "/CloudWatchFullAccess": ("cloudwatch:*", "logs:*", "sns:*"),
    "/CloudWatchLogsFullAccess": ("logs:*", "cloudwatch:GenerateQuery"),
    "/CloudWatchLogsReadOnlyAccess": (
        *("logs:Describe*", "logs:Get*", "logs:List*", "logs:StartQuery", "logs:StopQuery"),
        *("logs:TestMetricFilter", "logs:FilterLogEvents", "logs:StartLiveTail", "logs:StopLiveTail"),
    ),
    "/CloudWatchReadOnlyAccess": (
        *("cloudwatch:Describe*", "cloudwatch:Get*", "cloudwatch:List*", "logs:Describe*", "logs:Get*"),
        *(
            "logs:List*",
            "logs:StartQuery",
            "logs:StopQuery",
            "logs:TestMetricFilter",
            "sns:Get*",
            "sns:List*",
        ),
        "logs:FilterLogEvents",
    ),
    "/IAMFullAccess": ("iam:*",),
    "/IAMReadOnlyAccess": ("iam:Get*", "iam:List*", "iam:Simulate*", "iam:Generate*"),
    "/ReadOnlyAccess": (
        *("apigateway:GET", "cloudformation:Describe*", "cloudformation:Get*", "cloudformation:List*"),
        *("cloudwatch:Describe*", "cloudwatch:Get*", "cloudwatch:List*", "firehose:Describe*"),
        *("firehose:List*", "iam:Get*", "iam:List*", "iam:Simulate*", "kms:Describe*", "kms:Get*"),
        *("kms:List*", "lambda:Get*", "lambda:List*", "logs:Describe*", "logs:FilterLogEvents"),
        *("logs:Get*", "logs:List*", "logs:StartQuery", "logs:StopQuery", "logs:TestMetricFilter"),
        *("s3:Get*", "s3:List*", "sns:Check*", "sns:Get*", "sns:List*", "sqs:Get*", "sqs:List*"),
        *("sqs:ReceiveMessage", "sts:GetAccessKeyInfo", "sts:GetCallerIdentity", "sts:GetSessionToken"),
    ),
    f"{_SERVICE_ROLE}AmazonAPIGatewayPushToCloudWatchLogs": (
        *(*_LOGS, "logs:DescribeLogGroups", "logs:DescribeLogStreams", "logs:GetLogEvents"),
        "logs:FilterLogEvents",
    ),
    f"{_SERVICE_ROLE}AmazonSNSRole": (*_LOGS, "logs:PutMetricFilter", "logs:PutRetentionPolicy"),
    f"{_SERVICE_ROLE}AWSLambdaBasicExecutionRole": _LOGS,
    f"{_SERVICE_ROLE}AWSLambdaRole": ("lambda:InvokeFunction",),
    f"{_SERVICE_ROLE}AWSLambdaSQSQueueExecutionRole": (
        *("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", *_LOGS),
    ),
    f"{_SERVICE_ROLE}AWSLambdaVPCAccessExecutionRole": (
        *(*_LOGS, "ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"),
        *("ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
    ),
}

_POWER_USER: Final = [
    {
        "Effect": "Allow",
        "NotAction": ["iam:*", "organizations:*", "account:*"],
        "Resource": "*",
    },
    {
        "Effect": "Allow",
        "Action": ["iam:CreateServiceLinkedRole", "iam:DeleteServiceLinkedRole", "iam:ListRoles"],
        "Resource": "*",
    },
]


def _policy(place: str, statements: object) -> ManagedPolicy:
    path, _, name = place.rpartition("/")
    text = json.dumps({"Version": "2012-10-17", "Statement": statements}, indent=4)
    unique = f"ANPA{name.upper().replace('_', '')[:17]:A<17}"
    return ManagedPolicy(
        AMAZON,
        f"{path}/",
        name,
        unique,
        _SINCE,
        versions={1: PolicyVersion(text, _SINCE)},
        updated_at=_SINCE,
    )


#: By ARN, in the order of their names.
AWS_MANAGED: Final[Mapping[str, ManagedPolicy]] = {
    policy.arn: policy
    for policy in sorted(
        [
            _policy("/PowerUserAccess", _POWER_USER),
            *(
                _policy(place, [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}])
                for place, actions in _ALLOWED.items()
            ),
        ],
        key=lambda policy: policy.name.lower(),
    )
}
