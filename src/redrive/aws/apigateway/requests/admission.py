"""Admission of requests: signatures, policies, parameters, keys, rates and quotas; and the caller of an integration."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.access.principals import ANONYMOUS, Principal, service_acting_for
from redrive.aws.apigateway.control.apis import CALLERS_OWN, SERVICE
from redrive.aws.apigateway.control.exchange import Exchange, Refusal, StagePlace
from redrive.aws.apigateway.control.records import (
    API_KEY,
    KEY_VALUE,
    USAGE_PLAN,
    ApiDeployment,
    ApiKey,
    UsagePlan,
    UsageQuotas,
    api_key,
)
from redrive.aws.apigateway.control.schemas import BodyInvalid, check_body
from redrive.aws.gateway.authentication import Authentication
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.kit.call import Call
from redrive.aws.kit.java import hash_order
from redrive.aws.kit.offloading import within_budget
from redrive.aws.kit.refusals import not_authorized
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.engine.engine import Engine
from redrive.model.budget import OverBudgetError
from redrive.model.http import Request

ACTION: Final = "execute-api:Invoke"
SIGNED: Final = "AWS_IAM"
_SERVICE: Final = "execute-api"
_REFUSALS: Final = {
    "InvalidSignatureException": "INVALID_SIGNATURE",
    "ExpiredTokenException": "EXPIRED_TOKEN",
}
#: In the policy of an API its own ARN may be left out before the path.
_SHORT: Final = re.compile(r'"execute-api:/')


async def signer(authentication: Authentication, request: Request) -> Principal:
    """The principal who signed a request; raises Refusal if it is not signed, or the signature is not valid."""
    if credential_scope(request) is None:
        raise Refusal("MISSING_AUTHENTICATION_TOKEN")
    try:
        caller = await authentication.caller(request, _SERVICE)
    except AwsError as error:
        kind = _REFUSALS.get(error.code, "ACCESS_DENIED")
        raise Refusal(kind, message=error.message if kind == "ACCESS_DENIED" else "") from None
    return caller.principal


def check_policies(exchange: Exchange, policy: str | None, *, signed: bool) -> None:
    """Refuse a caller whom its own policies, or the policy of the API (None: it has none), do not allow.

    - `signed`: the method is for signed requests alone.

    Raises:
        Refusal: `ACCESS_DENIED`.
    """
    if not signed and not policy:
        return
    api_place, caller = exchange.stage_place, exchange.caller or ANONYMOUS
    arn = api_place.arn(exchange.request.method, exchange.policy_path)
    full_policy = None
    if policy:  # it may leave out the API's own ARN before a path
        prefix = f'"arn:aws:execute-api:{api_place.region}:{api_place.account}:{api_place.api}/'
        full_policy = _SHORT.sub(prefix, policy)
    request = exchange.request
    call = Call(
        request, caller, api_place.region, exchange.now, exchange.id, f"{request.scheme}://{request.host}"
    )
    decision = call.decide(ACTION, arn, api_place.account, full_policy)
    if not decision.allowed:
        masked_arn = re.sub(r":\d{8}(\d{4}):", r":********\1:", arn)
        name = "anonymous" if exchange.caller is None else caller.name
        raise Refusal(
            "ACCESS_DENIED", message=not_authorized(name, ACTION, masked_arn, decision.reason(ACTION))
        )


async def check_request(exchange: Exchange, method: Mapping[str, Any], deployment: ApiDeployment) -> None:
    """Refuse a request that its method's validator does not accept.

    Raises:
        Refusal: `BAD_REQUEST_PARAMETERS`, `BAD_REQUEST_BODY`, or `THROTTLED`.
    """
    validators = deployment.tree.get("validators") or {}
    validator = validators.get(method.get("requestValidatorId"))
    if validator is None:
        return
    if validator.get("validateRequestParameters"):
        declared = method.get("requestParameters") or {}
        absent_paths = [
            path for path, required in declared.items() if required and not _has_parameter(exchange, path)
        ]
        if absent_paths:
            # In the order of Amazon's Java sets: one of the paths, then one of the names.
            names = hash_order(path.rpartition(".")[2] for path in hash_order(absent_paths))
            raise Refusal("BAD_REQUEST_PARAMETERS", detail=", ".join(names))
    if validator.get("validateRequestBody"):
        await _check_body(exchange, method, deployment)


def _has_parameter(exchange: Exchange, path: str) -> bool:
    kind, _, parameter = path.removeprefix("method.request.").partition(".")
    match kind:
        case "header":
            return bool(exchange.header(parameter))
        case "querystring":
            return any(exchange.query.get(parameter) or ())
        case _:
            return bool(exchange.parameters.get(parameter))


async def _check_body(exchange: Exchange, method: Mapping[str, Any], deployment: ApiDeployment) -> None:
    """Check a body by the method's model for its content type, if there is one; raises Refusal."""
    request_models = method.get("requestModels") or {}
    name = request_models.get(exchange.content_type) or request_models.get("$default")
    models = {
        key: model.get("schema") or "{}" for key, model in (deployment.tree.get("models") or {}).items()
    }
    if name is None or name not in models:
        return
    text, body = models[name], exchange.request.body
    try:
        await within_budget(
            exchange.stage_place.account, lambda budget: check_body(text, body, models, budget)
        )
    except AwsError:
        raise Refusal("THROTTLED") from None
    except OverBudgetError:
        raise Refusal("BAD_REQUEST_BODY", reason="the model takes too long to check") from None
    except BodyInvalid as unfit:
        exchange.error["validationErrorString"] = f"[{unfit}]"
        raise Refusal("BAD_REQUEST_BODY", reason=str(unfit)) from None


