"""The errors of CloudFormation, in its own words."""

from typing import Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.kit.paging import Pages
from redrive.aws.kit.tagging import Tagging
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError


def invalid(text: str) -> AwsError:
    """The refusal of what a caller gave, which CloudFormation words for itself."""
    return common("ValidationException", text)


def error(code: str, text: str) -> AwsError:
    """One of CloudFormation's own errors."""
    return Service.load("cloudformation").error(code, text)


def no_stack(name: str) -> AwsError:
    """The refusal of most operations for a stack that is not there; deployment tools know this sentence."""
    return invalid(f"Stack [{name}] does not exist")


def no_described_stack(name: str) -> AwsError:
    """The refusal of DescribeStacks for it."""
    return invalid(f"Stack with id {name} does not exist")


def translated(refusal: RedriveError) -> AwsError:
    """Translates a refusal of the language of templates; of the engine nothing is asked that it refuses."""
    if isinstance(refusal, TemplateInvalid):
        return invalid(str(refusal))
    raise refusal


PAGES: Final = Pages("cloudformation", lambda _: invalid("NextToken is invalid."))
TAGS: Final = Tagging(
    too_many=lambda: invalid("A stack has at most 50 tags."),  # chosen; the published model bounds them first
    duplicate=lambda: invalid("Duplicate tag keys found."),
    reserved=lambda _: invalid("aws: prefixed tag key names are not allowed for external use."),
)
