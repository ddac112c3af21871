"""The stack of `examples/rental-car`, on a server in this process whose clock is simulated."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from redrive.aws.cloudformation.template.reading import read_body
from redrive.aws.wire.shapes import Structure
from redrive.cli.demo_story import BILLING, FULFILMENT
from redrive.model.http import Request
from tests.aws.cloudformation.stage import ACCOUNT, REGION, URL, Stage, stage

EXAMPLE: Final = Path(__file__).parents[2] / "examples/rental-car"
_DAY: Final = 86_400
_HEADERS: Final = {"host": "127.0.0.1:4566", "content-type": "application/json"}


def template(code: str = "", **billing: Any) -> dict[str, Any]:
    """The example's template, with the code of billing in its text, where `package` would put the address of it.

    Args:
        code: Of billing; empty: the example's.
        billing: More properties of the function.
    """
    found = read_body((EXAMPLE / "template.yaml").read_text())
    code = code or (EXAMPLE / "billing/billing.py").read_text()
    function = {"Code": {"ZipFile": code}, "Handler": "index.handler", "Runtime": "python3.11", **billing}
    found["Resources"]["Billing"]["Properties"] |= function
    return found


class RentalCar:
    """The stack, once it is there.

    Attributes:
        at: The server.
        outputs: Of the stack, by name.
    """

    def __init__(self, at: Stage, outputs: Mapping[str, str]) -> None:
        self.at = at
        self.outputs = outputs

    # ---- orders ------------------------------------------------------------------------------------------------------

    async def order(self, number: int, status: str = "confirmed", car: str = "van") -> tuple[int, Any]:
        """Post an order to the front door; status and document of the answer."""
        body = json.dumps({"order": f"order-{number}", "car": car, "status": status}).encode()
        path = f"/_aws/execute-api/{self.outputs['ApiId']}/prod/orders"
        answer = await self.at.server.router.answer(Request("POST", path, "", dict(_HEADERS), body))
        return answer.status, json.loads(answer.body)

    async def receive(self, queue: str = FULFILMENT) -> list[Structure]:
        taken = await self.at.ask(
            "sqs",
            "ReceiveMessage",
            QueueUrl=url_of(queue),
            MaxNumberOfMessages=10,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return list(taken.get("Messages") or ())

    async def fulfil(self) -> list[str]:
        """Empty the queue of fulfilment; the orders' numbers."""
        done = []
        while messages := await self.receive():
            for message in messages:
                done.append(order_in(json.loads(message["Body"])["Message"]))
                handle = message["ReceiptHandle"]
                await self.at.ask("sqs", "DeleteMessage", QueueUrl=url_of(FULFILMENT), ReceiptHandle=handle)
        return done

    async def billed(self) -> list[str]:
        """The numbers of the orders that the log of billing tells of."""
        group = f"/aws/lambda/{BILLING}"
        found = await self.at.ask(
            "logs", "FilterLogEvents", logGroupName=group, filterPattern="{ $.billed = * }"
        )
        return [json.loads(event["message"])["billed"] for event in found["events"]]

    # ---- what can be seen --------------------------------------------------------------------------------------------

    async def logged(self, suffix: str = "") -> list[dict[str, Any]]:
        """The entries of the topic's delivery log, without when and by which id."""
        group = f"sns/{REGION}/{ACCOUNT}/Rental-Orders{suffix}"
        found = await self.at.ask("logs", "FilterLogEvents", logGroupName=group)
        return [json.loads(event["message"]) for event in found["events"]]

    async def of_topic(self, metric: str) -> float:
        return await self._sum("AWS/SNS", metric, "TopicName", "Rental-Orders")

    async def of_queue(self, queue: str, metric: str) -> float:
        return await self._sum("AWS/SQS", metric, "QueueName", queue)

    async def of_billing(self, metric: str) -> float:
        return await self._sum("AWS/Lambda", metric, "FunctionName", BILLING)

    async def _sum(self, namespace: str, metric: str, dimension: str, name: str) -> float:
        now = self.at.server.core.runtime.clock.now() // 1000
        found = await self.at.ask(
            "cloudwatch",
            "GetMetricStatistics",
            Namespace=namespace,
            MetricName=metric,
            Dimensions=[{"Name": dimension, "Value": name}],
            StartTime=(now - 30 * _DAY) * 1000,
            EndTime=(now + 60) * 1000,
            Period=31 * _DAY,
            Statistics=["Sum"],
        )
        return sum(point["Sum"] for point in found.get("Datapoints") or ())

    async def ringing(self) -> list[str]:
        """The alarms that ring."""
        found = await self.at.ask("cloudwatch", "DescribeAlarms", StateValue="ALARM")
        return [alarm["AlarmName"] for alarm in found.get("MetricAlarms") or ()]

    async def hear_alarms(self) -> None:
        """Subscribe a queue to the topic of alarms, as somebody would who is on call."""
        await self.at.ask("sqs", "CreateQueue", QueueName="on-call")
        await self.at.ask(
            "sqs",
            "SetQueueAttributes",
            QueueUrl=url_of("on-call"),
            Attributes={
                "Policy": json.dumps(allows("sns.amazonaws.com", "sqs:SendMessage", arn_of("on-call")))
            },
        )
        endpoint = arn_of("on-call")
        await self.at.ask(
            "sns", "Subscribe", TopicArn=self.outputs["AlarmTopic"], Protocol="sqs", Endpoint=endpoint
        )

    async def heard(self) -> list[str]:
        """The alarms that rang at whoever is on call."""
        told = [
            json.loads(json.loads(message["Body"])["Message"]) for message in await self.receive("on-call")
        ]
        return [alarm["AlarmName"] for alarm in told if alarm["NewStateValue"] == "ALARM"]


def allows(who: str, action: str, resource: str) -> dict[str, Any]:
    """A policy that lets a service, or everybody, do something."""
    principal: Any = {"AWS": "*"} if who == "*" else {"Service": who}
    statement = {"Effect": "Allow", "Principal": principal, "Action": action, "Resource": resource}
    return {"Version": "2012-10-17", "Statement": [statement]}


def url_of(queue: str) -> str:
    return f"{URL}/{ACCOUNT}/{queue}"


def arn_of(queue: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"


def order_in(text: str) -> str:
    """The number of the order in a message's text."""
    number: str = json.loads(text)["order"]
    return number


@asynccontextmanager
async def rental_car(auth: str = "off") -> AsyncIterator[RentalCar]:
    """The stack on a server of its own."""
    async with stage(auth=auth) as at:
        stack = await at.create("rental", template())
        assert stack["StackStatus"] == "CREATE_COMPLETE", await at.reasons("rental", "CREATE_FAILED")
        shown = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        made = RentalCar(at, shown)
        await made.hear_alarms()
        yield made
