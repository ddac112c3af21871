"""Change sets, as deployment tools use them."""

import json
from typing import Any

from tests.contracts.aws.cloudformation.stacks import Stacks, queue

FIRST: dict[str, Any] = {"Resources": {"Queue": queue(QueueName="first", DelaySeconds=1), "Other": queue()}}
SECOND: dict[str, Any] = {"Resources": {"Queue": queue(QueueName="second", DelaySeconds=2), "New": queue()}}


def make(stacks: Stacks, template: dict[str, Any], kind: str) -> dict[str, Any]:
    stacks.client.create_change_set(
        StackName="shop", ChangeSetName="change", TemplateBody=json.dumps(template), ChangeSetType=kind
    )
    found: dict[str, Any] = stacks.client.describe_change_set(StackName="shop", ChangeSetName="change")
    return found


def execute(stacks: Stacks) -> str:
    stacks.client.execute_change_set(StackName="shop", ChangeSetName="change")
    status: str = stacks.ended("shop")["StackStatus"]
    return status


def test_a_stack_is_made_and_changed_by_change_sets(stacks: Stacks) -> None:
    change_set = make(stacks, FIRST, "CREATE")
    assert (change_set["Status"], change_set["ExecutionStatus"]) == ("CREATE_COMPLETE", "AVAILABLE")
    assert [change["ResourceChange"]["Action"] for change in change_set["Changes"]] == ["Add", "Add"]
    review = stacks.client.describe_stacks(StackName="shop")["Stacks"][0]
    assert (review["StackStatus"], review["StackStatusReason"]) == ("REVIEW_IN_PROGRESS", "User Initiated")
    assert execute(stacks) == "CREATE_COMPLETE"
    change_set = make(stacks, SECOND, "UPDATE")
    changes = {
        change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"]
        for change in change_set["Changes"]
    }
    assert {name: change["Action"] for name, change in changes.items()} == {
        "Queue": "Modify",
        "New": "Add",
        "Other": "Remove",
    }
    modified = changes["Queue"]
    assert (modified["Replacement"], modified["Scope"], modified["PolicyAction"]) == (
        "True",
        ["Properties"],
        "ReplaceAndDelete",
    )
    assert modified["Details"] == [
        {
            "Target": {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation},
            "Evaluation": "Static",
            "ChangeSource": "DirectModification",
        }
        for name, recreation in (("DelaySeconds", "Never"), ("QueueName", "Always"))
    ]
    assert execute(stacks) == "UPDATE_COMPLETE"
    assert stacks.events("shop")[0] == ("shop", "REVIEW_IN_PROGRESS", "User Initiated")


def test_a_change_set_without_changes_fails_and_cannot_be_executed(stacks: Stacks) -> None:
    stacks.create("shop", FIRST)
    change_set = make(stacks, FIRST, "UPDATE")
    assert (change_set["Status"], change_set["ExecutionStatus"], change_set["StatusReason"]) == (
        "FAILED",
        "UNAVAILABLE",
        "The submitted information didn't contain changes. Submit different information to create a change set.",
    )
    code, text = stacks.refused("execute_change_set", StackName="shop", ChangeSetName="change")
    assert code == "InvalidChangeSetStatus"
    assert text.endswith("cannot be executed in its current status of [FAILED]")
    stacks.client.delete_change_set(StackName="shop", ChangeSetName="change")
    assert stacks.client.list_change_sets(StackName="shop")["Summaries"] == []


def test_change_sets_are_for_stacks_that_are_there_or_not(stacks: Stacks) -> None:
    params = {"StackName": "shop", "ChangeSetName": "change", "TemplateBody": json.dumps(FIRST)}
    assert (
        stacks.refused("create_change_set", **params, ChangeSetType="UPDATE")[1]
        == "Stack [shop] does not exist"
    )
    assert stacks.refused("describe_change_set", ChangeSetName="change")[1] == (
        "StackName must be specified if ChangeSetName is not specified as an ARN."
    )
    stacks.create("shop", FIRST)
    assert stacks.refused("create_change_set", **params, ChangeSetType="CREATE")[1] == (
        "Stack [shop] already exists and cannot be created again with the changeSet [change]."
    )
    assert stacks.refused("describe_change_set", StackName="shop", ChangeSetName="none") == (
        "ChangeSetNotFound",
        "ChangeSet [none] does not exist",
    )


def test_a_change_outdates_the_change_sets_that_were_made_before(stacks: Stacks) -> None:
    stacks.create("shop", FIRST)
    make(stacks, SECOND, "UPDATE")
    stacks.update("shop", {"Resources": {"Queue": queue(QueueName="first", DelaySeconds=5)}})
    found = stacks.client.describe_change_set(StackName="shop", ChangeSetName="change")
    assert found["ExecutionStatus"] == "OBSOLETE"
