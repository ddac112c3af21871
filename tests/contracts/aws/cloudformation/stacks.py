"""Stacks at a server, as boto3 has them."""

import json
import time
from collections.abc import Mapping
from typing import Any, Final

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError  # type: ignore[import-untyped]  # as boto3

from tests.services.server import Server

ACCOUNT: Final = "123456789012"
_CONFIG: Final = Config(
    retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30, parameter_validation=False
)
_SECONDS_MAX: Final = 20

Template = Mapping[str, Any]


class Stacks:
    """CloudFormation, and the services whose resources it makes, for one account."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._session = boto3.Session(
            aws_access_key_id=ACCOUNT, aws_secret_access_key="secret", region_name="us-east-1"
        )
        self.client = self.of("cloudformation")
        self.sqs, self.sns = self.of("sqs"), self.of("sns")

    def of(self, service: str) -> Any:
        return self._session.client(service, endpoint_url=self.server.url, config=_CONFIG)

    def create(self, name: str, template: Template, **params: Any) -> dict[str, Any]:
        """Create a stack and wait for its end."""
        made = self.client.create_stack(StackName=name, TemplateBody=json.dumps(template), **params)
        return self.ended(made["StackId"])

    def update(self, name: str, template: Template, **params: Any) -> dict[str, Any]:
        self.client.update_stack(StackName=name, TemplateBody=json.dumps(template), **params)
        return self.ended(name)

    def delete(self, stack: Mapping[str, Any], **params: Any) -> dict[str, Any]:
        self.client.delete_stack(StackName=stack["StackName"], **params)
        return self.ended(stack["StackId"])

    def ended(self, name: str) -> dict[str, Any]:
        """The stack once nothing is being done to it; its changes take real time, a few milliseconds each."""
        until = time.monotonic() + _SECONDS_MAX
        while time.monotonic() < until:
            found: dict[str, Any] = self.client.describe_stacks(StackName=name)["Stacks"][0]
            if not found["StackStatus"].endswith("_IN_PROGRESS"):
                return found
        raise AssertionError(f"{name} is still {found['StackStatus']}")

    def events(self, name: str) -> list[tuple[str, str, str | None]]:
        """The events of a stack, the first one first: logical id, status, reason."""
        found = self.client.get_paginator("describe_stack_events").paginate(StackName=name)
        events = [event for page in found for event in page["StackEvents"]]
        return [
            (event["LogicalResourceId"], event["ResourceStatus"], event.get("ResourceStatusReason"))
            for event in reversed(events)
        ]

    def statuses(self, name: str, logical_id: str) -> list[str]:
        return [status for resource, status, _ in self.events(name) if resource == logical_id]

    def queues(self) -> set[str]:
        """The names of all queues."""
        return {url.rpartition("/")[2] for url in self.sqs.list_queues().get("QueueUrls", ())}

    def topics(self) -> set[str]:
        return {topic["TopicArn"].rpartition(":")[2] for topic in self.sns.list_topics()["Topics"]}

    def refused(self, operation: str, **params: Any) -> tuple[str, str]:
        """The code and the text of a refusal."""
        with pytest.raises(ClientError) as refusal:
            getattr(self.client, operation)(**params)
        error = refusal.value.response["Error"]
        return error["Code"], error["Message"]


def queue(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def arn(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Arn"]}
