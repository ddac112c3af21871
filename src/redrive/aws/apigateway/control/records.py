"""Documents of API Gateway: APIs and their trees, deployments, keys, plans, and the usage of quotas; and their ids."""

import asyncio
import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Final

from redrive.aws.apigateway.control.errors import bad_request
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft
from redrive.model.document import Document

Tree = Mapping[str, Any]
"""The parts of an API, by kind and then by id or name, as the wire has them; a part contains those below it."""

REST: Final = "rest"
HTTP: Final = "http"

STAGES: Final = "stages"  # among the parts of an API
GATEWAY_RESPONSES: Final = "gatewayResponses"  # of a REST API
METHODS: Final = "resourceMethods"  # of a resource


@dataclass(frozen=True, slots=True)
class EditedApi(Document):
    """An API as its owner edits it."""

    account: str  # Account that owns it
    region: str  # Region
    id: str  # Ten letters and digits
    created_at: int  # ms
    settings: Tree  # Its members in the published model, besides those above
    tree: Tree  # Its parts
    tags: Mapping[str, str] = field(default_factory=dict)  # By key

    @property
    def key(self) -> str:
        """The key of the document."""
        return api_key(self.account, self.region, self.id)


@dataclass(frozen=True, slots=True)
class RestApi(EditedApi):
    """A REST API: its tree has resources, models, stages …; callers see deployments."""


@dataclass(frozen=True, slots=True)
class ApiDeployment(Document):
    """An API as it was at a moment, which stages serve."""

    id: str  # Six letters and digits
    created_at: int  # ms
    description: str  # Free text
    settings: Tree  # Settings of the API at that time
    tree: Tree  # Tree of the API at that time, without stages


@dataclass(frozen=True, slots=True)
class ApiPlace(Document):
    """The account and the region of an API: a request has nothing but the API's id."""

    account: str  # Account of the API
    region: str  # Region
    kind: str  # `REST` or `HTTP`


@dataclass(frozen=True, slots=True)
class ApiKey(Document):
    """A key that callers of methods may have to show."""

    restored: ClassVar = {"plans": tuple}

    account: str  # Account that owns it
    region: str  # Region
    id: str  # Ten letters and digits
    value: str  # The secret that callers send
    created_at: int  # ms
    updated_at: int  # ms
    settings: Tree  # Its members on the wire, besides those above
    plans: tuple[str, ...] = ()  # The ids of the usage plans that it belongs to
    tags: Mapping[str, str] = field(default_factory=dict)  # By key


@dataclass(frozen=True, slots=True)
class KeyValue(Document):
    """The key that has a value."""

    id: str  # The key's


@dataclass(frozen=True, slots=True)
class UsagePlan(Document):
    """A plan: how much the holders of its keys may ask of which stages."""

    restored: ClassVar = {"keys": tuple}

    account: str  # Account that owns it
    region: str  # Region
    id: str  # Six letters and digits
    created_at: int  # ms
    settings: Tree  # Its members on the wire, besides those above
    keys: tuple[str, ...] = ()  # The ids of its keys
    tags: Mapping[str, str] = field(default_factory=dict)  # By key


@dataclass(frozen=True, slots=True)
class GatewayAccount(Document):
    """The settings of an account's region."""

    role: str = ""  # The role that writes logs: `cloudwatchRoleArn`


def api_key(account: str, region: str, document_id: str) -> str:
    """The key of a document of an account's region; with an empty id the prefix of all of them."""
    return f"{account}/{region}/{document_id}"


def deployment_key(account: str, region: str, api_id: str, deployment_id: str) -> str:
    """The key of a deployment; with an empty id the prefix of all of its API."""
    return f"{account}/{region}/{api_id}/{deployment_id}"


