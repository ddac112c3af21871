"""Types of CloudFormation itself: custom resources, nested stacks, wait conditions, and what the CDK adds to templates.

A custom resource is created by a function, or by a subscriber of a topic, that responds to a URL of this server.
"""

from collections.abc import Mapping
from typing import Any, Final
from zlib import crc32

import orjson
from typing_extensions import override

from redrive.aws.cloudformation.documents.records import Stack
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.calls import Ask, ResourceSpec, ResourceState, tag_list, unless_created
from redrive.aws.cloudformation.types.resource_type import Factory, PutResourceType, ResourceType
from redrive.aws.wire.errors import AwsError
from redrive.model.durations import HOUR_MS

_TIMEOUT_SECONDS: Final = 3600


class CustomResourceType(ResourceType):
    """`AWS::CloudFormation::CustomResource` and `Custom::…`; the response has its id."""

    name_chars_max = 0
    waits = True

    @override
    def create_only_names(self, changed_names: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:
        if "ServiceToken" in changed_names:
            raise TemplateInvalid("Modifying service token is not allowed.")
        return frozenset()

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        return await self._request(ask, spec, "Create", {})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        members = {"PhysicalResourceId": spec.physical_id, "OldResourceProperties": _texts(before)}
        return await self._request(ask, spec, "Update", members)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        try:
            await self._request(ask, spec, "Delete", {"PhysicalResourceId": spec.physical_id})
        except AwsError as error:
            # A function that was deleted leaves nothing behind.
            if error.code != "ResourceNotFoundException":
                raise

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return ""

    async def _request(
        self, ask: Ask, spec: ResourceSpec, kind: str, members: Mapping[str, Any]
    ) -> ResourceState:
        """Send a request to the provider, and wait for its answer; raises TemplateInvalid if that fails or is late."""
        signals, token = spec.signals, spec.properties.get("ServiceToken")
        if not isinstance(token, str):
            raise TemplateInvalid("Property validation failure: [The property {/ServiceToken} is required]")
        properties = _texts(spec.properties)
        # A rollback sends a request of its own; the same request, repeated after a crash, has the same id.
        checksum = crc32(orjson.dumps(properties, option=orjson.OPT_SORT_KEYS))
        request_id = f"{spec.change}-{kind}-{checksum:08x}"
        event = {
            "RequestType": kind,
            "ResponseURL": signals.url(spec.stack_id, spec.logical_id, request_id),
            "StackId": spec.stack_id,
            "RequestId": request_id,
            "LogicalResourceId": spec.logical_id,
            "ResourceType": spec.type,
            "ServiceToken": token,
            "ResourceProperties": properties,
            **members,
        }
        seconds = int(text_of(spec.properties.get("ServiceTimeout") or _TIMEOUT_SECONDS))
        is_answered = False
        if spec.may_exist:  # the answer to a request before an interruption may be there already
            is_answered = bool(await signals.wait(spec.stack_id, spec.logical_id, request_id, 1, deadline=0))
        else:
            await signals.forget(spec.stack_id, spec.logical_id, request_id)
        if not is_answered:
            await _send(ask, token, event)
        deadline = signals.now + seconds * 1000
        answers = await signals.wait(spec.stack_id, spec.logical_id, request_id, 1, deadline)
        if not answers:
            raise TemplateInvalid(
                "CloudFormation did not receive a response from your Custom Resource. Please check your logs for"
                f" requestId [{request_id}]."
            )
        return _outcome(spec, request_id, answers[0].answer)


async def _send(ask: Ask, token: str, event: Mapping[str, Any]) -> None:
    """Send the request for a resource; it is stored when this returns."""
    service = token.split(":")[2] if token.startswith("arn:") else "lambda"
    if service == "sns":
        request = {
            "Subject": "AWS CloudFormation custom resource request",
            "Message": orjson.dumps(event).decode(),
        }
        await ask("sns", "Publish", TopicArn=token, **request)
    else:
        payload = orjson.dumps(event)
        await ask("lambda", "Invoke", FunctionName=token, InvocationType="Event", Payload=payload)


def _outcome(spec: ResourceSpec, request_id: str, answer: Mapping[str, Any]) -> ResourceState:
    """The state after a provider's answer; raises TemplateInvalid if the provider failed."""
    if answer.get("Status") != "SUCCESS":
        raise TemplateInvalid(
            "Received response status [FAILED] from custom resource. Message returned:"
            f" {answer.get('Reason', '')} (RequestId: {request_id})"
        )
    data = answer.get("Data")
    physical_id = str(answer.get("PhysicalResourceId") or spec.physical_id)
    if not physical_id:
        raise TemplateInvalid("Invalid PhysicalResourceId")
    return ResourceState(physical_id, data if isinstance(data, dict) else {})


def _texts(value: Any) -> Any:
    """Properties as functions receive them: all values as text, also within objects and lists."""
    if isinstance(value, Mapping):
        return {key: _texts(child) for key, child in value.items()}
    return [_texts(child) for child in value] if isinstance(value, list) else text_of(value)


# ---- nested stacks --------------------------------------------------------------------------------------------------

_HOURS_MAX: Final = 12
_CAPABILITIES: Final = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_NOTHING_TO_DO: Final = "No updates are to be performed."


class NestedStackType(ResourceType):
    """`AWS::CloudFormation::Stack`; its id is the ARN of the nested stack."""

    service = "cloudformation"
    name_chars_max = 128
    waits = True

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = _stack_params(spec)
        creation = ask("cloudformation", "CreateStack", StackName=spec.name, OnFailure="DO_NOTHING", **params)
        answer = await unless_created(creation, spec, "AlreadyExistsException")
        arn = answer["StackId"] if answer else await self.find(ask, spec)
        await spec.signals.nest(arn, spec.stack_id)
        return await self._wait_for_end(spec, arn, "CREATE_COMPLETE", "created")

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        try:
            await ask("cloudformation", "UpdateStack", StackName=spec.physical_id, **_stack_params(spec))
        except AwsError as error:
            if error.message != _NOTHING_TO_DO:
                raise
            # It is as asked already, or on the way to it, or it rolled itself back to what a rollback asks for.
            stack = await spec.signals.wait_for_end(spec.physical_id, spec.signals.now + _HOURS_MAX * HOUR_MS)
            if stack is not None and stack.status == "UPDATE_ROLLBACK_COMPLETE":
                return ResourceState(spec.physical_id, spec.signals.outputs(stack))
        return await self._wait_for_end(spec, spec.physical_id, "UPDATE_COMPLETE", "updated")

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await ask("cloudformation", "DeleteStack", StackName=spec.physical_id)
        stack = await spec.signals.wait_for_end(spec.physical_id, spec.signals.now + _HOURS_MAX * HOUR_MS)
        if stack is not None and stack.status != "DELETE_COMPLETE":
            raise TemplateInvalid(
                f"Embedded stack {spec.physical_id} was not successfully deleted: {stack.reason}"
            )

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        """The ARN of the stack that an interrupted step created; empty: it created none."""
        try:
            answer = await ask("cloudformation", "DescribeStacks", StackName=spec.name)
        except AwsError:
            return ""
        return str(answer["Stacks"][0]["StackId"])

    async def _wait_for_end(self, spec: ResourceSpec, arn: str, status: str, verb: str) -> ResourceState:
        """Wait until a stack is complete; raises TemplateInvalid if it fails: it was not `verb` (`created`, …)."""
        signals = spec.signals
        minutes = int(text_of(spec.properties.get("TimeoutInMinutes") or 0))
        stack = await signals.wait_for_end(arn, signals.now + (minutes * 60_000 or _HOURS_MAX * HOUR_MS))
        if stack is None or stack.status not in (status, "CREATE_COMPLETE", "UPDATE_COMPLETE"):
            raise TemplateInvalid(_failure(arn, stack, verb))
        return ResourceState(arn, signals.outputs(stack))


def _failure(arn: str, stack: Stack | None, verb: str) -> str:
    reason = "it took too long" if stack is None else stack.reason
    return f"Embedded stack {arn} was not successfully {verb}: {reason}"


def _stack_params(spec: ResourceSpec) -> dict[str, Any]:
    values: Mapping[str, Any] = spec.properties.get("Parameters") or {}
    parameters = [
        {"ParameterKey": name, "ParameterValue": _parameter_text(value)} for name, value in values.items()
    ]
    return {
        "TemplateURL": spec.properties["TemplateURL"],
        "Parameters": parameters,
        "Tags": tag_list(spec.all_tags()),
        "NotificationARNs": spec.properties.get("NotificationARNs") or [],
        "Capabilities": _CAPABILITIES,
    }


def _parameter_text(value: Any) -> str:
    return ",".join(text_of(item) for item in value) if isinstance(value, list) else text_of(value)


# ---- wait conditions -------------------------------------------------------------------------------------------------


class WaitConditionHandleType(ResourceType):
    """`AWS::CloudFormation::WaitConditionHandle`; its id is the URL that signals are sent to."""

    name_chars_max = 0

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        address = spec.signals.url(spec.stack_id, spec.logical_id, spec.change)
        return ResourceState(address, {"Id": spec.name})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return ResourceState(spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        if target := spec.signals.target_of(spec.physical_id):
            _, _, subject = target
            await spec.signals.forget(spec.stack_id, spec.logical_id, subject)


class WaitConditionType(ResourceType):
    """`AWS::CloudFormation::WaitCondition`: waits for signals to its handle."""

    waits = True

    @override
    def create_only_names(self, changed_names: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:
        return changed_names & {"Handle"}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        signals, handle = spec.signals, spec.properties.get("Handle")
        if handle is None:  # it waits for SignalResource, as its CreationPolicy says
            return ResourceState(spec.name, {"Data": "{}"})
        target = signals.target_of(str(handle))
        if target is None:
            raise TemplateInvalid(f"Handle {handle} is not the URL of a wait condition handle.")
        _, handle_id, subject = target
        seconds = int(text_of(spec.properties.get("Timeout") or 0))
        count = int(text_of(spec.properties.get("Count") or 1))
        if not 0 < seconds <= _HOURS_MAX * 3600:
            raise TemplateInvalid("Property validation failure: [Timeout must be 1 to 43200 seconds]")
        deadline = signals.now + seconds * 1000
        answers = await signals.wait(spec.stack_id, handle_id, subject, count, deadline)
        failures = [signal for signal in answers if signal.status != "SUCCESS"]
        if failures:
            raise TemplateInvalid(
                f"WaitCondition received failed message: '{failures[0].answer.get('Reason', '')}'"
                f" for uniqueId: {failures[0].id}"
            )
        if len(answers) < count:
            raise TemplateInvalid(
                f"WaitCondition timed out. Received {len(answers)} conditions when expecting {count}"
            )
        data = {signal.id: signal.answer.get("Data", "") for signal in answers}
        physical_id = f"{spec.stack_id}/{handle_id}"  # with the name of the handle (recorded)
        return ResourceState(physical_id, {"Data": orjson.dumps(data).decode()})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return ResourceState(spec.physical_id, {"Data": "{}"})


class MetadataType(ResourceType):
    """`AWS::CDK::Metadata`, which the CDK adds to each template and which has no effect here."""

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        return ResourceState(spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return ResourceState(spec.physical_id)


class ImageRepositoryType(PutResourceType):
    """`AWS::ECR::Repository`, which the CDK needs to bootstrap an account: a name, without images."""

    name_property = "RepositoryName"
    name_chars_max = 256
    lower_case = True

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        host = f"{spec.stack.account}.dkr.ecr.{spec.stack.region}.amazonaws.com"
        arn = spec.arn("ecr", f"repository/{spec.name}")
        return ResourceState(spec.name, {"Arn": arn, "RepositoryUri": f"{host}/{spec.name}"})


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::CDK::Metadata": MetadataType,
    "AWS::CloudFormation::CustomResource": CustomResourceType,
    "AWS::CloudFormation::Stack": NestedStackType,
    "AWS::CloudFormation::WaitCondition": WaitConditionType,
    "AWS::CloudFormation::WaitConditionHandle": WaitConditionHandleType,
    "AWS::ECR::Repository": ImageRepositoryType,
    "Custom::": CustomResourceType,
}
