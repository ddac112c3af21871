"""Custom resources: made by a function, or by whoever hears a topic, who answers by an address of this server."""

from collections.abc import Mapping
from typing import Any, Final
from zlib import crc32

import orjson
from typing_extensions import override

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
)
from redrive.aws.wire.errors import AwsError

_SECONDS: Final = 3600


class CustomResourceType(ResourceType):
    """`AWS::CloudFormation::CustomResource` and `Custom::…`; its id is what the answer says."""

    name_chars_max = 0
    waits = True

    @override
    def replacing(self, changed: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:
        if "ServiceToken" in changed:
            raise TemplateInvalid("Modifying service token is not allowed.")
        return frozenset()

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        return await self._request(ask, spec, "Create", {})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        more = {"PhysicalResourceId": spec.physical_id, "OldResourceProperties": _texts(before)}
        return await self._request(ask, spec, "Update", more)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        try:
            await self._request(ask, spec, "Delete", {"PhysicalResourceId": spec.physical_id})
        except AwsError as error:
            # A function that is gone makes nothing that could stay.
            if error.code != "ResourceNotFoundException":
                raise

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return ""

    async def _request(
        self, ask: Ask, spec: ResourceSpec, request: str, more: Mapping[str, Any]
    ) -> ResourceState:
        words, token = spec.words, spec.properties.get("ServiceToken")
        if not isinstance(token, str):
            raise TemplateInvalid("Property validation failure: [The property {/ServiceToken} is required]")
        properties = _texts(spec.properties)
        # The way back of a change is a request of its own; the same request again, after a crash, is the same.
        mark = crc32(orjson.dumps(properties, option=orjson.OPT_SORT_KEYS))
        about = f"{spec.change}-{request}-{mark:08x}"
        event = {
            "RequestType": request,
            "ResponseURL": words.address(spec.stack_id, spec.logical_id, about),
            "StackId": spec.stack_id,
            "RequestId": about,
            "LogicalResourceId": spec.logical_id,
            "ResourceType": spec.type,
            "ServiceToken": token,
            "ResourceProperties": properties,
            **more,
        }
        seconds = int(text_of(spec.properties.get("ServiceTimeout") or _SECONDS))
        if not spec.again:
            await words.forget(spec.stack_id, spec.logical_id, about)
        if not (spec.again and await words.told(spec.stack_id, spec.logical_id, about, 1, 0)):
            await _send(ask, token, event)
        deadline = words.now + seconds * 1000
        answer = await words.told(spec.stack_id, spec.logical_id, about, 1, deadline)
        if not answer:
            raise TemplateInvalid(
                "CloudFormation did not receive a response from your Custom Resource. Please check your logs for"
                f" requestId [{about}]."
            )
        return _answered(spec, about, answer[0].answer)


async def _send(ask: Ask, token: str, event: Mapping[str, Any]) -> None:
    """Ask for the resource; the request is on disk when this returns."""
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


def _answered(spec: ResourceSpec, about: str, answer: Mapping[str, Any]) -> ResourceState:
    if answer.get("Status") != "SUCCESS":
        raise TemplateInvalid(
            "Received response status [FAILED] from custom resource. Message returned:"
            f" {answer.get('Reason', '')} (RequestId: {about})"
        )
    data = answer.get("Data")
    physical_id = str(answer.get("PhysicalResourceId") or spec.physical_id)
    if not physical_id:
        raise TemplateInvalid("Invalid PhysicalResourceId")
    return ResourceState(physical_id, data if isinstance(data, dict) else {})


def _texts(value: Any) -> Any:
    """Returns properties as functions get them: all that is no object or list as a text."""
    if isinstance(value, Mapping):
        return {key: _texts(child) for key, child in value.items()}
    return [_texts(child) for child in value] if isinstance(value, list) else text_of(value)


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::CloudFormation::CustomResource": CustomResourceType,
    "Custom::": CustomResourceType,
}
