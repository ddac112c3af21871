"""A node that dies at any write of a stack's change: whoever takes the change up brings the stack to its end.

Here a write fails before it is on disk or after, and all that comes after it until the change is taken up again; the real
server is killed by `python -m tests.crash.stacks`.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from redrive.aws.cloudformation.changes.change import Change as StackChange
from redrive.engine.ports import Change, NewDelivery
from redrive.model.log import LogEvent
from tests.aws.cloudformation.stage import Stage, stage

EVERY = 3  # of the writes that a change makes, one after the other; `python -m tests.crash.stacks` takes random moments


def _arn(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Arn"]}


def template(names: str, seconds: int) -> dict[str, Any]:
    function = {
        "Runtime": "python3.12",
        "Handler": "index.handler",
        "Role": "arn:aws:iam::123456789012:role/r",
        "Code": {"ZipFile": "def handler(event, context):\n    pass\n"},
        "Timeout": seconds,
    }
    redrive = {"deadLetterTargetArn": _arn("Dead"), "maxReceiveCount": 2}
    subscription = {"TopicArn": {"Ref": "Topic"}, "Protocol": "sqs", "Endpoint": _arn("Work")}
    mapping = {"FunctionName": {"Ref": "Function"}, "EventSourceArn": _arn("Work"), "BatchSize": seconds}
    resources = {
        "Dead": ("SQS::Queue", {"QueueName": f"{names}-dead"}),
        "Work": ("SQS::Queue", {"RedrivePolicy": redrive, "VisibilityTimeout": 30 + seconds}),
        "Topic": ("SNS::Topic", {"TopicName": names}),
        "Subscription": ("SNS::Subscription", subscription),
        "Function": ("Lambda::Function", function),
        "Mapping": ("Lambda::EventSourceMapping", mapping),
        "Key": ("KMS::Key", {"Description": names}),
        "Parameter": ("SSM::Parameter", {"Type": "String", "Value": names}),
    }
    return {
        "Resources": {
            name: {"Type": f"AWS::{kind}", "Properties": of} for name, (kind, of) in resources.items()
        }
    }


class Dying:
    """The writes of a store, which fail from one of them on."""

    def __init__(self, at: Stage) -> None:
        self._store = at.server.core.store
        self._write = self._store.write
        self._left = 0
        self._store.write = self.write  # type: ignore[method-assign]  # the store of a test
        self.dead = False

    def after(self, writes: int) -> None:
        self._left, self.dead = writes, False

    def revive(self) -> bool:
        died, self._left, self.dead = self.dead, 0, False
        return died

    async def write(
        self,
        changes: Sequence[Change],
        new_deliveries: Sequence[NewDelivery] = (),
        log_events: Sequence[LogEvent] = (),
    ) -> list[int]:
        if self.dead:
            raise OSError("the node is dead")
        self._left -= 1
        if self._left != 0:
            return await self._write(changes, new_deliveries, log_events)
        self.dead = True
        if any(ord(name[-1]) % 2 for _, name, *_ in changes if isinstance(name, str)):
            await self._write(changes, new_deliveries, log_events)  # it is on disk, and nobody hears of it
        raise OSError("the node died")


async def _gone_on(at: Stage, dying: Dying, arn: str) -> tuple[bool, str]:
    """True if the node died; and the stack's status once the change was taken up."""
    await at.operations._tasks.until_quiet()
    died = dying.revive()
    await at.operations.take_up()
    stack = await at.ended(arn)
    return died, stack["StackStatus"]


def _numbers(left: dict[str, list[str]]) -> dict[str, int]:
    return {kind: len(names) for kind, names in left.items()}


WHOLE = {"queues": 2, "topics": 1, "subscriptions": 1, "functions": 1, "mappings": 1, "parameters": 1}


async def _keys(at: Stage) -> int:
    """The number of keys that are not about to be deleted."""
    found = [
        await at.ask("kms", "DescribeKey", KeyId=key["KeyId"])
        for key in (await at.ask("kms", "ListKeys"))["Keys"]
    ]
    return sum(key["KeyMetadata"]["KeyState"] == "Enabled" for key in found)


