"""Usage: which key a caller shows, how fast it asks, and how much."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.aws.apigateway.control.exchange import Exchange, Refusal, StagePlace
from redrive.aws.apigateway.control.quotas import UsageQuotas
from redrive.aws.apigateway.control.records import API_KEY, KEY_VALUE, USAGE_PLAN, ApiKey, UsagePlan, api_key
from redrive.engine.engine import Engine

_HEADER: Final = "x-api-key"
_BUCKETS_MAX: Final = 10_000
_ALL: Final = "*/*"


@dataclass(slots=True)
class _Bucket:
    """A bucket of tokens, of which each request takes one."""

    tokens: float  # Those that are left
    at: int  # When that was so (ms)


class Throttles:
    """Token buckets of this node, by what they are for."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, ...], _Bucket] = {}

    def takes(self, key: tuple[str, ...], rate: float, burst: float, now: int) -> bool:
        """Take a token from a key's bucket; False: it is empty.

        - `rate`: tokens that are added in a second.
        - `burst`: the most that it holds.
        """
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= _BUCKETS_MAX:
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
        """Look keys up in this engine, and go by its time."""
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
        """Count a request, or refuse it; `by_authorizer`: it is its authorizer that names the key.

        Raises:
            Refusal: `INVALID_API_KEY`, `THROTTLED` or `QUOTA_EXCEEDED`.
        """
        self._check_stage(exchange, stage.get("methodSettings") or {})
        if method.get("apiKeyRequired"):
            key = await self._key(exchange, exchange.usage_key if by_authorizer else exchange.header(_HEADER))
            plan, covered = await self._plan(exchange.place, key)
            exchange.api_key = key.id, key.value
            for rate, burst, part in _limits(exchange, plan, covered):
                bucket = ("plan", plan.id, key.id, part)
                if not self._throttles.takes(bucket, rate, burst, exchange.now):
                    raise Refusal("THROTTLED")
            if plan.settings.get("quota") and not await self._quotas.spend(plan, key.id, exchange.now):
                raise Refusal("QUOTA_EXCEEDED")

    def _check_stage(self, exchange: Exchange, settings: Mapping[str, Any]) -> None:
        if not settings:
            return
        own = f"{exchange.route.removeprefix('/')}/{exchange.method}"
        name = own if own in settings else _ALL
        limits = settings.get(name) or {}
        rate, burst = limits.get("throttlingRateLimit"), limits.get("throttlingBurstLimit")
        if rate is None or burst is None or rate < 0 or burst < 0:
            return
        bucket = ("stage", exchange.place.api, exchange.place.stage, own)
        if not self._throttles.takes(bucket, rate, burst, exchange.now):
            raise Refusal("THROTTLED")

    async def _key(self, exchange: Exchange, value: str | None) -> ApiKey:
        api_place = exchange.place
        key_value = None
        if value:
            key_value = await self._documents.get(
                KEY_VALUE, api_key(api_place.account, api_place.region, value)
            )
        key = None
        if key_value is not None:
            key = await self._documents.get(
                API_KEY, api_key(api_place.account, api_place.region, key_value.id)
            )
        if key is None or not key.settings.get("enabled"):
            raise Refusal("INVALID_API_KEY")
        return key

    async def _plan(self, api_place: StagePlace, key: ApiKey) -> tuple[UsagePlan, Mapping[str, Any]]:
        """The plan of a key that is for a stage, and what it says of that."""
        for plan_id in key.plans:
            plan = await self._documents.get(
                USAGE_PLAN, api_key(api_place.account, api_place.region, plan_id)
            )
            for covered in () if plan is None else plan.settings.get("apiStages") or ():
                if plan is not None and (covered["apiId"], covered["stage"]) == (
                    api_place.api,
                    api_place.stage,
                ):
                    return plan, covered
        raise Refusal("INVALID_API_KEY")


def _limits(
    exchange: Exchange, plan: UsagePlan, covered: Mapping[str, Any]
) -> Iterator[tuple[float, float, str]]:
    """The rates and bursts that bound a request: of the plan, and of the method in it."""
    part = f"{exchange.route}/{exchange.method}"
    own = (covered.get("throttle") or {}).get(part)
    for limits, name in ((plan.settings.get("throttle"), ""), (own, part)):
        if limits:
            yield float(limits.get("rateLimit") or 0), float(limits.get("burstLimit") or 0), name
