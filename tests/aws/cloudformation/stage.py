"""A whole server in this process, without its front, on a simulated clock: stacks by calls from within."""

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from redrive.access.principals import account_root
from redrive.app import Server, assembled
from redrive.aws.cloudformation.changes.operations import StackOperations
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.model.http import Request
from redrive.runtime.simulated import SimulatedClock
from redrive.settings import Settings

ACCOUNT = "123456789012"
REGION = "us-east-1"
URL = "http://127.0.0.1:4566"
CAPABILITIES = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]

Intercept = Callable[[str, str, Mapping[str, Any]], None]


class Stage:
    """A server and its stacks."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.services = server.core.services
        self._calls = InnerCalls(self.services, server.core.runtime)
        self.operations = next(
            part
            for extension in server.extensions
            for part in extension.lifecycle.clock_driven
            if isinstance(part, StackOperations)
        )

    async def ask(self, service: str, operation: str, **params: Any) -> Structure:
        return await self.ask_in(REGION, service, operation, **params)

    async def ask_in(self, region: str, service: str, operation: str, **params: Any) -> Structure:
        return await self._calls.call(service, operation, params, account_root(ACCOUNT), region)

    async def stacks(self, operation: str, **params: Any) -> Structure:
        if isinstance(params.get("TemplateBody"), Mapping):
            params["TemplateBody"] = json.dumps(params["TemplateBody"])
        return await self.ask("cloudformation", operation, **params)

    async def refused(self, operation: str, **params: Any) -> str:
        try:
            await self.stacks(operation, **params)
        except AwsError as refusal:
            return refusal.message
        raise AssertionError(f"{operation} was not refused")

    async def create(self, name: str, template: Any, **params: Any) -> Structure:
        made = await self.stacks(
            "CreateStack", StackName=name, TemplateBody=template, Capabilities=CAPABILITIES, **params
        )
        return await self.ended(made["StackId"])

    async def update(self, name: str, template: Any, **params: Any) -> Structure:
        params = {"Capabilities": CAPABILITIES, **params}
        made = await self.stacks("UpdateStack", StackName=name, TemplateBody=template, **params)
        return await self.ended(made["StackId"])

    async def delete(self, stack: Structure) -> Structure:
        await self.stacks("DeleteStack", StackName=stack["StackId"])
        return await self.ended(stack["StackId"])

    async def ended(self, arn: str) -> Structure:
        """The stack, once nothing is being done to it any more."""
        await self.operations.signals.wait_for_end(arn, 10**15)
        found: Structure = (await self.stacks("DescribeStacks", StackName=arn))["Stacks"][0]
        return found

    async def resources(self, name: str) -> dict[str, Structure]:
        found = await self.stacks("DescribeStackResources", StackName=name)
        return {resource["LogicalResourceId"]: resource for resource in found["StackResources"]}

    async def reasons(self, name: str, status: str) -> dict[str, str]:
        """The reasons of the resources' events with a status."""
        found = await self.stacks("DescribeStackEvents", StackName=name)
        events = [event for event in found["StackEvents"] if event["ResourceStatus"] == status]
        return {event["LogicalResourceId"]: event.get("ResourceStatusReason", "") for event in events}

    async def put(self, address: str, answer: Mapping[str, Any]) -> int:
        """Put an answer to an address that a resource gave away; the status."""
        path = address.removeprefix(URL)
        request = Request("PUT", path, "", {"host": "127.0.0.1:4566"}, json.dumps(answer).encode())
        return (await self.server.router.answer(request)).status

    async def advance(self, seconds: int) -> None:
        assert self.server.time is not None
        await self.server.time.advance(seconds * 1000)

    async def left(self) -> dict[str, list[str]]:
        """All resources that there are, of every service, by kind."""
        queues = await self.ask("sqs", "ListQueues")
        topics = await self.ask("sns", "ListTopics")
        subscriptions = await self.ask("sns", "ListSubscriptions")
        groups = await self.ask("logs", "DescribeLogGroups")
        buckets = await self.ask("s3", "ListBuckets")
        functions = await self.ask("lambda", "ListFunctions")
        mappings = await self.ask("lambda", "ListEventSourceMappings")
        aliases = await self.ask("kms", "ListAliases")
        parameters = await self.ask("ssm", "DescribeParameters")
        roles = await self.ask("iam", "ListRoles")
        found = {
            "queues": list(queues.get("QueueUrls") or ()),
            "topics": [one["TopicArn"] for one in topics["Topics"]],
            "subscriptions": [one["SubscriptionArn"] for one in subscriptions["Subscriptions"]],
            "groups": [one["logGroupName"] for one in groups["logGroups"]],
            "buckets": [one["Name"] for one in buckets.get("Buckets") or ()],
            "functions": [one["FunctionName"] for one in functions["Functions"]],
            "mappings": [one["UUID"] for one in mappings["EventSourceMappings"]],
            "aliases": [
                one["AliasName"] for one in aliases["Aliases"] if "alias/aws/" not in one["AliasName"]
            ],
            "parameters": [one["Name"] for one in parameters["Parameters"]],
            "roles": [one["RoleName"] for one in roles["Roles"]],
        }
        return {kind: names for kind, names in found.items() if names}

    def intercept(self, look: Intercept) -> None:
        """Let something look at each call that a stack makes, and refuse it."""
        calls = self.operations._services.calls
        before = calls.call

        async def call(service: str, operation: str, params: Any, *rest: Any, **more: Any) -> Structure:
            look(service, operation, params)
            return await before(service, operation, params, *rest, **more)

        calls.call = call  # type: ignore[method-assign]  # the calls of a test


@asynccontextmanager
async def stage(store: str = "sqlite://:memory:", auth: str = "off") -> AsyncIterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="redrive-blobs-") as blobs:
        settings = Settings(
            store=store,
            auth=auth,
            functions="on",
            clock="simulated",
            skip_queue_waits=True,
            blob_store=blobs,
        )
        async with assembled(settings, URL) as server:
            assert isinstance(server.core.runtime.clock, SimulatedClock)
            await server.open()
            await server.parts.open_all()
            yield Stage(server)
