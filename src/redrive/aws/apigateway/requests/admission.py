"""Admission to methods (signatures, the API's policy, required parameters), and whom an integration is called as."""

import re
from collections.abc import Mapping
from typing import Any, Final

from redrive.access.principals import ANONYMOUS, Principal, acting_for
from redrive.aws.apigateway.control.apis import CALLERS_OWN, SERVICE
from redrive.aws.apigateway.control.exchange import Exchange, Refusal
from redrive.aws.apigateway.control.records import ApiDeployment
from redrive.aws.apigateway.control.schemas import Unfit, check_body
from redrive.aws.gateway.authentication import Authentication
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.kit.call import Call
from redrive.aws.kit.hash_order import hash_order
from redrive.aws.kit.offloading import within_budget
from redrive.aws.kit.refusals import not_authorized
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.model.budget import OverBudgetError
from redrive.model.http import Request

ACTION: Final = "execute-api:Invoke"
SIGNED: Final = "AWS_IAM"
_SERVICE: Final = "execute-api"
_REFUSALS: Final = {
    "InvalidSignatureException": "INVALID_SIGNATURE",
    "ExpiredTokenException": "EXPIRED_TOKEN",
}
#: What may stand before the resource in a policy of an API: its own ARN, or nothing at all.
_SHORT: Final = re.compile(r'"execute-api:/')


async def signer(authentication: Authentication, request: Request) -> Principal:
    """The principal who signed a request.

    Raises:
        Refusal: Nobody did, or nobody who is known.
    """
    if credential_scope(request) is None:
        raise Refusal("MISSING_AUTHENTICATION_TOKEN")
    try:
        caller = await authentication.caller(request, _SERVICE)
    except AwsError as error:
        kind = _REFUSALS.get(error.code, "ACCESS_DENIED")
        raise Refusal(kind, message=error.message if kind == "ACCESS_DENIED" else "") from None
    return caller.principal


def check_policies(exchange: Exchange, policy: str | None, *, signed: bool) -> None:
    """Refuse a caller whom its own policies, or the API's (None: it has none), do not allow.

    - `signed`: the method is for signed requests alone.

    Raises:
        Refusal: `ACCESS_DENIED`.
    """
    if not signed and not policy:
        return
    api_place, caller = exchange.place, exchange.caller or ANONYMOUS
    arn = api_place.arn(exchange.request.method, exchange.path)
    text = None
    if policy:
        own = f'"arn:aws:execute-api:{api_place.region}:{api_place.account}:{api_place.api}/'
        text = _SHORT.sub(own, policy)
    request = exchange.request
    call = Call(
        request, caller, api_place.region, exchange.now, exchange.id, f"{request.scheme}://{request.host}"
    )
    decision = call.decide(ACTION, arn, api_place.account, text)
    if not decision.allowed:
        hidden = re.sub(r":\d{8}(\d{4}):", r":********\1:", arn)
        name = "anonymous" if exchange.caller is None else caller.name
        raise Refusal("ACCESS_DENIED", message=not_authorized(name, ACTION, hidden, decision.reason(ACTION)))


async def check_request(exchange: Exchange, method: Mapping[str, Any], deployment: ApiDeployment) -> None:
    """Refuse a request that lacks what its method's validator looks for.

    Raises:
        Refusal: `BAD_REQUEST_PARAMETERS`, `BAD_REQUEST_BODY`, or `THROTTLED`.
    """
    validators = deployment.tree.get("validators") or {}
    validator = validators.get(method.get("requestValidatorId"))
    if validator is None:
        return
    if validator.get("validateRequestParameters"):
        declared = method.get("requestParameters") or {}
        missing = [name for name, required in declared.items() if required and not _is_given(exchange, name)]
        if missing:
            names = ", ".join(hash_order(name.rpartition(".")[2] for name in hash_order(missing)))
            raise Refusal("BAD_REQUEST_PARAMETERS", detail=names)
    if validator.get("validateRequestBody"):
        await _check_body(exchange, method, deployment)


def _is_given(exchange: Exchange, name: str) -> bool:
    kind, _, parameter = name.removeprefix("method.request.").partition(".")
    match kind:
        case "header":
            return bool(exchange.header(parameter))
        case "querystring":
            return any(exchange.query.get(parameter) or ())
        case _:
            return bool(exchange.parameters.get(parameter))


async def _check_body(exchange: Exchange, method: Mapping[str, Any], deployment: ApiDeployment) -> None:
    request_models = method.get("requestModels") or {}
    name = request_models.get(exchange.content_type) or request_models.get("$default")
    models = {
        key: model.get("schema") or "{}" for key, model in (deployment.tree.get("models") or {}).items()
    }
    if name is None or name not in models:
        return
    text, body = models[name], exchange.request.body
    try:
        await within_budget(exchange.place.account, lambda budget: check_body(text, body, models, budget))
    except AwsError:
        raise Refusal("THROTTLED") from None
    except OverBudgetError:
        raise Refusal("BAD_REQUEST_BODY", reason="the model takes too long to check") from None
    except Unfit as unfit:
        exchange.error["validationErrorString"] = f"[{unfit}]"
        raise Refusal("BAD_REQUEST_BODY", reason=str(unfit)) from None


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
        """The principal that calls an integration or an authorizer function.

        - `credentials`: the ARN of a role, or the mark of the caller's own credentials; None: neither.
        - `arn`: the calling method or authorizer.

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
