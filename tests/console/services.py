"""Things of Amazon's services that the console has pages for, made by the services' own calls."""

import io
import json
import random
import zipfile
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from redrive.access.keys import AccessKey, Keyring, new_access_key
from redrive.access.principals import account_root
from redrive.aws.wire.shapes import Structure
from tests.console.world import ROOM, ROOT, SCOPE, Visitor

GROUP: Final = "/aws/lambda/bill"
REQUEST: Final = "0d2f8a94-4f6c-4f0c-9d53-0a3a8b5f7c11"
NOW: Final = 1_700_000_000_000
ECHO: Final = "def handler(event, context):\n    print('got', event)\n    return event\n"


@dataclass(frozen=True)
class Services:
    """Calls services as the root of an account, as a client would."""

    visitor: Visitor
    keys: list[str] = field(default_factory=list)
    routes: list[tuple[str, str]] = field(default_factory=list)
    mappings: list[str] = field(default_factory=list)

    async def call(self, service: str, operation: str, **params: Any) -> Structure:
        server = self.visitor.server
        return await server.core.calls.call(
            service, operation, params, account_root(SCOPE.account), SCOPE.region
        )

    def log(self, *lines: str, group: str = GROUP) -> None:
        """Write lines to a log group, as this server does."""
        server = self.visitor.server
        for line in lines:
            at = server.core.runtime.clock.now()
            server.core.telemetry.logs.write(SCOPE._replace(name=group), "2026/11/22/[$LATEST]ab", at, line)


def arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{SCOPE.region}:{SCOPE.account}:{resource}"


def archive(source: str = ECHO) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr("app.py", source)
    return packed.getvalue()


async def make_function(services: Services, text: str = "text", name: str = "bill") -> None:
    """Make a function with a source, ends, variables and a log; strangers' text wherever there may be one."""
    for queue in ("work", "work-dead", "lost"):
        attributes = {"VisibilityTimeout": "900"}
        await services.call("sqs", "CreateQueue", QueueName=queue, Attributes=attributes)
    await services.call(
        "lambda",
        "CreateFunction",
        FunctionName=name,
        Runtime="python3.11",
        Role=f"arn:aws:iam::{SCOPE.account}:role/bill",
        Handler="app.handler",
        Code={"ZipFile": archive()},
        Description=text,
        Environment={"Variables": {"SECRET": f"VARIABLE {text}"}},
        DeadLetterConfig={"TargetArn": arn("sqs", "lost")},
        Tags={"team": "text"},
    )
    mapping = await services.call(
        "lambda",
        "CreateEventSourceMapping",
        FunctionName=name,
        EventSourceArn=arn("sqs", "work"),
        Enabled=False,
        FilterCriteria={"Filters": [{"Pattern": json.dumps({"body": {"city": [text]}})}]},
    )
    services.mappings.append(mapping["UUID"])
    await services.call(
        "lambda",
        "PutFunctionEventInvokeConfig",
        FunctionName=name,
        DestinationConfig={"OnFailure": {"Destination": arn("sqs", "work-dead")}},
    )
    services.log(
        f"START RequestId: {REQUEST} Version: $LATEST\n",
        f"[ERROR] MARKED {text}\n",
        f"END RequestId: {REQUEST}\n",
        f"REPORT RequestId: {REQUEST}\tDuration: 12.50 ms\tBilled Duration: 13 ms\tMemory Size: 128 MB\t"
        "Max Memory Used: 31 MB\tInit Duration: 88.10 ms\t\n",
    )


async def make_alarms(services: Services, text: str = "text") -> None:
    """Make an alarm on a queue that tells a topic, and one on it."""
    for queue in ("orders", "orders-dead"):
        await services.call("sqs", "CreateQueue", QueueName=queue)
    await services.call("sns", "CreateTopic", Name="told")
    await services.call(
        "cloudwatch",
        "PutMetricAlarm",
        AlarmName="orders/wait",
        AlarmDescription=text,
        Namespace="AWS/SQS",
        MetricName="ApproximateNumberOfMessagesVisible",
        Dimensions=[{"Name": "QueueName", "Value": "orders"}],
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=3,
        DatapointsToAlarm=2,
        Threshold=10.0,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[arn("sns", "told")],
    )
    rule = 'OK("orders/wait")'
    await services.call("cloudwatch", "PutCompositeAlarm", AlarmName="both-of-them", AlarmRule=rule)


TEMPLATE: Final = {
    "Resources": {
        "Orders": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "shop-orders", "DelaySeconds": 1}},
        "News": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "shop-news"}},
        "Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "shop/log"}},
    },
    "Outputs": {
        "Queue": {"Value": {"Ref": "Orders"}, "Description": "the orders", "Export": {"Name": "shop-queue"}}
    },
}


