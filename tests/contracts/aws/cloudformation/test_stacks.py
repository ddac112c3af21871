"""The life of a stack: made, changed in place and by replacement, rolled back, deleted; with its events as recorded."""

import json
from typing import Any

from tests.contracts.aws.cloudformation.stacks import ACCOUNT, Stacks, arn, queue

PAIR: dict[str, Any] = {
    "Description": "a queue with its dead letters",
    "Parameters": {
        "Seconds": {"Type": "Number", "Default": "30"},
        "Secret": {"Type": "String", "NoEcho": True},
    },
    "Resources": {
        "Dead": queue(),
        "Work": queue(
            VisibilityTimeout={"Ref": "Seconds"},
            RedrivePolicy={"deadLetterTargetArn": arn("Dead"), "maxReceiveCount": 3},
        ),
    },
    "Outputs": {
        "Url": {"Value": {"Ref": "Work"}, "Description": "where to send", "Export": {"Name": "shop/url"}},
        "Name": {"Value": {"Fn::Sub": "${Work.QueueName}"}},
    },
}
SECRET = [{"ParameterKey": "Secret", "ParameterValue": "hush"}]
BROKEN = {**queue(VisibilityTimeout=-1)}


def test_a_stack_is_made_shown_and_deleted(stacks: Stacks) -> None:
    stack = stacks.create("shop", PAIR, Parameters=SECRET, Tags=[{"Key": "team", "Value": "rent"}])
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    assert stack["StackId"].startswith(f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/shop/")
    outputs = {output["OutputKey"]: output for output in stack["Outputs"]}
    name = outputs["Name"]["OutputValue"]
    assert name.startswith("shop-Work-")
    assert outputs["Url"]["OutputValue"].endswith(f"/{ACCOUNT}/{name}")
    assert (outputs["Url"]["ExportName"], outputs["Url"]["Description"]) == ("shop/url", "where to send")
    assert stack["Parameters"] == [
        {"ParameterKey": "Secret", "ParameterValue": "****"},
        {"ParameterKey": "Seconds", "ParameterValue": "30"},
    ]
    url = outputs["Url"]["OutputValue"]
    attributes = stacks.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert json.loads(attributes["RedrivePolicy"])["maxReceiveCount"] == 3
    assert stacks.sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "rent"}
    resources = stacks.client.describe_stack_resources(StackName="shop")["StackResources"]
    assert [(one["LogicalResourceId"], one["ResourceStatus"]) for one in resources] == [
        ("Dead", "CREATE_COMPLETE"),
        ("Work", "CREATE_COMPLETE"),
    ]
    assert stacks.client.get_template(StackName="shop")["TemplateBody"] == PAIR
    assert stacks.delete(stack)["StackStatus"] == "DELETE_COMPLETE"
    assert stacks.queues() == set()
    assert stacks.refused("describe_stacks", StackName="shop") == (
        "ValidationError",
        "Stack with id shop does not exist",
    )
    assert stacks.refused("describe_stack_events", StackName="shop")[1] == "Stack [shop] does not exist"
    shown = stacks.client.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert [one["StackId"] for one in shown] == [stack["StackId"]]
    stacks.client.delete_stack(StackName="shop")  # again is no error


def test_events_of_a_creation_are_as_recorded(stacks: Stacks) -> None:
    stacks.create("shop", PAIR, Parameters=SECRET, ClientRequestToken="once")
    assert stacks.events("shop") == [
        ("shop", "CREATE_IN_PROGRESS", "User Initiated"),
        ("Dead", "CREATE_IN_PROGRESS", None),
        ("Dead", "CREATE_IN_PROGRESS", "Resource creation Initiated"),
        ("Dead", "CREATE_COMPLETE", None),
        ("Work", "CREATE_IN_PROGRESS", None),
        ("Work", "CREATE_IN_PROGRESS", "Resource creation Initiated"),
        ("Work", "CREATE_COMPLETE", None),
        ("shop", "CREATE_COMPLETE", None),
    ]
    events = stacks.client.describe_stack_events(StackName="shop")["StackEvents"]
    assert {event["ClientRequestToken"] for event in events} == {"once"}
    first = events[-2]
    assert (first["PhysicalResourceId"], json.loads(first["ResourceProperties"])) == ("", {})
    assert first["EventId"].startswith("Dead-CREATE_IN_PROGRESS-20")


