"""Exports, imports, and the stacks that cannot go for them."""

from typing import Any

from tests.contracts.aws.cloudformation.stacks import Stacks, arn, queue

GIVES: dict[str, Any] = {
    "Resources": {"Queue": queue()},
    "Outputs": {"Arn": {"Value": arn("Queue"), "Export": {"Name": "dead-arn"}}},
}
TAKES: dict[str, Any] = {
    "Resources": {
        "Work": queue(
            RedrivePolicy={"deadLetterTargetArn": {"Fn::ImportValue": "dead-arn"}, "maxReceiveCount": 2}
        )
    }
}


def test_an_export_stays_as_long_as_it_is_imported(stacks: Stacks) -> None:
    gives = stacks.create("gives", GIVES)
    takes = stacks.create("takes", TAKES)
    assert takes["StackStatus"] == "CREATE_COMPLETE"
    (export,) = stacks.client.list_exports()["Exports"]
    assert (export["Name"], export["ExportingStackId"]) == ("dead-arn", gives["StackId"])
    assert stacks.client.list_imports(ExportName="dead-arn")["Imports"] == ["takes"]
    failed = stacks.delete(gives)
    assert failed["StackStatus"] == "DELETE_FAILED"
    assert failed["StackStatusReason"] == "Export dead-arn cannot be deleted as it is in use by takes"
    stacks.delete(takes)
    assert stacks.refused("list_imports", ExportName="dead-arn")[1] == (
        "Export 'dead-arn' is not imported by any stack."
    )
    assert stacks.delete(gives)["StackStatus"] == "DELETE_COMPLETE"
    assert stacks.client.list_exports()["Exports"] == []


def test_an_import_of_nothing_fails(stacks: Stacks) -> None:
    assert stacks.create("takes", TAKES)["StackStatus"] == "ROLLBACK_COMPLETE"
    assert ("Work", "CREATE_FAILED", "No export named dead-arn found.") in stacks.events("takes")


def test_an_export_has_one_owner(stacks: Stacks) -> None:
    stacks.create("gives", GIVES)
    other = stacks.create("other", GIVES)
    assert other["StackStatus"] == "ROLLBACK_COMPLETE"
    reasons = [reason for _, status, reason in stacks.events("other") if status == "ROLLBACK_IN_PROGRESS"]
    assert reasons == [
        "Export with name dead-arn is already exported by stack gives. Rollback requested by user."
    ]