async def make_stack(services: Services, text: str = "text") -> None:
    """Make a stack and wait until it stands; on a simulated clock."""
    template = {**TEMPLATE, "Description": text, "Parameters": {"Colour": {"Type": "String"}}}
    await services.call(
        "cloudformation",
        "CreateStack",
        StackName="shop",
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": "Colour", "ParameterValue": f"VARIABLE {text}"}],
        Tags=[{"Key": "team", "Value": text}],
    )
    time = services.visitor.server.time
    assert time is not None
    await time.advance(60_000)


async def make_apis(services: Services, text: str = "text") -> None:
    """Make a REST API whose method sends to a queue, and an HTTP API in front of the function."""
    api = await services.call("apigateway", "CreateRestApi", name=f"shop {text}", description=text)
    resources = await services.call("apigateway", "GetResources", restApiId=api["id"])
    root = {"restApiId": api["id"], "resourceId": resources["items"][0]["id"], "httpMethod": "POST"}
    await services.call("apigateway", "PutMethod", **root, authorizationType="NONE")
    template = f"Action=SendMessage&MessageBody=$util.urlEncode($input.body)## MAPPING {text}"
    await services.call(
        "apigateway",
        "PutIntegration",
        **root,
        type="AWS",
        integrationHttpMethod="POST",
        uri=f"arn:aws:apigateway:{SCOPE.region}:sqs:path/{SCOPE.account}/lost",
        requestParameters={"integration.request.header.Content-Type": "'application/x-www-form-urlencoded'"},
        requestTemplates={"application/json": template},
    )
    answer = {**root, "statusCode": "200"}
    await services.call("apigateway", "PutMethodResponse", **answer)
    await services.call(
        "apigateway",
        "PutIntegrationResponse",
        **answer,
        responseTemplates={"application/json": '{"taken": true}'},
    )
    http = await services.call("apigatewayv2", "CreateApi", Name=f"bills {text}", ProtocolType="HTTP")
    integration = await services.call(
        "apigatewayv2",
        "CreateIntegration",
        ApiId=http["ApiId"],
        IntegrationType="AWS_PROXY",
        IntegrationUri=arn("lambda", "function:bill"),
        PayloadFormatVersion="2.0",
    )
    target = f"integrations/{integration['IntegrationId']}"
    await services.call(
        "apigatewayv2", "CreateRoute", ApiId=http["ApiId"], RouteKey="GET /bills/{id}", Target=target
    )
    await services.call(
        "apigatewayv2", "CreateStage", ApiId=http["ApiId"], StageName="$default", AutoDeploy=True
    )
    services.routes.extend([(api["id"], "POST /"), (http["ApiId"], "GET /bills/{id}")])


async def make_key(keyring: Keyring, account: str) -> AccessKey:
    """Make an account's own access key."""
    key = new_access_key(account, NOW, random.Random(account))
    await keyring.add(key)
    return key


async def make_services(visitor: Visitor, text: str = "text") -> Services:
    """Make something for each page."""
    services = Services(visitor)
    await make_function(services, text)
    await make_alarms(services, text)
    await make_stack(services, text)
    await make_apis(services, text)
    await make_key(visitor.server.core.keyring, SCOPE.account)
    tags = [{"TagKey": "team", "TagValue": text}]
    key = await services.call("kms", "CreateKey", Description=text, Tags=tags)
    services.keys.append(key["KeyMetadata"]["KeyId"])
    return services


def service_pages(services: Services) -> list[str]:
    """Every page of services that only looks."""
    access_key = new_access_key(SCOPE.account, NOW, random.Random(SCOPE.account)).access_key_id
    return [
        *(f"{ROOM}/kms/{key}{path}" for key in services.keys for path in ("", "/delete")),
        f"{ROOM}/kms",
        *(f"{ROOM}/stacks{path}" for path in ("", "?deleted=yes", "/shop", "/shop/template", "/shop/delete")),
        *(f"{ROOM}/apis/{api}/route?{urlencode({'key': key})}" for api, key in services.routes),
        f"{ROOM}/apis",
        *(f"{ROOM}/event-sources/{mapping}?record=x" for mapping in services.mappings),
        f"{ROOM}/event-sources",
        *(f"{ROOM}/audit{path}" for path in ("", "?q=by:nobody")),
        *(f"{ROOT}/settings{path}" for path in ("", "/health", "/keys", f"/keys/{access_key}")),
        f"{ROOM}/functions",
        f"{ROOM}/functions/bill",
        f"{ROOM}/functions/bill/invoke",
        f"{ROOM}/logs",
        f"{ROOM}/logs/streams?name={GROUP}",
        f"{ROOM}/logs/group?name={GROUP}",
        f"{ROOM}/logs/group?name={GROUP}&last=24%20h",
        f"{ROOM}/alarms",
        f"{ROOM}/alarms/alarm?name=orders/wait",
        f"{ROOM}/alarms/alarm?name=both-of-them",
        f"{ROOM}/alarms/state?name=orders/wait",
        f"{ROOM}/alarms/new?queue=orders",
    ]