REST_API: Final = DocumentKind.of("apigateway_rest_api", RestApi)
DEPLOYMENT: Final = DocumentKind.of("apigateway_deployment", ApiDeployment)
API_PLACE: Final = DocumentKind.of("apigateway_place", ApiPlace)
API_KEY: Final = DocumentKind.of("apigateway_key", ApiKey)
KEY_VALUE: Final = DocumentKind.of("apigateway_key_value", KeyValue)
USAGE_PLAN: Final = DocumentKind.of("apigateway_plan", UsagePlan)
ACCOUNT: Final = DocumentKind.of("apigateway_account", GatewayAccount)


_LETTERS: Final = string.ascii_lowercase + string.digits
_CUSTOM_ID_CHARACTERS: Final = frozenset(_LETTERS + "-")
_CUSTOM_ID_CHARS_MAX: Final = 63  # of a label in a host's name
API_CHARS: Final = 10
PART_CHARS: Final = 6
KEY_CHARS: Final = 40
CUSTOM_ID_TAG: Final = "_custom_id_"
"""The tag by which callers choose the id of an API that they make, as LocalStack has it."""


def new_id(rng: random.Random, chars: int = PART_CHARS) -> str:
    """A new id of small letters and digits, which begins with a letter, as names of hosts do."""
    rest = (rng.choice(_LETTERS) for _ in range(chars - 1))
    return rng.choice(string.ascii_lowercase) + "".join(rest)


def custom_id(tags: dict[str, str]) -> str:
    """The id that a caller chooses for an API by a tag; empty: none.

    Raises:
        AwsError: `BadRequestException`: it is not a part of a host's name.
    """
    text = tags.get(CUSTOM_ID_TAG, "")
    is_short = len(text) <= _CUSTOM_ID_CHARS_MAX
    if not (is_short and _CUSTOM_ID_CHARACTERS.issuperset(text) and text.strip("-") == text):
        raise bad_request(f"Invalid API identifier chosen by the tag {CUSTOM_ID_TAG}: {text}")
    return text


Path = Sequence[str]
"""The keys that lead to a value in a tree."""


def value_at(tree: Tree, path: Path) -> Any:
    """The value at a path; None: there is none."""
    value: Any = tree
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
        if value is None:
            return None
    return value


def with_value(tree: Tree, path: Path, value: Any) -> dict[str, Any]:
    """The tree with a value at a path; absent objects on the way are created."""
    key, *rest = path
    if not rest:
        return {**tree, key: value}
    return {**tree, key: with_value(tree.get(key) or {}, rest, value)}


def without_value(tree: Tree, path: Path) -> dict[str, Any]:
    """The tree without the value at a path."""
    key, *rest = path
    if key not in tree:
        return dict(tree)
    if not rest:
        return {name: value for name, value in tree.items() if name != key}
    return {**tree, key: without_value(tree[key], rest)}


DEFAULT_STAGE: Final = "$default"


@dataclass(frozen=True, slots=True)
class HttpApi(EditedApi):
    """An HTTP API: its tree has routes, integrations and stages; stages with automatic deployment serve it as it is."""


HTTP_API: Final = DocumentKind.of("apigateway_http_api", HttpApi)


PERIODS: Final = ("DAY", "WEEK", "MONTH")
_DAYS_MAX: Final = 90


@dataclass(frozen=True, slots=True)
class KeyUsage(Document):
    """The requests that the holder of a key has made of a plan."""

    # Requests by day, as `YYYY-MM-DD`; those of the last three months.
    days: Mapping[str, int] = field(default_factory=dict)

    def between(self, first: str, last: str) -> int:
        """The number of requests from a first to a last day (`YYYY-MM-DD`)."""
        return sum(count for day, count in self.days.items() if first <= day <= last)


USAGE: Final = DocumentKind.of("apigateway_usage", KeyUsage)


def usage_key(account: str, region: str, plan_id: str, key_id: str) -> str:
    """The key of the usage of a plan by an API key."""
    return f"{account}/{region}/{plan_id}/{key_id}"


