"""Usage plans: what the holders of keys may ask, how fast and how much."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.errors import PAGES, bad_request, conflict, no_api, not_found
from redrive.aws.apigateway.control.records import (
    API_KEY,
    PERIODS,
    REST_API,
    STAGES,
    USAGE,
    USAGE_PLAN,
    ApiKey,
    UsagePlan,
    api_key,
    days_of,
    new_id,
    usage_key,
)
from redrive.aws.apigateway.rest.kinds import PatchRules, patched, shape_of, steps_of
from redrive.aws.apigateway.rest.tags import TAGS
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_GIVEN: Final = ("name", "description", "throttle", "quota")
_RULES: Final = PatchRules(
    frozenset({"name", "description", "productCode", "throttle", "quota"}), "UsagePlan"
)
_STAGE_RULES: Final = PatchRules(frozenset({"throttle"}), "UsagePlan")
_MISSING: Final = "Invalid Usage Plan ID specified"
_MISSING_KEY: Final = "Invalid API Key identifier specified"


class UsagePlanOperations:
    """Makes, shows, changes and deletes plans, and says which keys they are for."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._rng = engine.runtime.rng

    async def create_usage_plan(self, call: Call, params: Structure) -> Structure:
        tags = TAGS.read(params.get("tags"))
        settings = {name: params[name] for name in _GIVEN if params.get(name) is not None}
        settings["apiStages"] = list(params.get("apiStages") or ())
        usage_plan = UsagePlan(
            call.account, call.region, new_id(self._rng), call.now, _checked(settings), tags=tags
        )

        async def decide(draft: Draft) -> None:
            await _check_stages(draft, call, settings["apiStages"])
            draft.put(USAGE_PLAN, api_key(call.account, call.region, usage_plan.id), usage_plan)

        await self._engine.resources.write(decide)
        return as_structure(usage_plan)

    async def get_usage_plan(self, call: Call, params: Structure) -> Structure:
        return as_structure(await self._plan(call, params))

    async def get_usage_plans(self, call: Call, params: Structure) -> Structure:
        plans = await self._documents.find(USAGE_PLAN, api_key(call.account, call.region, ""))
        key_id = params.get("keyId")
        having = [plan for plan in plans if not key_id or key_id in plan.keys]
        return PAGES.of("GetUsagePlans", params, having, as_structure)

    async def update_usage_plan(self, call: Call, params: Structure) -> Structure:
        operations = params.get("patchOperations") or ()
        at = api_key(call.account, call.region, params["usagePlanId"])

        async def decide(draft: Draft) -> UsagePlan:
            plan = await _plan_in(draft, at)
            settings = _checked(_changed(plan, operations))
            await _check_stages(draft, call, settings["apiStages"])
            return draft.change(USAGE_PLAN, at, plan, lambda known: replace(known, settings=settings))

        return as_structure(await self._engine.resources.write(decide))

    async def delete_usage_plan(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteUsagePlan.html, unless it is for a stage."""
        at = api_key(call.account, call.region, params["usagePlanId"])

        async def decide(draft: Draft) -> None:
            plan = await _plan_in(draft, at)
            if [stage async for stage in _standing_stages(draft, call, plan)]:
                raise bad_request(
                    "Cannot delete usage plan because it has one or more associated API stages. Please disassociate"
                    " all API stages first."
                )
            for key_id in plan.keys:
                await _with_plans(draft, call, key_id, plan.id, add=False)
            draft.remove(USAGE_PLAN, at)

        await self._engine.resources.write(decide)
        return {}

    # ---- keys ------------------------------------------------------------------------------------------------

    async def create_usage_plan_key(self, call: Call, params: Structure) -> Structure:
        at = api_key(call.account, call.region, params["usagePlanId"])
        key_id = params["keyId"]
        if params["keyType"] != "API_KEY":
            raise bad_request("Usage plan keys are of the type API_KEY")

        async def decide(draft: Draft) -> ApiKey:
            plan = await _plan_in(draft, at)
            if key_id in plan.keys:
                raise conflict("Usage Plan Key already exists for this Usage Plan")
            key = await _with_plans(draft, call, key_id, plan.id, add=True)
            draft.put(USAGE_PLAN, at, replace(plan, keys=(*plan.keys, key_id)))
            return key

        return _shown_key(await self._engine.resources.write(decide))

    async def get_usage_plan_key(self, call: Call, params: Structure) -> Structure:
        plan = await self._plan(call, params)
        key = await self._documents.get(API_KEY, api_key(call.account, call.region, params["keyId"]))
        if key is None or key.id not in plan.keys:
            raise not_found("Invalid Usage Plan Key specified")
        return _shown_key(key)

    async def get_usage_plan_keys(self, call: Call, params: Structure) -> Structure:
        at = api_key(call.account, call.region, params["usagePlanId"])
        plan = await self._documents.get(USAGE_PLAN, at)
        if plan is None:  # which is not a refusal of this list (recorded)
            return {"items": []}
        keys: list[ApiKey | None] = []
        for key_id in plan.keys:
            plan_key = await self._documents.get(API_KEY, api_key(call.account, call.region, key_id))
            keys.append(plan_key)
        beginning = params.get("nameQuery") or ""
        items = [
            key for key in keys if key is not None and str(key.settings.get("name", "")).startswith(beginning)
        ]
        return PAGES.of("GetUsagePlanKeys", params, items, _shown_key)

    async def delete_usage_plan_key(self, call: Call, params: Structure) -> Structure:
        at = api_key(call.account, call.region, params["usagePlanId"])
        key_id = params["keyId"]

        async def decide(draft: Draft) -> None:
            plan = await _plan_in(draft, at)
            if key_id not in plan.keys:
                raise not_found("Invalid Usage Plan Key specified")
            await _with_plans(draft, call, key_id, plan.id, add=False)
            remaining = tuple(each for each in plan.keys if each != key_id)
            draft.put(USAGE_PLAN, at, replace(plan, keys=remaining))

        await self._engine.resources.write(decide)
        return {}

    async def get_usage(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_GetUsage.html: of each day, what was used and is left."""
        plan = await self._plan(call, params)
        begin, end = params["startDate"], params["endDate"]
        key_id = params.get("keyId")
        page, ending = PAGES.cut("GetUsage", params, plan.keys if key_id is None else [key_id])
        items = {}
        for key_id in page:
            used = await self._documents.get(USAGE, usage_key(plan.account, plan.region, plan.id, key_id))
            if used is not None:
                items[key_id] = days_of(used, plan.settings.get("quota"), begin, end)
        return {"usagePlanId": plan.id, "startDate": begin, "endDate": end, "items": items, **ending}

    async def _plan(self, call: Call, params: Structure) -> UsagePlan:
        key = api_key(call.account, call.region, params["usagePlanId"])
        plan = await self._documents.get(USAGE_PLAN, key)
        return _standing(plan)


async def _plan_in(draft: Draft, at: str) -> UsagePlan:
    plan = await draft.get(USAGE_PLAN, at)
    return _standing(plan)


def _standing(usage_plan: UsagePlan | None) -> UsagePlan:
    if usage_plan is None:
        raise not_found(_MISSING)
    return usage_plan


async def _with_plans(draft: Draft, call: Call, key_id: str, plan_id: str, *, add: bool) -> ApiKey:
    """The key as it is with a plan more, or less."""
    at = api_key(call.account, call.region, key_id)
    key = await draft.get(API_KEY, at)
    if key is None:
        raise not_found(_MISSING_KEY)
    others = tuple(each for each in key.plans if each != plan_id)
    changed = replace(key, plans=(*others, plan_id) if add else others)
    draft.put(API_KEY, at, changed)
    return changed


async def _standing_stages(draft: Draft, call: Call, plan: UsagePlan) -> AsyncIterator[Mapping[str, Any]]:
    """The stages of a plan that there still are: an API leaves its own behind when it is deleted."""
    for stage in plan.settings.get("apiStages") or ():
        api = await draft.get(REST_API, api_key(call.account, call.region, stage["apiId"]))
        if api is not None and stage["stage"] in (api.tree.get(STAGES) or {}):
            yield stage


async def _check_stages(draft: Draft, call: Call, stages: Sequence[Mapping[str, Any]]) -> None:
    for stage in stages:
        api = await draft.get(REST_API, api_key(call.account, call.region, stage.get("apiId") or ""))
        if api is None:
            raise no_api(call.account, stage.get("apiId") or "")
        if stage.get("stage") not in (api.tree.get(STAGES) or {}):
            raise not_found(f"API Stage not found: {api.id}:{stage.get('stage')}")


def _checked(settings: Structure) -> Structure:
    quota, throttle = settings.get("quota"), settings.get("throttle")
    if quota is not None and (quota.get("period") not in PERIODS or quota.get("limit", 0) < 1):
        raise bad_request("Usage Plan quota needs a period of DAY, WEEK or MONTH and a limit of 1 or more")
    if throttle is not None and (throttle.get("rateLimit", 0) < 0 or throttle.get("burstLimit", 0) < 0):
        raise bad_request("Usage Plan throttle rate limit must not be less than zero")
    return settings


def _changed(plan: UsagePlan, operations: Sequence[Mapping[str, Any]]) -> Structure:
    """The settings of a plan with changes made; stages are named `api:stage`."""
    settings = dict(plan.settings)
    for operation in operations:
        steps = steps_of(operation.get("path") or "")
        if steps and steps[0] == "apiStages":
            settings = {
                **settings,
                "apiStages": _changed_stages(settings["apiStages"], steps[1:], operation, plan.id),
            }
        else:
            settings = patched(settings, shape_of("GetUsagePlan"), _RULES, [operation])
    return settings


def _changed_stages(
    stages: Sequence[Mapping[str, Any]], steps: Sequence[str], operation: Mapping[str, Any], plan_id: str
) -> list[Any]:
    stage_name = steps[0] if steps else operation.get("value") or ""
    if stage_name.count(":") != 1:
        raise bad_request("Invalid API Stage specified")
    api_id, _, stage = stage_name.partition(":")
    known = next((each for each in stages if (each["apiId"], each["stage"]) == (api_id, stage)), None)
    others = [each for each in stages if each is not known]
    if len(steps) > 1:
        if known is None:
            raise not_found(f"API Stage not found: {stage_name}")
        shape = shape_of("GetUsagePlan").members["apiStages"].shape.element.shape
        path = "/" + "/".join(step.replace("~", "~0").replace("/", "~1") for step in steps[1:])
        changed = patched(dict(known), shape, _STAGE_RULES, [{**operation, "path": path}])
        return [*others, changed]
    if operation.get("op") == "remove":
        if known is None:
            raise not_found(
                f"Invalid API Stage {{api: {api_id}, stage: {stage}}} specified for usageplan {plan_id}"
            )
        return others
    if operation.get("op") != "add":
        raise bad_request(f"Invalid patch operation {operation.get('op')} for path {operation.get('path')}")
    return [*others, known or {"apiId": api_id, "stage": stage}]


def as_structure(plan: UsagePlan) -> Structure:
    """A plan as callers see it."""
    return {"id": plan.id, **plan.settings, "tags": dict(plan.tags) or None}


def _shown_key(key: ApiKey) -> Structure:
    return {"id": key.id, "type": "API_KEY", "value": key.value, "name": key.settings.get("name")}
