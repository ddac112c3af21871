"""`Fn::Transform` with `AWS::Include`: parts of templates that lie in buckets, in their places."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid, template_error
from redrive.aws.cloudformation.template.functions import scalar
from redrive.aws.cloudformation.template.scope import EvaluationScope

INCLUDE: Final = "AWS::Include"
TRANSFORM: Final = "Fn::Transform"
_LOCATION: Final = re.compile(r"s3://([^/]+)/(.+)")


def is_including(body: str) -> bool:
    """True if the text of a template may include parts: it has the function, in its long or its short form."""
    return TRANSFORM in body or "!Transform" in body


def locations_in(value: Any, scope: EvaluationScope) -> Iterator[str]:
    """The addresses of the parts that a template includes, some of them twice.

    Raises:
        TemplateInvalid: It asks for another transform, or says of one no address.
    """
    scope.spend(1)
    if isinstance(value, Mapping):
        for key, child in value.items():
            if key == TRANSFORM:
                yield _location(child, scope)
            else:
                yield from locations_in(child, scope)
    elif isinstance(value, list):
        for child in value:
            yield from locations_in(child, scope)


def with_parts(value: Any, scope: EvaluationScope, parts: Mapping[str, Any]) -> Any:
    """Returns a value with the parts that it includes: in its place, or merged into the object where they stand.

    Args:
        value: Of a template.
        scope: Its parameters and mappings.
        parts: As they were read, by their addresses. They include nothing themselves.

    Raises:
        TemplateInvalid: An object cannot have a part that is none, or all of them are more than a template may have.
    """
    scope.spend(1)
    if isinstance(value, list):
        return [with_parts(child, scope, parts) for child in value]
    if not isinstance(value, Mapping):
        return value
    others = {key: with_parts(child, scope, parts) for key, child in value.items() if key != TRANSFORM}
    if TRANSFORM not in value:
        return others
    part = parts[_location(value[TRANSFORM], scope)]
    scope.spend_value(part)
    if not others:
        return part
    if not isinstance(part, Mapping):
        raise include_failure("What is included beside other members must be an object.")
    return {**part, **others}


def bucket_and_key_of(location: str) -> tuple[str, str]:
    """The bucket and the key of a part's address.

    Raises:
        TemplateInvalid: It is no address of an object.
    """
    match = _LOCATION.fullmatch(location)
    if match is None:
        raise include_failure("The location parameter is not a valid S3 uri.")
    return match[1], match[2]


def include_failure(why: str) -> TemplateInvalid:
    """The refusal of a template whose parts cannot be included."""
    return TemplateInvalid(f"Transform {INCLUDE} failed with: {why}")


def _location(transform: Any, scope: EvaluationScope) -> str:
    match transform:
        case {"Name": "AWS::Include", "Parameters": {"Location": location}}:
            return scalar(location, scope, "Location")
        case {"Name": "AWS::Include"}:
            raise include_failure("The location parameter is not a valid S3 uri.")
        case {"Name": str(name)}:
            raise TemplateInvalid(f"No transform named {name} found.")
    raise template_error("every Fn::Transform object requires a Name, and Parameters.")
