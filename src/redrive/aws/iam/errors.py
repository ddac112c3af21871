"""IAM's errors, in the words that were recorded."""

from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.kit.tagging import Tagging
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import Conflict, RedriveError, StoreUnavailable


def error(code: str, message: str) -> AwsError:
    """One of IAM's errors; see `Service.error`."""
    return Service.load("iam").error(code, message)


def invalid(message: str) -> AwsError:
    """A parameter's value is not acceptable."""
    return common("ValidationException", message)


def bad_input(message: str) -> AwsError:
    """A parameter's value is not acceptable, of those that the model does not describe."""
    return error("InvalidInput", message)


def absent(message: str) -> AwsError:
    """The error for something that is not there."""
    return error("NoSuchEntity", message)


def taken(message: str) -> AwsError:
    """The error for a name that something has already."""
    return error("EntityAlreadyExists", message)


def in_use(message: str) -> AwsError:
    """The error for something that cannot be deleted as it is."""
    return error("DeleteConflict", message)


def too_many(message: str) -> AwsError:
    """The error for more than a quota allows."""
    return error("LimitExceeded", message)


def malformed(message: str) -> AwsError:
    """The error for a policy document that cannot be read."""
    return error("MalformedPolicyDocument", message)


def denied(principal: str, action: str, arn: str, reason: str) -> AwsError:
    """The error for an action that the caller has no permission for."""
    return common(
        "AccessDeniedException",
        f"User: {principal} is not authorized to perform: {action} on resource: {arn} {reason}",
    )


def translated(refusal: RedriveError) -> AwsError:
    """Translates a refusal of the engine into the error that IAM has for it."""
    if isinstance(refusal, StoreUnavailable):
        return error("ServiceFailure", "The request processing has failed because of an unknown error.")
    if isinstance(refusal, Conflict):
        return error("ConcurrentModification", "It was changed by another request at the same moment.")
    raise refusal


PAGES: Final = Pages("iam", lambda token: invalid(f"Invalid Marker: {token}"))
TAGS: Final = Tagging(
    too_many=lambda: too_many("Cannot exceed quota for TagsPerResource: 50"),
    duplicate=lambda: bad_input("Duplicate tag keys found. Please note that Tag keys are case insensitive."),
    reserved=lambda _: bad_input("Tag keys that begin with aws: are reserved for system use."),
    any_case=True,
    pages=PAGES,
)
