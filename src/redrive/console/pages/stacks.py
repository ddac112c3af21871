"""Stacks: listed, one with its resources, events, outputs and template, its drift, and its deletion."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.wire.errors import AwsError
from redrive.console import json_text, links
from redrive.console.visit import REFUSED, Missing, Page, Redirect, Visit

EVENTS_SHOWN: Final = 20
REASONS_MAX: Final = 3  # stacks of a page whose events are read for the reason of their failure
_GONE: Final = "DELETE_COMPLETE"
#: What a resource's service said, within what CloudFormation makes of it for who asks its support.
_SAID: Final = re.compile(
    r'Resource handler returned message: "(.*?)(?: \(Service: [^"]*\))?" \(RequestToken: ', re.DOTALL
)


async def listing(visit: Visit) -> Page:
    """Stacks, the newest first, without those that are deleted unless they are asked for."""
    deleted, after = visit.parameter("deleted") == "yes", visit.parameter("after")
    answer = await visit.call("cloudformation", "ListStacks", {"NextToken": after} if after else {})
    stacks = [stack for stack in answer["StackSummaries"] if deleted or stack["StackStatus"] != _GONE]
    filters = {"deleted": "yes" if deleted else ""}
    more = answer.get("NextToken")
    stacks.sort(key=lambda stack: not _is_troubled(stack))
    reasons = {stack["StackId"]: await _reason(visit, stack) for stack in stacks[:REASONS_MAX]}
    values = {
        "rows": [
            {
                "stack": stack,
                "reason": reasons.get(stack["StackId"]) or stack.get("StackStatusReason", ""),
                "link": "" if stack["StackStatus"] == _GONE else visit.link("stacks", stack["StackName"]),
            }
            for stack in stacks
        ],
        "deleted": deleted,
        "turned": visit.link("stacks", deleted="" if deleted else "yes"),
        "first": visit.link("stacks", **filters) if after else "",
        "next": visit.link("stacks", **filters, after=more) if more else "",
    }
    return Page("stacks.html", values, live_seconds=5)


def _is_troubled(stack: Mapping[str, Any]) -> bool:
    return "ROLLBACK" in stack["StackStatus"] or stack["StackStatus"].endswith("FAILED")


async def _reason(visit: Visit, stack: Mapping[str, Any]) -> str:
    """The reason that a stack failed or was rolled back for, which its own record does not always say."""
    if not _is_troubled(stack):
        return ""
    events = await visit.call("cloudformation", "DescribeStackEvents", {"StackName": stack["StackId"]})
    failure = _failure(stack, events["StackEvents"])
    return (
        ""
        if failure is None
        else f"{failure['LogicalResourceId']}: {own_words(failure['ResourceStatusReason'])}"
    )


def own_words(reason: str) -> str:
    """The words of a resource's service in the reason of an event; the whole reason where there are no such words."""
    match = _SAID.match(reason)
    return match[1] if match else reason


async def one(visit: Visit) -> Page:
    """A stack: its resources with links to their pages, its newest events, outputs and parameters."""
    stack = await _stack(visit)
    name = stack["StackName"]
    resources = await visit.call("cloudformation", "ListStackResources", {"StackName": name})
    events = await visit.call("cloudformation", "DescribeStackEvents", {"StackName": name})
    values = {
        "stack": stack,
        "drift": stack["DriftInformation"],
        "resources": [_resource(visit, resource) for resource in resources["StackResourceSummaries"]],
        "more_resources": bool(resources.get("NextToken")),
        "failure": _failure(stack, events["StackEvents"]),
        "own_words": own_words,
        "events": events["StackEvents"][:EVENTS_SHOWN],
        "more_events": len(events["StackEvents"]) > EVENTS_SHOWN,
        "parameters": _parameters(visit, stack),
        "template": visit.link("stacks", name, "template"),
        "detect": visit.link("stacks", name, "drift"),
        "delete": visit.link("stacks", name, "delete"),
        "back": visit.link("stacks"),
    }
    return Page("stack.html", values, live_seconds=2 if stack["StackStatus"].endswith("PROGRESS") else 10)