class Callers:
    """Finds the principals as which integrations and authorizers are called."""

    def __init__(self, roles: ServiceRoles, *, open_functions: bool) -> None:
        self._roles = roles
        self._open_functions = (
            open_functions  # Functions and the like without a policy admit APIs of their own account
        )

    async def of(self, exchange: Exchange, credentials: str | None, arn: str) -> Principal:
        """The principal that calls an integration or an authorizer function.

        - `credentials`: the ARN of a role, or the mark of the caller's own credentials; None: neither.
        - `arn`: that of the calling method or authorizer.

        Raises:
            Refusal: The role cannot be assumed, or there is no caller.
        """
        api_place = exchange.stage_place
        if not credentials:
            return service_acting_for(
                SERVICE, api_place.region, arn, api_place.account, for_owner=self._open_functions
            )
        if credentials == CALLERS_OWN:
            if exchange.caller is None or exchange.caller.account != exchange.stage_place.account:
                raise Refusal(
                    "API_CONFIGURATION_ERROR",
                    reason="The method has no caller of its own account whose credentials it could use",
                )
            return exchange.caller
        if not await self._roles.may_act(api_place.account, credentials, api_place.region):
            raise Refusal(
                "API_CONFIGURATION_ERROR", reason=f"API Gateway cannot assume the role {credentials}"
            )
        return await self._roles.role_principal(api_place.account, credentials, api_place.region)


_HEADER: Final = "x-api-key"
_BUCKETS_MAX: Final = 10_000
_ALL: Final = "*/*"


@dataclass(slots=True)
class _Bucket:
    """A bucket of tokens, of which each request takes one."""

    tokens: float  # Remaining tokens
    at: int  # The moment of that count (ms)


