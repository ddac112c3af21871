"""The rental-car story: orders posted to an API, and everything that can go wrong on their way.

The architecture is that of the AWS blog article on dead-letter queues for SNS, SQS and Lambda, made from one template:

    POST /orders
       ▼
    Rental-Orders ─┬─► Rental-Fulfilment (SQS) ─► Rental-Fulfilment-DLQ
                   │     └─ unreachable ────────► Rental-Fulfilment-Fanout-DLQ
                   └─► Rental-Billing (Lambda) ─► Rental-Billing-DLQ
                         └─ unreachable ────────► Rental-Billing-Fanout-DLQ
"""

import json
import urllib.request
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from redrive.cli.demo_server import _CONFIRMATION_SECONDS_MAX, ACCOUNT, Billing, DemoServer, PostedOrder

STACK: Final = "rental"
FULFILMENT: Final = "Rental-Fulfilment"
BILLING: Final = "Rental-Billing"
FULFILMENT_DLQ: Final = "Rental-Fulfilment-DLQ"
FULFILMENT_FANOUT_DLQ: Final = "Rental-Fulfilment-Fanout-DLQ"
BILLING_DLQ: Final = "Rental-Billing-DLQ"
BILLING_FANOUT_DLQ: Final = "Rental-Billing-Fanout-DLQ"
DLQS: Final = (FULFILMENT_DLQ, FULFILMENT_FANOUT_DLQ, BILLING_DLQ, BILLING_FANOUT_DLQ)
RETRIES_END: Final = 181  # seconds: Lambda tries again after one minute and after two more
RECREATE_AFTER: Final = 61  # SQS keeps a deleted queue's name for a minute
_FOLDER: Final = files("redrive.cli") / "rental_car"


