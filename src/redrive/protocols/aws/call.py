"""A call: one operation somebody asked for, with all that a facade may want to know of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from redrive.access.policy import AccessRequest, connection_keys, evaluate, request_keys
from redrive.access.policy_document import parse_policy
from redrive.access.principals import Principal
from redrive.model.delivery import Delivery
from redrive.model.errors import RedriveError
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.aws.wire.shapes import Structure
from redrive.protocols.http import Request


@dataclass(slots=True)
class Call:
    """One call: its caller, place and time.

    Attributes:
        request: As it came in.
        principal: The signer, or whoever is believed to be.
        region: The scope of the signature.
        now: When it came in (ms).
        id: The request id of its answer.
        base_url: What URLs in its answer begin with.
    """

    request: Request
    principal: Principal
    region: str
    now: int
    id: str
    base_url: str

    @property
    def account(self) -> str:
        """Twelve digits; what the caller names belongs to this account unless it says otherwise."""
        return self.principal.account

    def may(self, action: str, arn: str, owner: str, policy: str | None) -> bool:
        """Returns whether the caller may do something to a resource, by the resource's policy text and its owner."""
        if policy is None:
            return self.principal.account == owner
        connection = connection_keys(
            client_host=self.request.client_host, secure=self.request.scheme == "https", now=self.now
        )
        asked = AccessRequest(self.principal, action, arn, request_keys(connection))
        return evaluate(parse_policy(policy), asked, owner).allowed


# What came here from another service shows itself as that service words it: the body, and attributes in SQS's form.
# By the name of the envelope that the other service put into the delivery's headers.
Presenters = Mapping[str, Callable[[Delivery], tuple[str, Mapping[str, Any]]]]

Verb = Callable[[Call, Structure], Awaitable[Structure]]


class Facade(Protocol):
    """One AWS service: its operations under the vendor's own names."""

    @property
    def operations(self) -> Mapping[str, Verb]:
        """The operations that it offers."""
        ...

    def translated(self, refusal: RedriveError) -> AwsError:
        """Translates a refusal of the engine into this service's error."""
        ...