def test_a_stack_changes_in_place(stacks: Stacks) -> None:
    before = stacks.create("shop", PAIR, Parameters=SECRET)
    keeps = [{"ParameterKey": "Secret", "UsePreviousValue": True}]
    seconds = [*keeps, {"ParameterKey": "Seconds", "ParameterValue": "45"}]
    stacks.client.update_stack(StackName="shop", UsePreviousTemplate=True, Parameters=seconds)
    after = stacks.ended("shop")
    assert after["StackStatus"] == "UPDATE_COMPLETE"
    assert after["Outputs"] == before["Outputs"]
    url = next(output["OutputValue"] for output in after["Outputs"] if output["OutputKey"] == "Url")
    attributes = stacks.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    assert attributes["Attributes"] == {"VisibilityTimeout": "45"}
    assert stacks.events("shop")[8:] == [
        ("shop", "UPDATE_IN_PROGRESS", "User Initiated"),
        ("Work", "UPDATE_IN_PROGRESS", None),
        ("Work", "UPDATE_COMPLETE", None),
        ("shop", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", None),
        ("shop", "UPDATE_COMPLETE", None),
    ]
    assert stacks.refused("update_stack", StackName="shop", UsePreviousTemplate=True, Parameters=seconds) == (
        "ValidationError",
        "No updates are to be performed.",
    )


def named(name: str, **more: Any) -> dict[str, Any]:
    """A queue with a name, and another that knows it."""
    tells = {"deadLetterTargetArn": arn("Named"), "maxReceiveCount": 2}
    return {"Resources": {"Named": queue(QueueName=name), "Knows": queue(RedrivePolicy=tells), **more}}


def test_a_change_of_name_replaces_a_resource(stacks: Stacks) -> None:
    stacks.create("shop", named("first"))
    assert stacks.update("shop", named("second"))["StackStatus"] == "UPDATE_COMPLETE"
    replacing = "Requested update requires the creation of a new physical resource; hence creating one."
    assert [event for event in stacks.events("shop") if event[0] == "Named"][3:] == [
        ("Named", "UPDATE_IN_PROGRESS", None),
        ("Named", "UPDATE_IN_PROGRESS", replacing),
        ("Named", "UPDATE_IN_PROGRESS", "Resource creation Initiated"),
        ("Named", "UPDATE_COMPLETE", None),
        ("Named", "DELETE_IN_PROGRESS", None),
        ("Named", "DELETE_COMPLETE", None),
    ]
    assert "first" not in stacks.queues()
    assert "second" in stacks.queues()


def test_a_failed_creation_is_rolled_back(stacks: Stacks) -> None:
    template = named("first", Broken={**BROKEN, "DependsOn": "Knows"})
    stack = stacks.create("shop", template)
    assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
    assert stacks.queues() == set()
    events = stacks.events("shop")
    reason = next(
        reason for resource, status, reason in events if (resource, status) == ("Broken", "CREATE_FAILED")
    )
    assert reason is not None
    assert reason.startswith('Resource handler returned message: "')
    assert "(Service: Sqs, Status Code: 400, Request ID: " in reason
    assert reason.endswith("HandlerErrorCode: InvalidRequest)")
    rolled = "The following resource(s) failed to create: [Broken]. Rollback requested by user."
    assert ("shop", "ROLLBACK_IN_PROGRESS", rolled) in events
    refused = stacks.refused("update_stack", StackName="shop", TemplateBody=json.dumps(template))
    assert refused[1].startswith(
        f"Stack:{stack['StackId']} is in ROLLBACK_COMPLETE state and can not be updated."
    )
    assert stacks.delete(stack)["StackStatus"] == "DELETE_COMPLETE"


def test_a_failed_creation_stays_or_goes_as_its_caller_wants(stacks: Stacks) -> None:
    stays = stacks.create("stays", named("first", Broken=BROKEN), DisableRollback=True)
    assert (stays["StackStatus"], "first" in stacks.queues()) == ("CREATE_FAILED", True)
    stacks.client.rollback_stack(StackName="stays")
    assert (stacks.ended("stays")["StackStatus"], stacks.queues()) == ("ROLLBACK_COMPLETE", set())
    goes = stacks.create("goes", named("second", Broken=BROKEN), OnFailure="DELETE")
    assert (goes["StackStatus"], stacks.queues()) == ("DELETE_COMPLETE", set())


def test_a_failed_change_is_rolled_back(stacks: Stacks) -> None:
    stacks.create("shop", named("first"))
    before = stacks.queues()
    changed = named("second", New=queue(), Broken={**BROKEN, "DependsOn": ["Knows", "New"]})
    assert stacks.update("shop", changed)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.queues() == before
    url = next(url for url in stacks.sqs.list_queues()["QueueUrls"] if "Knows" in url)
    policy = stacks.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]
    assert policy["RedrivePolicy"].count(":first") == 1
    reason = "The following resource(s) failed to update: [Broken]. "
    assert ("shop", "UPDATE_ROLLBACK_IN_PROGRESS", reason) in stacks.events("shop")
    stack = stacks.update("shop", named("third"))
    assert stack["StackStatus"] == "UPDATE_COMPLETE"
    stacks.delete(stack)
    assert stacks.queues() == set()


