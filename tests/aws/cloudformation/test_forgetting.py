"""Deleted stacks: shown for 90 days, and then nothing of them is left."""

from redrive.aws.cloudformation.changes.operations import KEPT_MS, forget_deleted
from tests.aws.cloudformation.stage import Stage, stage

TEMPLATE = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}
KINDS = ("stack", "stack_event", "stack_resource", "stack_template", "stack_operation", "stack_change_set")


async def _kept(at: Stage, stack_id: str) -> dict[str, int]:
    """The numbers of documents that are kept of a stack, by kind."""
    found = {kind: await at.server.core.store.find(kind, "") for kind in KINDS}
    return {kind: sum(stack_id in each.key for each in listed) for kind, listed in found.items()}


async def test_a_deleted_stack_is_shown_for_90_days_and_then_forgotten() -> None:
    async with stage() as at:
        kept = await at.create("kept", TEMPLATE)
        gone = await at.create("gone", TEMPLATE)
        await at.stacks(
            "CreateChangeSet",
            StackName="gone",
            ChangeSetName="c",
            TemplateBody={**TEMPLATE, "Outputs": {"A": {"Value": "1"}}},
        )
        await at.delete(gone)
        engine, now = at.server.core.engine, at.server.core.engine.clock.now()
        stack_id = gone["StackId"].rpartition("/")[2]
        assert await forget_deleted(engine, now + KEPT_MS - 1) == 0
        assert (await at.stacks("DescribeStacks", StackName=gone["StackId"]))["Stacks"]
        assert sum((await _kept(at, stack_id)).values()) > 4
        assert await forget_deleted(engine, now + KEPT_MS) == 1
        assert await _kept(at, stack_id) == dict.fromkeys(KINDS, 0)
        assert "does not exist" in await at.refused("DescribeStacks", StackName=gone["StackId"])
        shown = (await at.stacks("DescribeStacks", StackName=kept["StackId"]))["Stacks"]
        assert [each["StackStatus"] for each in shown] == ["CREATE_COMPLETE"]