def _failure(stack: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The event that a stack failed or was rolled back by, which is the earliest failure of its last change."""
    if not _is_troubled(stack):
        return None
    failures = [each for each in events if each["ResourceStatus"].endswith("_FAILED")]
    return next((each for each in reversed(failures) if each.get("ResourceStatusReason")), None)


async def template(visit: Visit) -> Page:
    """The template of a stack, as it was given."""
    stack = await _stack(visit)
    answer = await visit.call("cloudformation", "GetTemplate", {"StackName": stack["StackName"]})
    body = answer["TemplateBody"]
    text = body if isinstance(body, str) else str(body)
    values = {
        "name": stack["StackName"],
        "body": (json_text.pretty(text) or text) if visit.bodies_shown else None,
        "back": visit.link("stacks", stack["StackName"]),
    }
    return Page("stack_template.html", values)


async def detect_drift(visit: Visit) -> Redirect:
    """Compare the resources of a stack with what its template says."""
    name = visit.args["stack"]
    detection = await visit.call("cloudformation", "DetectStackDrift", {"StackName": name})
    answer = await visit.call(
        "cloudformation",
        "DescribeStackDriftDetectionStatus",
        {"StackDriftDetectionId": detection["StackDriftDetectionId"]},
    )
    drifted_count = answer["DriftedStackResourceCount"]
    resources = "1 resource has" if drifted_count == 1 else f"{drifted_count} resources have"
    sentence = f"{resources} drifted" if drifted_count else "Every resource is as its template says"
    return Redirect(visit.link("stacks", name), sentence=sentence)


async def delete_form(visit: Visit) -> Page:
    """The resources that go with a stack: asked before it is done."""
    return await _delete_page(visit, "")


async def delete(visit: Visit) -> Page | Redirect:
    """Delete a stack whose name was typed."""
    name = visit.args["stack"]
    if visit.parameter("typed").strip() != name:
        return await _delete_page(visit, f"Type {name} to delete it: nothing was done.", REFUSED)
    try:
        await visit.call("cloudformation", "DeleteStack", {"StackName": name})
    except AwsError as error:
        return await _delete_page(visit, error.message, REFUSED)
    return Redirect(visit.link("stacks"), sentence=f"{name} is being deleted")


async def _delete_page(visit: Visit, notice: str, status: int = 200) -> Page:
    """The page that asks for a stack's name before it is deleted, with the reason that it was not (`notice`)."""
    stack = await _stack(visit)
    resources = await visit.call("cloudformation", "ListStackResources", {"StackName": stack["StackName"]})
    values = {
        "stack": stack,
        "resources": [_resource(visit, resource) for resource in resources["StackResourceSummaries"]],
        "notice": notice,
        "back": visit.link("stacks", stack["StackName"]),
    }
    return Page("stack_delete.html", values, status)


async def _stack(visit: Visit) -> Mapping[str, Any]:
    """The stack that the address names; raises Missing if there is none."""
    name = visit.args["stack"]
    try:
        answer = await visit.call("cloudformation", "DescribeStacks", {"StackName": name})
    except AwsError as error:
        raise Missing(error.message) from None
    stack: Mapping[str, Any] = answer["Stacks"][0]
    return stack


def _resource(visit: Visit, resource: Mapping[str, Any]) -> dict[str, Any]:
    """A resource of a stack, with its drift and a link to its page unless it is gone."""
    physical = resource.get("PhysicalResourceId", "")
    here = links.of_resource(visit, resource["ResourceType"], physical)
    return {
        "resource": resource,
        "physical": physical,
        "here": here._replace(link="") if resource["ResourceStatus"] == _GONE else here,
        "drift": resource["DriftInformation"]["StackResourceDriftStatus"],
    }


def _parameters(visit: Visit, stack: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """The parameters of a stack; their values None where bodies are hidden: they are as secret."""
    return [
        (each["ParameterKey"], each.get("ParameterValue", "") if visit.bodies_shown else None)
        for each in stack.get("Parameters", ())
    ]
