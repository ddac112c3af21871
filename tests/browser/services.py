"""Something of each service for its pages, made by its own client."""

import json
from functools import partial
from typing import Any, Final, NamedTuple

import boto3
from botocore.config import Config

from tests.console.services import archive
from tests.services.server import Server

_ACCOUNT: Final = "000000000000"
_TEMPLATE: Final = {
    "Parameters": {"Stage": {"Type": "String", "Default": "prod"}},
    "Resources": {"Orders": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "shop-orders"}}},
    "Outputs": {"Url": {"Value": {"Ref": "Orders"}, "Export": {"Name": "shop-url"}}},
}
_LINES: Final = ('{"order": 7001}', "ERROR of a kind", "Traceback:\n  line 3")


class Things(NamedTuple):
    """Names that the services gave.

    Attributes:
        key: The id of an encryption key.
        access_key: The id of a user's access key.
        api: The id of a REST API, whose root takes a POST.
        mapping: The id of an event source mapping.
    """

    key: str
    access_key: str
    api: str
    mapping: str


def new_client(server: Server, service: str) -> Any:
    """A client of a service, which asks once."""
    return boto3.client(
        service,  # type: ignore[call-overload]  # any of them
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id=_ACCOUNT,
        aws_secret_access_key="secret",
        config=Config(retries={"max_attempts": 0}),
    )


def make_services(server: Server) -> Things:
    """Make a function, a log, an alarm, a stack, and keys."""
    client = partial(new_client, server)
    kms, iam = client("kms"), client("iam")
    key = kms.create_key(Description="of orders")["KeyMetadata"]["KeyId"]
    mapping = _make_function(client("sqs"), client("lambda"), key)
    _make_log(client("logs"), server)
    _make_alarm(client("sns"), client("cloudwatch"))
    client("cloudformation").create_stack(StackName="shop", TemplateBody=json.dumps(_TEMPLATE))
    server.advance(120)
    iam.create_user(UserName="ann")
    made = iam.create_access_key(UserName="ann")
    return Things(key, made["AccessKey"]["AccessKeyId"], _make_api(client("apigateway")), mapping)


def make_bill(functions: Any, letters: str, **settings: Any) -> None:
    """Make the function `bill`, whose dead letters go to this queue."""
    functions.create_function(
        FunctionName="bill",
        Runtime="python3.11",
        Role=f"arn:aws:iam::{_ACCOUNT}:role/bill",
        Handler="app.handler",
        Code={"ZipFile": archive()},
        DeadLetterConfig={"TargetArn": letters},
        **settings,
    )


def _make_function(sqs: Any, functions: Any, key: str) -> str:
    queue = f"arn:aws:sqs:us-east-1:{_ACCOUNT}:orders"
    sqs.create_queue(QueueName="orders", Attributes={"KmsMasterKeyId": key, "VisibilityTimeout": "60"})
    make_bill(functions, queue, Environment={"Variables": {"STAGE": "prod"}})
    pattern = json.dumps({"body": {"city": ["Oslo"]}})
    mapping = functions.create_event_source_mapping(
        FunctionName="bill",
        EventSourceArn=queue,
        Enabled=False,
        FilterCriteria={"Filters": [{"Pattern": pattern}]},
    )
    functions.invoke(FunctionName="bill", Payload=b"{}")
    return str(mapping["UUID"])


def _make_api(client: Any) -> str:
    """Make a REST API whose root sends what is posted there to the queue `orders`."""
    api = client.create_rest_api(name="shop")["id"]
    root = client.get_resources(restApiId=api)["items"][0]["id"]
    method = {"restApiId": api, "resourceId": root, "httpMethod": "POST"}
    client.put_method(**method, authorizationType="NONE")
    form = "'application/x-www-form-urlencoded'"
    client.put_integration(
        **method,
        type="AWS",
        integrationHttpMethod="POST",
        uri=f"arn:aws:apigateway:us-east-1:sqs:path/{_ACCOUNT}/orders",
        requestParameters={"integration.request.header.Content-Type": form},
        requestTemplates={"application/json": "Action=SendMessage&MessageBody=$util.urlEncode($input.body)"},
    )
    client.put_method_response(**method, statusCode="200")
    client.put_integration_response(
        **method, statusCode="200", responseTemplates={"application/json": '{"taken": true}'}
    )
    client.create_deployment(restApiId=api, stageName="prod")
    return str(api)


def _make_log(logs: Any, server: Server) -> None:
    logs.create_log_group(logGroupName="checkout/api")
    logs.create_log_stream(logGroupName="checkout/api", logStreamName="main")
    server.advance(60)
    at = logs.describe_log_groups(logGroupNamePrefix="checkout")["logGroups"][0]["creationTime"]
    events = [{"timestamp": at, "message": line} for line in _LINES]
    logs.put_log_events(logGroupName="checkout/api", logStreamName="main", logEvents=events)


def _make_alarm(sns: Any, cloudwatch: Any) -> None:
    topic = sns.create_topic(Name="told")["TopicArn"]
    cloudwatch.put_metric_alarm(
        AlarmName="waiting",
        Namespace="AWS/SQS",
        MetricName="ApproximateNumberOfMessagesVisible",
        Dimensions=[{"Name": "QueueName", "Value": "orders"}],
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=10,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[topic],
    )
