"""AWS STS: the identity of the caller, which Terraform, the CDK and most scripts ask for first."""

from collections.abc import Mapping

from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Call, Verb
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.aws.wire.shapes import Structure


class Identities:
    """Tells callers who they are."""

    async def get_caller_identity(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        """https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html; no policy forbids it."""
        return {"UserId": call.account, "Account": call.account, "Arn": call.principal.name}


class Sts:
    """STS, which keeps nothing."""

    def __init__(self) -> None:
        """Offer its operations."""
        self.operations: Mapping[str, Verb] = operations_of("sts", Identities())

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`; STS asks the engine nothing."""
        raise refusal