async def test_a_change_goes_on_from_every_write(caplog: pytest.LogCaptureFixture) -> None:
    rounds = 0
    async with stage() as at:
        dying = Dying(at)
        for number in range(1, 200, EVERY):
            stack = await at.stacks("CreateStack", StackName="shop", TemplateBody=template("a", 3))
            dying.after(number)
            died, status = await _gone_on(at, dying, stack["StackId"])
            assert (status, _numbers(await at.left()), await _keys(at)) == ("CREATE_COMPLETE", WHOLE, 1), (
                number
            )
            await at.stacks("UpdateStack", StackName="shop", TemplateBody=template("b", 4))
            dying.after(number)
            changed, status = await _gone_on(at, dying, stack["StackId"])
            assert (status, _numbers(await at.left()), await _keys(at)) == ("UPDATE_COMPLETE", WHOLE, 1), (
                number
            )
            await at.stacks("DeleteStack", StackName="shop")
            dying.after(number)
            deleted, status = await _gone_on(at, dying, stack["StackId"])
            assert (status, await at.left(), await _keys(at)) == ("DELETE_COMPLETE", {}, 0), number
            rounds += 1
            if not (died or changed or deleted):
                break
    assert rounds > 8
    assert "stack_operation.interrupted" in caplog.text


async def test_a_way_back_goes_on_from_every_write() -> None:
    broken = {
        "Type": "AWS::SQS::Queue",
        "Properties": {"VisibilityTimeout": -1},
        "DependsOn": ["Mapping", "Key"],
    }
    rounds = 0
    async with stage() as at:
        dying = Dying(at)
        for number in range(2, 200, 2 * EVERY):
            failing = template("a", 3)
            failing["Resources"]["Broken"] = broken
            stack = await at.stacks("CreateStack", StackName="shop", TemplateBody=failing)
            dying.after(number)
            died, status = await _gone_on(at, dying, stack["StackId"])
            assert (status, await at.left(), await _keys(at)) == ("ROLLBACK_COMPLETE", {}, 0), number
            await at.delete(stack)
            stack = await at.create("shop", template("a", 3))
            failing = template("b", 4)
            failing["Resources"]["Broken"] = broken
            await at.stacks("UpdateStack", StackName="shop", TemplateBody=failing)
            dying.after(number)
            changed, status = await _gone_on(at, dying, stack["StackId"])
            left = _numbers(await at.left()), await _keys(at)
            assert (status, *left) == ("UPDATE_ROLLBACK_COMPLETE", WHOLE, 1), number
            await at.delete(stack)
            rounds += 1
            if not (died or changed):
                break
    assert rounds > 6


@pytest.mark.parametrize(
    ("operation", "status"),
    [("CreateStack", "CREATE_FAILED"), ("UpdateStack", "UPDATE_FAILED"), ("DeleteStack", "DELETE_FAILED")],
)
async def test_a_change_that_begins_again_and_again_fails_its_stack(
    operation: str, status: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that takes all memory ends the server, and would end it after each start."""

    async def die(_: StackChange) -> None:
        raise MemoryError

    async with stage() as at:
        if operation != "CreateStack":
            await at.create("shop", template("a", 3))
        with monkeypatch.context() as patched:
            patched.setattr(StackChange, "carry_on", die)
            body = {} if operation == "DeleteStack" else {"TemplateBody": template("b", 4)}
            await at.stacks(operation, StackName="shop", **body)
            for _ in range(5):
                await at.operations._tasks.until_quiet()
                stack = (await at.stacks("DescribeStacks", StackName="shop"))["Stacks"][0]
                assert stack["StackStatus"].endswith("_IN_PROGRESS")
                await at.operations.take_up()
            stack = await at.ended(stack["StackId"])
        reason = "Internal Failure: the change began 5 times and did not come to an end"
        assert (stack["StackStatus"], stack["StackStatusReason"]) == (status, reason)
        assert "stack.given_up" in caplog.text
        assert (await at.delete(stack))["StackStatus"] == "DELETE_COMPLETE"
        assert (await at.left(), await _keys(at)) == ({}, 0)