class Story:
    """The story's places and what happens in them; each act returns what a test or a screen wants to see."""

    def __init__(self, server: DemoServer, billing: Billing) -> None:
        self.server = server
        self.billing = billing
        self._sqs = server.client("sqs")
        self._lambda = server.client("lambda")
        self._stacks = server.client("cloudformation")
        self._logs = server.client("logs")
        self._outputs: dict[str, str] = {}
        self._lost: dict[str, Any] = {}

    # ---- the architecture ---------------------------------------------------------------------------------

    def build(self) -> dict[str, int]:
        """Make the stack of the template; returns the number of its resources by service."""
        self._stacks.create_stack(
            StackName=STACK,
            TemplateBody=_template(),
            Parameters=[{"ParameterKey": "BillingUrl", "ParameterValue": self.billing.url}],
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        waiter = self._stacks.get_waiter("stack_create_complete")
        waiter.wait(
            StackName=STACK, WaiterConfig={"Delay": 0.1, "MaxAttempts": 10 * _CONFIRMATION_SECONDS_MAX}
        )
        stack = self._stacks.describe_stacks(StackName=STACK)["Stacks"][0]
        self._outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        resources = self._stacks.describe_stack_resources(StackName=STACK)["StackResources"]
        services = [resource["ResourceType"].split("::")[1] for resource in resources]
        return {service: services.count(service) for service in dict.fromkeys(services)}

    @property
    def is_built(self) -> bool:
        """True once the stack is there."""
        return bool(self._outputs)

    # ---- the acts -----------------------------------------------------------------------------------------

    def order(self, name: str, car: str, status: str = "confirmed", seconds: float = 1) -> int:
        """Post an order to the API, and let time pass; returns the status of the answer."""
        order = {"order": name, "car": car, "status": status}
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.server.url}/_aws/execute-api/{self._outputs['ApiId']}/prod/orders",
            json.dumps(order).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=_CONFIRMATION_SECONDS_MAX) as answer:  # noqa: S310 - loopback
            response_status: int = answer.status
        self.server.pass_time(seconds)
        return response_status

    def fulfil(self) -> list[str]:
        """The fulfilment system receives and deletes messages; returns the names of their orders."""
        orders = []
        while messages := self._receive():
            for message in messages:
                orders.append(json.loads(json.loads(message["Body"])["Message"])["order"])
                self._sqs.delete_message(
                    QueueUrl=self._url(FULFILMENT), ReceiptHandle=message["ReceiptHandle"]
                )
        return sorted(orders)

    def choke(self) -> int:
        """The fulfilment system receives what it cannot process, again and again; returns how often."""
        times = 0
        while self._receive():
            times += 1
            self.server.pass_time(31)  # the visibility timeout
        return times

    def lose_fulfilment(self) -> None:
        """The fulfilment queue is deleted, but not the subscription."""
        attributes = self._sqs.get_queue_attributes(QueueUrl=self._url(FULFILMENT), AttributeNames=["All"])
        attribute_names = ("Policy", "RedrivePolicy", "KmsMasterKeyId")
        self._lost["queue"] = {name: attributes["Attributes"][name] for name in attribute_names}
        self._sqs.delete_queue(QueueUrl=self._url(FULFILMENT))

    def restore_fulfilment(self) -> None:
        """The queue is made again, as it was."""
        self.server.pass_time(RECREATE_AFTER)
        self._sqs.create_queue(QueueName=FULFILMENT, Attributes=self._lost["queue"])

    def lose_billing(self) -> None:
        """The topic loses its permission to invoke the function."""
        policy = json.loads(self._lambda.get_policy(FunctionName=BILLING)["Policy"])
        self._lost["permission"] = policy["Statement"][0]
        self._permit(f"{self._outputs['Topic']}-of-somebody-else")

    def restore_billing(self) -> None:
        """The topic has its permission again."""
        self._permit(self._outputs["Topic"])

    def _permit(self, topic: str) -> None:
        """Let a topic invoke billing, in place of the permission that it has."""
        statement = self._lost["permission"]
        permission = {"FunctionName": BILLING, "StatementId": statement["Sid"]}
        self._lambda.remove_permission(**permission)
        self._lambda.add_permission(
            **permission, Action=statement["Action"], Principal="sns.amazonaws.com", SourceArn=topic
        )

    def redrive(self, queue: str) -> int:
        """Send everything in a dead-letter queue back where it came from; returns how many messages."""
        answer = self.server.ask("/_redrive/dead-letters", {"queue": queue})
        self.server.pass_time(5)
        return int(answer["to_move"])

    def invoke_again(self) -> int:
        """Give the function the events in its dead-letter queue again: they were sent there, and not moved; how many."""
        events = self._receive(BILLING_DLQ)
        for event in events:
            self._lambda.invoke(FunctionName=BILLING, InvocationType="Event", Payload=event["Body"])
            self._sqs.delete_message(QueueUrl=self._url(BILLING_DLQ), ReceiptHandle=event["ReceiptHandle"])
        self.server.pass_time(5)
        return len(events)

    # ---- what can be seen ---------------------------------------------------------------------------------

    def dead_letters(self, queue: str) -> list[dict[str, Any]]:
        """The messages in a dead-letter queue, with the reasons."""
        letters: list[dict[str, Any]] = self.server.ask(f"/_redrive/dead-letters?queue={queue}")[
            "dead_letters"
        ]
        return letters

    def dead_orders(self, queue: str) -> list[tuple[str, str]]:
        """The orders in a dead-letter queue, which are received to be read since they are encrypted.

        Returns:
            Their names, and what Lambda says of its own, empty for others.
        """
        return [
            (_order_of(message["Body"]), _error_in(message)) for message in self._receive(queue, seconds=0)
        ]

    def attempts(self, order: str) -> list[PostedOrder]:
        """The times that an order came to the billing system."""
        return self.billing.visits_of(order)

    def failures(self) -> list[Mapping[str, Any]]:
        """The failures that the topic's delivery log tells of."""
        group = f"sns/us-east-1/{ACCOUNT}/Rental-Orders/Failure"
        events = self._logs.filter_log_events(logGroupName=group)["events"]
        return [json.loads(event["message"])["delivery"] for event in events]

    def alarms_rung(self) -> set[str]:
        """The alarms that have rung."""
        history = self.server.client("cloudwatch").describe_alarm_history(HistoryItemType="StateUpdate")
        return {
            item["AlarmName"] for item in history["AlarmHistoryItems"] if "to ALARM" in item["HistorySummary"]
        }

    def _receive(self, queue: str = FULFILMENT, seconds: int = 30) -> list[dict[str, Any]]:
        """Receive up to ten messages for so many seconds."""
        answer = self._sqs.receive_message(
            QueueUrl=self._url(queue),
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            VisibilityTimeout=seconds,
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def _url(self, queue: str) -> str:
        return f"{self.server.url}/{ACCOUNT}/{queue}"


def _template() -> str:
    """The template, with the code of billing in its text: there is no bucket that it could be packed into."""
    code = (_FOLDER / "billing.py").read_text()
    lines = (_FOLDER / "template.yaml").read_text().splitlines()
    at = lines.index("      Code: billing/")
    lines[at : at + 1] = ["      Code:", f"        ZipFile: {json.dumps(code)}"]
    return "\n".join(lines).replace("Handler: billing.handler", "Handler: index.handler")


def _error_in(message: Mapping[str, Any]) -> str:
    error_text: str = message.get("MessageAttributes", {}).get("ErrorMessage", {}).get("StringValue", "")
    return error_text


def _order_of(text: str) -> str:
    """The name of the order that a dead letter is about: a message of SNS's, or an event of Lambda's."""
    body = json.loads(text)
    message = body["Message"] if "Message" in body else body["Records"][0]["Sns"]["Message"]
    name: str = json.loads(message)["order"]
    return name
