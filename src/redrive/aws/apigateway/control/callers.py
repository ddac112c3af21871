"""Callers of services on behalf of APIs: the role of an integration, or API Gateway itself."""

from typing import Final

from redrive.access.principals import Principal, acting_for
from redrive.access.session_tokens import Session
from redrive.aws.apigateway.control.exchange import Exchange
from redrive.aws.apigateway.control.gateway_responses import Refusal
from redrive.aws.gateway.identities import Identities

_SESSION: Final = "BackplaneAssumeRoleSession"  # as Amazon's calls it
_SERVICE: Final = "apigateway"
#: Credentials that stand for the caller's own.
_CALLERS_OWN: Final = "arn:aws:iam::*:user/*"


class Callers:
    """Makes callers of the credentials of integrations."""

    def __init__(self, identities: Identities, *, open_functions: bool) -> None:
        """Make them.

        Args:
            identities: Finds roles.
            open_functions: Whether what has no policy lets APIs of its own account in.
        """
        self._identities = identities
        self._open_functions = open_functions

    async def of(self, exchange: Exchange, credentials: str | None, method: str, path: str) -> Principal:
        """The principal that an integration's call is made by.

        Args:
            exchange: The request.
            credentials: A role's ARN, or what stands for the caller's own; None: neither.
            method: For the ARN of what calls: of the method.
            path: Of the resource.

        Raises:
            Refusal: The role cannot be assumed, or there is no caller.
        """
        place = exchange.place
        if not credentials:
            arn = place.arn(method, path)
            return acting_for(_SERVICE, place.region, arn, place.account, for_owner=self._open_functions)
        if credentials == _CALLERS_OWN:
            if exchange.caller is None:
                raise Refusal(
                    "API_CONFIGURATION_ERROR",
                    reason="The method has no caller whose credentials it could use",
                )
            return exchange.caller
        if not self._identities.restricts:
            return await self._identities.acting(place.account, "", credentials)
        role = await self._identities.role(credentials)
        if role is None or not self._identities.trusts(role, _SERVICE, place.region):
            raise Refusal(
                "API_CONFIGURATION_ERROR", reason=f"API Gateway cannot assume the role {credentials}"
            )
        session = Session(account=role.account, role=role.arn, unique_id=role.id, name=_SESSION)
        caller = await self._identities.session(session)
        if caller is None:
            raise Refusal("API_CONFIGURATION_ERROR", reason=f"The role {credentials} is not there")
        return caller
