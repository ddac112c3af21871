"""The rental-car application as one template: queues, topic, policies, subscriptions, functions, key, alarms."""

from typing import Any


def _ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def _arn(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Arn"]}


def _queue(name: str, **more: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Sub": f"${{Prefix}}{name}"}, **more}}


def _allows_topic(*queues: str) -> dict[str, Any]:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": "*",
        "Condition": {"ArnEquals": {"aws:SourceArn": _ref("Orders")}},
    }
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {"Queues": [_ref(name) for name in queues], "PolicyDocument": document},
    }


def _subscription(protocol: str, endpoint: str, dead: str, **more: Any) -> dict[str, Any]:
    redrive = {"deadLetterTargetArn": _arn(dead)}
    properties = {"TopicArn": _ref("Orders"), "Protocol": protocol, "Endpoint": _arn(endpoint)}
    return {"Type": "AWS::SNS::Subscription", "Properties": {**properties, "RedrivePolicy": redrive, **more}}


def _alarm(queue: str) -> dict[str, Any]:
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "Namespace": "AWS/SQS",
            "MetricName": "NumberOfMessagesSent",
            "Dimensions": [{"Name": "QueueName", "Value": {"Fn::GetAtt": [queue, "QueueName"]}}],
            "Statistic": "Sum",
            "Period": 300,
            "EvaluationPeriods": 1,
            "Threshold": 0,
            "ComparisonOperator": "GreaterThanThreshold",
            "AlarmActions": [_ref("Alarms")],
        },
    }


TEMPLATE: dict[str, Any] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "Rental cars: orders fan out to fulfilment and billing",
    "Parameters": {
        "Prefix": {"Type": "String", "Default": "Rental-"},
        "Receives": {"Type": "Number", "Default": 3, "MinValue": 1},
    },
    "Resources": {
        "Key": {"Type": "AWS::KMS::Key", "Properties": {"Description": "orders"}},
        "KeyAlias": {
            "Type": "AWS::KMS::Alias",
            "Properties": {"AliasName": "alias/rental", "TargetKeyId": _ref("Key")},
        },
        "Orders": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": {"Fn::Sub": "${Prefix}Orders"}}},
        "Alarms": {"Type": "AWS::SNS::Topic"},
        "FulfilmentDead": _queue("Fulfilment-DLQ"),
        "FulfilmentFanoutDead": _queue("Fulfilment-Fanout-DLQ"),
        "BillingFanoutDead": _queue("Billing-Fanout-DLQ"),
        "BillingDead": _queue("Billing-DLQ"),
        "Fulfilment": _queue(
            "Fulfilment",
            RedrivePolicy={
                "deadLetterTargetArn": _arn("FulfilmentDead"),
                "maxReceiveCount": _ref("Receives"),
            },
        ),
        "QueuePolicies": _allows_topic("Fulfilment", "FulfilmentFanoutDead", "BillingFanoutDead"),
        "Billing": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "FunctionName": {"Fn::Sub": "${Prefix}Billing"},
                "Runtime": "python3.12",
                "Handler": "index.handler",
                "Role": {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:role/billing"},
                "Code": {"ZipFile": "def handler(event, context):\n    return len(event['Records'])\n"},
                "DeadLetterConfig": {"TargetArn": _arn("BillingDead")},
            },
        },
        "BillingPermission": {
            "Type": "AWS::Lambda::Permission",
            "Properties": {
                "FunctionName": _ref("Billing"),
                "Action": "lambda:InvokeFunction",
                "Principal": "sns.amazonaws.com",
                "SourceArn": _ref("Orders"),
            },
        },
        "ToFulfilment": _subscription(
            "sqs",
            "Fulfilment",
            "FulfilmentFanoutDead",
            FilterPolicy={"order-status": ["confirmed", "canceled"]},
        ),
        "ToBilling": _subscription("lambda", "Billing", "BillingFanoutDead"),
        "BillingLog": {
            "Type": "AWS::Logs::LogGroup",
            "Properties": {"LogGroupName": {"Fn::Sub": "/aws/lambda/${Prefix}Billing"}, "RetentionInDays": 7},
        },
        "FulfilmentAlarm": _alarm("FulfilmentFanoutDead"),
        "BillingAlarm": _alarm("BillingDead"),
    },
    "Outputs": {"Topic": {"Value": _ref("Orders")}, "Queue": {"Value": _ref("Fulfilment")}},
}


def changed() -> dict[str, Any]:
    """The template with a change to most of its resources, in place and by replacement."""
    template: dict[str, Any] = {**TEMPLATE, "Resources": {**TEMPLATE["Resources"]}}
    resources = template["Resources"]

    def change(name: str, **properties: Any) -> None:
        given = resources[name]
        resources[name] = {**given, "Properties": {**given["Properties"], **properties}}

    change("Key", Description="orders of rental cars")
    change("Orders", TopicName={"Fn::Sub": "${Prefix}Orders-2"}, DisplayName="orders")
    change("FulfilmentDead", QueueName={"Fn::Sub": "${Prefix}Fulfilment-DLQ-2"})
    change("Fulfilment", VisibilityTimeout=60)
    change("Billing", Timeout=10)
    change("ToFulfilment", FilterPolicy={"order-status": ["confirmed"]})
    change("BillingLog", RetentionInDays=14)
    change("BillingAlarm", Threshold=5)
    resources["Added"] = {"Type": "AWS::SQS::Queue"}
    del resources["FulfilmentAlarm"]
    return template
