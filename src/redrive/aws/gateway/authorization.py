"""Authorisation by callers' own policies, of operations about which no resource's policy is asked.

A facade asks the policy of a resource that it finds, and the caller's own with it (`Call.may`). All else is asked here,
before the facade is called: it says what an operation is about (`Facade.scopes`).
"""

from collections.abc import Mapping
from typing import Final

from redrive.access.patterns import Values
from redrive.aws.kit.call import Call, Facade, ResourceScope
from redrive.aws.kit.refusals import not_authorized
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.profiles import profile_of
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Structure

_NO_KEYS: Final[Mapping[str, Values]] = {}


async def check_own_policies(
    call: Call, facade: Facade, service: str, operation: str, params: Structure
) -> None:
    """Refuse a user, a role or a service what its own policies do not allow, unless the facade asks about it.

    Args:
        call: The call.
        facade: The service.
        service: Botocore's name of it.
        operation: Of it.
        params: Its parameters, checked.

    Raises:
        AwsError: The service's own for a caller without permission.
    """
    if not call.principal.is_restricted:
        return
    action = facade.action(call, operation)
    for scope in await facade.scopes(call, operation, params):
        check_action(call, service, action, scope)


def check_action(
    call: Call, service: str, action: str, scope: ResourceScope, keys: Mapping[str, Values] = _NO_KEYS
) -> None:
    """Refuse a caller whose own policies do not allow an action.

    Args:
        call: The caller's.
        service: Whose error it is.
        action: `iam:PassRole`.
        scope: What the action is about, which is the caller's account's.
        keys: The condition keys that the action has of its own.

    Raises:
        AwsError: The service's own for a caller without permission.
    """
    decision = call.decide_own(action, scope, keys)
    if not decision.allowed:
        raise denied(service, not_authorized(call.principal.name, action, scope.arn, decision.reason(action)))


def denied(service: str, text: str) -> AwsError:
    """A service's own error for a caller without permission."""
    return Service.load(service).error(profile_of(service).denied, text)
