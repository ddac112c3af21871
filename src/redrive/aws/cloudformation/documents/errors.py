"""The errors of CloudFormation, in its own words."""

from typing import Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, translator
from redrive.aws.kit.tagging import Tagging
from redrive.aws.wire.errors import AwsError, common


def invalid(text: str) -> AwsError:
    """The refusal of an argument, in words of CloudFormation's own."""
    return common("ValidationException", text)


error: Final = errors_of("cloudformation")


def no_stack(name: str) -> AwsError:
    """The refusal of most operations for a stack that is not there; deployment tools know this sentence."""
    return invalid(f"Stack [{name}] does not exist")


def no_described_stack(name: str) -> AwsError:
    """The refusal of DescribeStacks for a stack that is not there."""
    return invalid(f"Stack with id {name} does not exist")


translated: Final = translator((TemplateInvalid, lambda refusal: invalid(str(refusal))))


PAGES: Final = Pages("cloudformation", lambda _: invalid("NextToken is invalid."))
TAGS: Final = Tagging(
    too_many=lambda: invalid("A stack has at most 50 tags."),  # chosen; the published model bounds them first
    duplicate=lambda: invalid("Duplicate tag keys found."),
    reserved=lambda _: invalid("aws: prefixed tag key names are not allowed for external use."),
)
