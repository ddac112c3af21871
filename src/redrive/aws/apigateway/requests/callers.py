"""Callers of services on behalf of APIs: the role of an integration, or API Gateway itself."""

from redrive.access.principals import Principal, acting_for
from redrive.aws.apigateway.control.exchange import Exchange
from redrive.aws.apigateway.control.gateway_responses import Refusal
from redrive.aws.apigateway.control.roles import CALLERS_OWN, SERVICE
from redrive.aws.gateway.service_roles import ServiceRoles


class Callers:
    """Makes callers of the credentials of integrations."""

    def __init__(self, roles: ServiceRoles, *, open_functions: bool) -> None:
        """Make them.

        Args:
            roles: Those of integrations.
            open_functions: Whether what has no policy lets APIs of its own account in.
        """
        self._roles = roles
        self._open_functions = open_functions

    async def of(self, exchange: Exchange, credentials: str | None, arn: str) -> Principal:
        """The principal that a call of an integration or of an authorizer is made by.

        Args:
            exchange: The request.
            credentials: A role's ARN, or what stands for the caller's own; none: neither.
            arn: Of what calls: the method or the authorizer.

        Raises:
            Refusal: The role cannot be assumed, or there is no caller.
        """
        api_place = exchange.place
        if not credentials:
            return acting_for(
                SERVICE, api_place.region, arn, api_place.account, for_owner=self._open_functions
            )
        if credentials == CALLERS_OWN:
            if exchange.caller is None or exchange.caller.account != exchange.place.account:
                raise Refusal(
                    "API_CONFIGURATION_ERROR",
                    reason="The method has no caller of its own account whose credentials it could use",
                )
            return exchange.caller
        if not await self._roles.may_act(api_place.account, credentials, api_place.region):
            raise Refusal(
                "API_CONFIGURATION_ERROR", reason=f"API Gateway cannot assume the role {credentials}"
            )
        return await self._roles.acting(api_place.account, credentials, api_place.region)