def period_of(moment: int, period: str) -> tuple[str, str]:
    """The first and the last day of the period that a moment (ms) is in; weeks begin on Sunday."""
    day = datetime.fromtimestamp(moment // 1000, UTC).date()
    if period == "WEEK":
        first = day - timedelta(days=(day.weekday() + 1) % 7)
        return str(first), str(first + timedelta(days=6))
    if period == "MONTH":
        first = day.replace(day=1)
        last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        return str(first), str(last)
    return str(day), str(day)


def days_of(usage: KeyUsage, quota: Mapping[str, Any] | None, begin: str, end: str) -> list[list[int]]:
    """For each day from `begin` to `end` (`YYYY-MM-DD`) the requests, and those that the quota still admitted after it.

    The second is -1 without a quota. There are no days if a date is malformed.
    """
    days: list[list[int]] = []
    try:
        day, last = date.fromisoformat(begin), date.fromisoformat(end)
    except ValueError:
        return days
    while day <= last and len(days) < _DAYS_MAX:
        count = usage.days.get(str(day), 0)
        remaining = -1
        if quota is not None:
            moment = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
            first, _ = period_of(moment, quota["period"])
            spent = usage.between(first, str(day))
            remaining = max(int(quota["limit"]) - spent, 0)
        days.append([count, remaining])
        day += timedelta(days=1)
    return days


@dataclass(slots=True)
class _Counter:
    """The requests of one key that are about to be counted."""

    plan: UsagePlan  # As the latest request found it
    now: int  # When that came (ms)
    # One for each request that the next write counts: True if the quota admits it.
    outcomes: list[asyncio.Future[bool]] = field(default_factory=list)
    # Writes until no request waits; a task of its own, so that the cancellation of a caller does not end it.
    writer: asyncio.Task[None] | None = None


class UsageQuotas:
    """Counts requests against quotas: those that arrive together are one write."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counters: dict[str, _Counter] = {}

    async def spend(self, plan: UsagePlan, key_id: str, now: int) -> bool:
        """Count one request; False: it exceeds the quota, and is not counted.

        Raises:
            StoreUnavailable: It is unknown whether it was counted.
        """
        key = usage_key(plan.account, plan.region, plan.id, key_id)
        counter = self._counters.setdefault(key, _Counter(plan, now))
        counter.plan, counter.now = plan, now
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[bool] = loop.create_future()
        counter.outcomes.append(outcome)
        if counter.writer is None:
            counter.writer = loop.create_task(self._write_all(key, counter))
        return await outcome

    async def _write_all(self, key: str, counter: _Counter) -> None:
        """Write a counter's outcomes, those that come meanwhile as well; then forget the counter."""
        try:
            while counter.outcomes:
                await self._write(key, counter)
        finally:
            del self._counters[key]

    async def _write(self, key: str, counter: _Counter) -> None:
        """Count the requests that wait, in their order, as far as the quota admits them, and tell each whether it is."""
        outcomes, counter.outcomes = counter.outcomes, []
        quota: Mapping[str, Any] = counter.plan.settings["quota"]
        today = str(datetime.fromtimestamp(counter.now // 1000, UTC).date())
        first, last = period_of(counter.now, quota["period"])

        async def decide(draft: Draft) -> int:
            usage = await draft.get(USAGE, key) or KeyUsage()
            spent = usage.between(first, last)
            admitted_count = min(max(int(quota["limit"]) - spent, 0), len(outcomes))
            if admitted_count:
                days = {**usage.days, today: usage.days.get(today, 0) + admitted_count}
                draft.put(USAGE, key, replace(usage, days=dict(sorted(days.items())[-_DAYS_MAX:])))
            return admitted_count

        try:
            admitted_count = await self._engine.resources.write(decide)
        except Exception as error:  # noqa: BLE001 - each of those who wait raises it
            for outcome in outcomes:
                if not outcome.done():
                    outcome.set_exception(error)
            return
        for number, outcome in enumerate(outcomes):
            if not outcome.done():
                outcome.set_result(number < admitted_count)
