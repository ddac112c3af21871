"""The stack of the application: made, changed, deleted; and rolled back where any call of it fails, with nothing left."""

import json
from collections.abc import Mapping
from typing import Any

from redrive.aws.wire.errors import AwsError
from tests.aws.cloudformation.stage import Stage, stage
from tests.story.rental_car import template


def changed() -> dict[str, Any]:
    """The template with a change to most of its resources, in place and by replacement."""
    changed = template(Timeout=20)
    resources = changed["Resources"]

    def change(name: str, **properties: Any) -> None:
        resources[name]["Properties"] |= properties

    change("Key", Description="orders")
    change("Orders", TopicName={"Fn::Sub": "${Prefix}Orders-2"}, DisplayName="orders")
    change("FulfilmentDLQ", QueueName={"Fn::Sub": "${Prefix}Fulfilment-DLQ-2"})
    change("Fulfilment", VisibilityTimeout=60)
    change("FulfilmentSubscription", FilterPolicy={"order-status": ["confirmed"]})
    change("BillingLog", RetentionInDays=14)
    change("BillingAlarm", Threshold=5)
    change("ApiRole", Description="publishes orders")
    change("Api", Description="orders")
    change("Stage", DeploymentId={"Ref": "NextDeployment"})
    resources["NextDeployment"] = resources.pop("Deployment")
    resources["Added"] = {"Type": "AWS::SQS::Queue"}
    del resources["FulfilmentFanoutAlarm"]
    return changed


READS = ("Get", "List", "Describe", "Head")


class FailsOnce:
    """Refuses one of the calls that a change makes, and counts them all.

    Attributes:
        number: Of the call that is refused, from 1; 0: none is.
        failed: What was refused.
    """

    def __init__(self) -> None:
        self.number = 0
        self.made = 0
        self.failed = ""

    def begin(self, number: int) -> None:
        self.number, self.made, self.failed = number, 0, ""

    def look(self, service: str, operation: str, params: Mapping[str, Any]) -> None:
        if operation.startswith(READS):
            return
        self.made += 1
        if self.made == self.number:
            self.failed = f"{service} {operation}"
            raise AwsError("InternalFailure", "failed on purpose", status=500)


async def test_the_application_is_made_changed_and_deleted() -> None:
    async with stage() as at:
        stack = await at.create("rental", template())
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        said = {"order-status": {"DataType": "String", "StringValue": "confirmed"}}
        await at.ask("sns", "Publish", TopicArn=outputs["Topic"], Message="{}", MessageAttributes=said)
        taken = await at.ask("sqs", "ReceiveMessage", QueueUrl=outputs["FulfilmentQueue"])
        assert json.loads(taken["Messages"][0]["Body"])["Message"] == "{}"
        await at.advance(1)  # what the function has to say is in its log
        after = await at.update("rental", changed())
        assert after["StackStatus"] == "UPDATE_COMPLETE"
        queues = (await at.ask("sqs", "ListQueues"))["QueueUrls"]
        assert sum(url.endswith("/Rental-Fulfilment-DLQ-2") for url in queues) == 1
        assert not any(url.endswith("/Rental-Fulfilment-DLQ") for url in queues)
        alarms = await at.ask("cloudwatch", "DescribeAlarms")
        assert sorted(alarm["Threshold"] for alarm in alarms["MetricAlarms"]) == [0, 0, 5]
        await at.delete(stack)
        assert await at.left() == {}
        assert not (await at.ask("cloudwatch", "DescribeAlarms")).get("MetricAlarms")


async def test_a_creation_is_rolled_back_at_each_failure_in_turn() -> None:
    fails = FailsOnce()
    async with stage() as at:
        at.intercept(fails.look)
        for number in range(1, 200):
            fails.begin(number)
            stack = await at.create("rental", template())
            if not fails.failed:
                break
            assert stack["StackStatus"] == "ROLLBACK_COMPLETE", fails.failed
            assert await at.left() == {}, fails.failed
            await at.delete(stack)
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        assert number > len(template()["Resources"])


async def test_a_change_is_rolled_back_at_each_failure_in_turn() -> None:
    fails = FailsOnce()
    async with stage() as at:
        at.intercept(fails.look)
        stack = await at.create("rental", template())
        before = await _state(at)
        for number in range(1, 200):
            fails.begin(number)
            stack = await at.update("rental", changed())
            if stack["StackStatus"] == "UPDATE_COMPLETE":
                break
            assert stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE", fails.failed
            assert await _state(at) == before, fails.failed
        assert number > 10
        fails.begin(0)
        await at.delete(stack)
        assert await at.left() == {}


async def _state(at: Stage) -> Any:
    """The resources that there are, and how those stand that a change touches."""
    left = await at.left()
    resources = await at.resources("rental")
    ids = {name: resource.get("PhysicalResourceId") for name, resource in resources.items()}
    function = await at.ask("lambda", "GetFunctionConfiguration", FunctionName="Rental-Billing")
    queue = await at.ask("sqs", "GetQueueAttributes", QueueUrl=ids["Fulfilment"], AttributeNames=["All"])
    attributes = {name: queue["Attributes"].get(name) for name in ("VisibilityTimeout", "RedrivePolicy")}
    filters = await at.ask("sns", "GetSubscriptionAttributes", SubscriptionArn=ids["FulfilmentSubscription"])
    prefix = "/aws/lambda/Rental-Billing"
    (group,) = (await at.ask("logs", "DescribeLogGroups", logGroupNamePrefix=prefix))["logGroups"]
    return (
        left,
        ids,
        function["Timeout"],
        attributes,
        filters["Attributes"]["FilterPolicy"],
        group["retentionInDays"],
    )