class Throttles:
    """Token buckets of this node, by keys that say what they limit."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, ...], _Bucket] = {}

    def take(self, key: tuple[str, ...], rate: float, burst: float, now: int) -> bool:
        """Take a token from a key's bucket; False: it is empty.

        - `rate`: the tokens that a second adds.
        - `burst`: the most tokens that the bucket holds.
        """
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= _BUCKETS_MAX:  # then all begin full again, which is rare
                self._buckets.clear()
            bucket = self._buckets[key] = _Bucket(burst, now)
        bucket.tokens = min(burst, bucket.tokens + (now - bucket.at) / 1000 * rate)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


class Usage:
    """Admits requests by their keys and their pace."""

    def __init__(self, engine: Engine) -> None:
        self._documents = engine.resources.documents
        self._throttles = Throttles()
        self._quotas = UsageQuotas(engine)

    async def admit(
        self,
        exchange: Exchange,
        method: Mapping[str, Any],
        stage: Mapping[str, Any],
        *,
        by_authorizer: bool = False,
    ) -> None:
        """Count a request, or refuse it; `by_authorizer`: the authorizer names the key, not a header.

        Raises:
            Refusal: `INVALID_API_KEY`, `THROTTLED` or `QUOTA_EXCEEDED`.
        """
        self._check_stage(exchange, stage.get("methodSettings") or {})
        if method.get("apiKeyRequired"):
            key = await self._key(exchange, exchange.usage_key if by_authorizer else exchange.header(_HEADER))
            plan, plan_stage = await self._plan(exchange.stage_place, key)
            exchange.api_key = key.id, key.value
            for rate, burst, part in _limits(exchange, plan, plan_stage):
                bucket = ("plan", plan.id, key.id, part)
                if not self._throttles.take(bucket, rate, burst, exchange.now):
                    raise Refusal("THROTTLED")
            if plan.settings.get("quota") and not await self._quotas.spend(plan, key.id, exchange.now):
                raise Refusal("QUOTA_EXCEEDED")

    def _check_stage(self, exchange: Exchange, settings: Mapping[str, Any]) -> None:
        """Refuse a request beyond the limits of its method in a stage, which are -1 where there are none."""
        if not settings:
            return
        method_key = f"{exchange.route.removeprefix('/')}/{exchange.method}"
        name = method_key if method_key in settings else _ALL
        limits = settings.get(name) or {}
        rate, burst = limits.get("throttlingRateLimit"), limits.get("throttlingBurstLimit")
        if rate is None or burst is None or rate < 0 or burst < 0:
            return
        bucket = ("stage", exchange.stage_place.api, exchange.stage_place.stage, method_key)
        if not self._throttles.take(bucket, rate, burst, exchange.now):
            raise Refusal("THROTTLED")

    async def _key(self, exchange: Exchange, value: str | None) -> ApiKey:
        """The enabled API key that has a value; raises Refusal if there is none."""
        account, region = exchange.stage_place.account, exchange.stage_place.region
        key_value = key = None
        if value:
            key_value = await self._documents.get(KEY_VALUE, api_key(account, region, value))
        if key_value is not None:
            key = await self._documents.get(API_KEY, api_key(account, region, key_value.id))
        if key is None or not key.settings.get("enabled"):
            raise Refusal("INVALID_API_KEY")
        return key

    async def _plan(self, api_place: StagePlace, key: ApiKey) -> tuple[UsagePlan, Mapping[str, Any]]:
        """The plan of a key that covers a stage, and the plan's settings for that stage."""
        for plan_id in key.plans:
            plan = await self._documents.get(
                USAGE_PLAN, api_key(api_place.account, api_place.region, plan_id)
            )
            if plan is None:
                continue
            for plan_stage in plan.settings.get("apiStages") or ():
                if (plan_stage["apiId"], plan_stage["stage"]) == (api_place.api, api_place.stage):
                    return plan, plan_stage
        raise Refusal("INVALID_API_KEY")


def _limits(
    exchange: Exchange, plan: UsagePlan, plan_stage: Mapping[str, Any]
) -> Iterator[tuple[float, float, str]]:
    """The rates and bursts that limit a request, and the names of their buckets: of the plan, and of the method in it."""
    method_key = f"{exchange.route}/{exchange.method}"
    method_limits = (plan_stage.get("throttle") or {}).get(method_key)
    for limits, name in ((plan.settings.get("throttle"), ""), (method_limits, method_key)):
        if limits:
            yield float(limits.get("rateLimit") or 0), float(limits.get("burstLimit") or 0), name
