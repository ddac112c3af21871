"""IAM's errors, in the words that were recorded."""

from functools import partial
from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, not_authorized, translator
from redrive.aws.kit.tagging import Tagging
from redrive.aws.wire.errors import AwsError, common
from redrive.model.errors import Conflict, StoreUnavailable

error: Final = errors_of("iam")


#: A parameter's value is not acceptable.
invalid: Final = partial(common, "ValidationException")
#: A parameter's value is not acceptable, of those that the model does not describe.
bad_input: Final = partial(error, "InvalidInput")
#: The error for something that is not there.
absent: Final = partial(error, "NoSuchEntity")
#: The error for a name that something has already.
taken: Final = partial(error, "EntityAlreadyExists")
#: The error for something that cannot be deleted as it is.
in_use: Final = partial(error, "DeleteConflict")
#: The error for what its service alone may change.
unmodifiable: Final = partial(error, "UnmodifiableEntity")
#: The error for more than a quota allows.
too_many: Final = partial(error, "LimitExceeded")
#: The error for a policy document that cannot be read.
malformed: Final = partial(error, "MalformedPolicyDocument")


def denied(principal: str, action: str, arn: str, reason: str) -> AwsError:
    """The error for an action that the caller has no permission for."""
    return common("AccessDeniedException", not_authorized(principal, action, arn, reason))


translated: Final = translator(
    (
        StoreUnavailable,
        lambda _: error("ServiceFailure", "The request processing has failed because of an unknown error."),
    ),
    (
        Conflict,
        lambda _: error("ConcurrentModification", "It was changed by another request at the same time."),
    ),
)


PAGES: Final = Pages("iam", lambda token: invalid(f"Invalid Marker: {token}"))
TAGS: Final = Tagging(
    too_many=lambda: too_many("Cannot exceed quota for TagsPerResource: 50"),
    duplicate=lambda: bad_input("Duplicate tag keys found. Please note that Tag keys are case insensitive."),
    reserved=lambda _: bad_input("Tag keys that begin with aws: are reserved for system use."),
    any_case=True,
    pages=PAGES,
)