def test_resources_that_are_taken_out_are_removed_or_kept(stacks: Stacks) -> None:
    kept = {**queue(QueueName="kept"), "DeletionPolicy": "Retain"}
    stacks.create("shop", named("first", Goes=queue(QueueName="goes"), Kept=kept))
    stack = stacks.update("shop", named("first"))
    assert stack["StackStatus"] == "UPDATE_COMPLETE"
    assert {"goes", "kept"} & stacks.queues() == {"kept"}
    assert stacks.statuses("shop", "Kept")[-1] == "DELETE_SKIPPED"
    stacks.delete(stack)
    assert stacks.queues() == {"kept"}


def test_a_name_that_is_taken_is_left_alone(stacks: Stacks) -> None:
    stacks.sqs.create_queue(QueueName="first")
    stack = stacks.create("shop", named("first"))
    assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
    assert stacks.queues() == {"first"}
    reason = next(reason for _, status, reason in stacks.events("shop") if status == "CREATE_FAILED")
    assert "Resource of type 'AWS::SQS::Queue' with identifier 'first' already exists." in str(reason)


def test_protected_stacks_cannot_be_deleted(stacks: Stacks) -> None:
    stacks.create("shop", named("first"), EnableTerminationProtection=True)
    assert stacks.refused("delete_stack", StackName="shop") == (
        "ValidationError",
        "Stack [shop] cannot be deleted while TerminationProtection is enabled",
    )
    stacks.client.update_termination_protection(StackName="shop", EnableTerminationProtection=False)
    stacks.client.delete_stack(StackName="shop")


def test_a_name_is_used_once_until_its_stack_is_deleted(stacks: Stacks) -> None:
    stack = stacks.create("shop", named("first"), ClientRequestToken="a")
    body = json.dumps(named("first"))
    assert stacks.refused("create_stack", StackName="shop", TemplateBody=body) == (
        "AlreadyExistsException",
        "Stack [shop] already exists",
    )
    again = stacks.client.create_stack(StackName="shop", TemplateBody=body, ClientRequestToken="a")
    assert again["StackId"] == stack["StackId"]
    stacks.delete(stack)
    assert stacks.create("shop", named("second"))["StackId"] != stack["StackId"]
