"""Permissions of layers: the policies that let other accounts use a version."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import no_such, outdated
from redrive.aws.lambda_.documents.layer_records import (
    LAYER_VERSION,
    LayerNamed,
    LayerVersion,
    layer_version_key,
    read_layer,
)
from redrive.aws.lambda_.documents.lookup import policy_text
from redrive.aws.lambda_.documents.records import FunctionPolicy
from redrive.aws.lambda_.functions.permissions import check_policy, new_statement, with_added, without
from redrive.aws.lambda_.layers.operations import check_layer
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.ids import id_text


class LayerPermissions:
    """Adds, removes and shows statements of layers' policies."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def add_layer_version_permission(self, call: Call, params: Structure) -> Structure:
        reference = read_layer(call, params["LayerName"], params["VersionNumber"])
        statement = _statement(reference, params)
        action = "AddLayerVersionPermission"
        policy = await self._change(
            call, reference, params, action, lambda policy: with_added(policy, statement)
        )
        return {"Statement": orjson.dumps(statement).decode(), "RevisionId": policy.revision}

    async def remove_layer_version_permission(self, call: Call, params: Structure) -> Structure:
        reference = read_layer(call, params["LayerName"], params["VersionNumber"])
        action, sid = "RemoveLayerVersionPermission", params["StatementId"]
        await self._change(call, reference, params, action, lambda policy: without(policy, sid))
        return {}

    async def get_layer_version_policy(self, call: Call, params: Structure) -> Structure:
        reference = read_layer(call, params["LayerName"], params["VersionNumber"])
        layer = await self._engine.resources.documents.get(LAYER_VERSION, layer_version_key(reference))
        version = _standing(call, reference, layer, "GetLayerVersionPolicy")
        if not version.policy.statements:
            raise no_such("No policy is associated with the given resource.")
        return {"Policy": policy_text(version.policy), "RevisionId": version.policy.revision}

    async def _change(
        self,
        call: Call,
        reference: LayerNamed,
        params: Structure,
        action: str,
        change: Callable[[FunctionPolicy], tuple[Mapping[str, Any], ...]],
    ) -> FunctionPolicy:
        revision = id_text(self._engine.runtime.message_id())

        async def decide(draft: Draft) -> FunctionPolicy:
            layer = await draft.get(LAYER_VERSION, layer_version_key(reference))
            version = _standing(call, reference, layer, action)
            if params.get("RevisionId") not in (None, version.policy.revision):
                raise outdated("GetLayerPolicy")
            after = FunctionPolicy(revision, change(version.policy))
            check_policy(after)
            draft.put(LAYER_VERSION, version.key, replace(version, policy=after))
            return after

        return await self._engine.resources.write(decide)


def _standing(
    call: Call, reference: LayerNamed, layer_version: LayerVersion | None, action: str
) -> LayerVersion:
    check_layer(call, reference, layer_version, action)
    if layer_version is None:
        raise no_such(f"Layer version {reference.arn} does not exist.")
    return layer_version


def _statement(reference: LayerNamed, params: Structure) -> dict[str, Any]:
    statement = new_statement(reference.arn, params)
    if params.get("OrganizationId"):
        statement["Condition"] = {"StringEquals": {"aws:PrincipalOrgID": params["OrganizationId"]}}
    return statement
