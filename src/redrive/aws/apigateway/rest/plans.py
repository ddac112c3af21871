"""Usage plans: the stages that the holders of keys may use, how fast and how much."""

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
from redrive.aws.apigateway.rest.keys import key_in
from redrive.aws.apigateway.rest.kinds import PatchRules, apply_patches, shape_of, steps_of
from redrive.aws.apigateway.rest.tags import TAGS
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_MEMBERS: Final = ("name", "description", "throttle", "quota")
_RULES: Final = PatchRules(
    frozenset({"name", "description", "productCode", "throttle", "quota"}), "UsagePlan"
)
_STAGE_RULES: Final = PatchRules(frozenset({"throttle"}), "UsagePlan")
_NOT_FOUND: Final = "Invalid Usage Plan ID specified"


class UsagePlanOperations:
    """Creates, shows, changes and deletes plans, and adds keys to them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._rng = engine.runtime.rng

    async def create_usage_plan(self, call: Call, params: Structure) -> Structure:
        tags = TAGS.read(params.get("tags"))
        settings = {name: params[name] for name in _MEMBERS if params.get(name) is not None}
        settings["apiStages"] = list(params.get("apiStages") or ())
        usage_plan = UsagePlan(
            call.account, call.region, new_id(self._rng), call.now, _valid_settings(settings), tags=tags
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
        matches = [plan for plan in plans if not key_id or key_id in plan.keys]
        return PAGES.of("GetUsagePlans", params, matches, as_structure)

    async def update_usage_plan(self, call: Call, params: Structure) -> Structure:
        operations = params.get("patchOperations") or ()
        document_key = api_key(call.account, call.region, params["usagePlanId"])

        async def decide(draft: Draft) -> UsagePlan:
            plan = await _plan_in(draft, document_key)
            settings = _valid_settings(_apply_patches(plan, operations))
            await _check_stages(draft, call, settings["apiStages"])
            return draft.change(
                USAGE_PLAN, document_key, plan, lambda current: replace(current, settings=settings)
            )

        return as_structure(await self._engine.resources.write(decide))

    async def delete_usage_plan(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteUsagePlan.html, unless it is for a stage."""
        document_key = api_key(call.account, call.region, params["usagePlanId"])

        async def decide(draft: Draft) -> None:
            plan = await _plan_in(draft, document_key)
            if [stage async for stage in _existing_stages(draft, call, plan)]:
                raise bad_request(
                    "Cannot delete usage plan because it has one or more associated API stages. Please disassociate"
                    " all API stages first."
                )
            for key_id in plan.keys:
                await _change_plans(draft, call, key_id, plan.id, add=False)
            draft.remove(USAGE_PLAN, document_key)

        await self._engine.resources.write(decide)
        return {}

    # ---- keys ------------------------------------------------------------------------------------------------

    async def create_usage_plan_key(self, call: Call, params: Structure) -> Structure:
        document_key = api_key(call.account, call.region, params["usagePlanId"])
        key_id = params["keyId"]
        if params["keyType"] != "API_KEY":
            raise bad_request("Usage plan keys are of the type API_KEY")

        async def decide(draft: Draft) -> ApiKey:
            plan = await _plan_in(draft, document_key)
            if key_id in plan.keys:
                raise conflict("Usage Plan Key already exists for this Usage Plan")
            key = await _change_plans(draft, call, key_id, plan.id, add=True)
            draft.put(USAGE_PLAN, document_key, replace(plan, keys=(*plan.keys, key_id)))
            return key

        return _key_structure(await self._engine.resources.write(decide))

    async def get_usage_plan_key(self, call: Call, params: Structure) -> Structure:
        plan = await self._plan(call, params)
        key = await self._documents.get(API_KEY, api_key(call.account, call.region, params["keyId"]))
        if key is None or key.id not in plan.keys:
            raise not_found("Invalid Usage Plan Key specified")
        return _key_structure(key)

    async def get_usage_plan_keys(self, call: Call, params: Structure) -> Structure:
        document_key = api_key(call.account, call.region, params["usagePlanId"])
        plan = await self._documents.get(USAGE_PLAN, document_key)
        if plan is None:  # which this list does not refuse (recorded)
            return {"items": []}
        prefix = params.get("nameQuery") or ""
        keys: list[ApiKey] = []
        for key_id in plan.keys:
            key = await self._documents.get(API_KEY, api_key(call.account, call.region, key_id))
            if key is not None and str(key.settings.get("name", "")).startswith(prefix):
                keys.append(key)
        return PAGES.of("GetUsagePlanKeys", params, keys, _key_structure)

    async def delete_usage_plan_key(self, call: Call, params: Structure) -> Structure:
        document_key = api_key(call.account, call.region, params["usagePlanId"])
        key_id = params["keyId"]

        async def decide(draft: Draft) -> None:
            plan = await _plan_in(draft, document_key)
            if key_id not in plan.keys:
                raise not_found("Invalid Usage Plan Key specified")
            await _change_plans(draft, call, key_id, plan.id, add=False)
            remaining = tuple(each for each in plan.keys if each != key_id)
            draft.put(USAGE_PLAN, document_key, replace(plan, keys=remaining))

        await self._engine.resources.write(decide)
        return {}

    async def get_usage(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_GetUsage.html: of each day, what was used and is left."""
        plan = await self._plan(call, params)
        begin, end = params["startDate"], params["endDate"]
        key_id = params.get("keyId")
        page, token = PAGES.cut("GetUsage", params, plan.keys if key_id is None else [key_id])
        items = {}
        for key_id in page:
            usage = await self._documents.get(USAGE, usage_key(plan.account, plan.region, plan.id, key_id))
            if usage is not None:
                items[key_id] = days_of(usage, plan.settings.get("quota"), begin, end)
        return {"usagePlanId": plan.id, "startDate": begin, "endDate": end, "items": items, **token}

    async def _plan(self, call: Call, params: Structure) -> UsagePlan:
        key = api_key(call.account, call.region, params["usagePlanId"])
        plan = await self._documents.get(USAGE_PLAN, key)
        return _require(plan)


async def _plan_in(draft: Draft, document_key: str) -> UsagePlan:
    plan = await draft.get(USAGE_PLAN, document_key)
    return _require(plan)


def _require(usage_plan: UsagePlan | None) -> UsagePlan:
    if usage_plan is None:
        raise not_found(_NOT_FOUND)
    return usage_plan


async def _change_plans(draft: Draft, call: Call, key_id: str, plan_id: str, *, add: bool) -> ApiKey:
    """Add a plan to a key, or remove it; returns the changed key."""
    document_key = api_key(call.account, call.region, key_id)
    key = await key_in(draft, document_key)
    others = tuple(each for each in key.plans if each != plan_id)
    key = replace(key, plans=(*others, plan_id) if add else others)
    draft.put(API_KEY, document_key, key)
    return key


async def _existing_stages(draft: Draft, call: Call, plan: UsagePlan) -> AsyncIterator[Mapping[str, Any]]:
    """The stages of a plan that still exist: the deletion of an API leaves the plan as it is."""
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


def _valid_settings(settings: Structure) -> Structure:
    quota, throttle = settings.get("quota"), settings.get("throttle")
    if quota is not None and (quota.get("period") not in PERIODS or quota.get("limit", 0) < 1):
        raise bad_request("Usage Plan quota needs a period of DAY, WEEK or MONTH and a limit of 1 or more")
    if throttle is not None and (throttle.get("rateLimit", 0) < 0 or throttle.get("burstLimit", 0) < 0):
        raise bad_request("Usage Plan throttle rate limit must not be less than zero")
    return settings


def _apply_patches(plan: UsagePlan, operations: Sequence[Mapping[str, Any]]) -> Structure:
    """The settings of a plan after patch operations, which name stages `api:stage`."""
    settings = dict(plan.settings)
    for operation in operations:
        steps = steps_of(operation.get("path") or "")
        if steps and steps[0] == "apiStages":
            settings = {
                **settings,
                "apiStages": _patch_stages(settings["apiStages"], steps[1:], operation, plan.id),
            }
        else:
            settings = apply_patches(settings, shape_of("GetUsagePlan"), _RULES, [operation])
    return settings


def _patch_stages(
    stages: Sequence[Mapping[str, Any]], steps: Sequence[str], operation: Mapping[str, Any], plan_id: str
) -> list[Any]:
    """The stages of a plan after an operation, whose path goes on behind `/apiStages` with these steps.

    None: its value is the stage (`api:stage`) to add or remove; several: they lead to a limit in the first one's stage.
    """
    stage_name = steps[0] if steps else operation.get("value") or ""
    if stage_name.count(":") != 1:
        raise bad_request("Invalid API Stage specified")
    api_id, _, stage = stage_name.partition(":")
    plan_stage = next((each for each in stages if (each["apiId"], each["stage"]) == (api_id, stage)), None)
    others = [each for each in stages if each is not plan_stage]
    if len(steps) > 1:
        if plan_stage is None:
            raise not_found(f"API Stage not found: {stage_name}")
        shape = shape_of("GetUsagePlan").members["apiStages"].shape.element.shape
        path = "/" + "/".join(step.replace("~", "~0").replace("/", "~1") for step in steps[1:])
        return [*others, apply_patches(dict(plan_stage), shape, _STAGE_RULES, [{**operation, "path": path}])]
    if operation.get("op") == "remove":
        if plan_stage is None:
            raise not_found(
                f"Invalid API Stage {{api: {api_id}, stage: {stage}}} specified for usageplan {plan_id}"
            )
        return others
    if operation.get("op") != "add":
        raise bad_request(f"Invalid patch operation {operation.get('op')} for path {operation.get('path')}")
    return [*others, plan_stage or {"apiId": api_id, "stage": stage}]


def as_structure(plan: UsagePlan) -> Structure:
    """A plan as callers see it."""
    return {"id": plan.id, **plan.settings, "tags": dict(plan.tags) or None}


def _key_structure(key: ApiKey) -> Structure:
    return {"id": key.id, "type": "API_KEY", "value": key.value, "name": key.settings.get("name")}
