"""Layers: archives that functions share, published as versions that never change, which policies open to others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import PAGES, denied, no_such, outdated_revision
from redrive.aws.lambda_.documents.layer_records import (
    LAYER,
    LAYER_VERSION,
    LayerRecord,
    LayerReference,
    LayerVersion,
    layer_of_arn,
    layer_version_key,
    read_layer,
)
from redrive.aws.lambda_.documents.lookup import policy_text
from redrive.aws.lambda_.documents.ports import CodeKeeper
from redrive.aws.lambda_.documents.records import FunctionPolicy
from redrive.aws.lambda_.functions.archives import Archive, Archives, Downloads
from redrive.aws.lambda_.functions.layer_use import LayerCode
from redrive.aws.lambda_.functions.permissions import (
    check_policy,
    new_statement,
    with_statement,
    without_statement,
)
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.timestamps import to_offset_iso8601
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import ResourceName, id_text

_BY_ARN: Final = "GetLayerVersion"  # the action of both operations


class LayerOperations:
    """Publishes, shows, lists and deletes versions of layers."""

    def __init__(
        self, engine: Engine, archives: Archives, code: CodeKeeper, downloads: Downloads, layers: LayerCode
    ) -> None:
        self._engine = engine
        self._archives = archives
        self._code = code
        self._downloads = downloads
        self._layers = layers

    async def publish_layer_version(self, call: Call, params: Structure) -> Structure:
        name = read_layer(call, params["LayerName"]).name
        if name.account != call.account or name.region != call.region:
            raise denied(call.principal.name, "PublishLayerVersion", LayerReference(name).arn)
        archive = await self._archives.read(call, params["Content"])
        archive_name = ResourceName(name.account, name.region, f"{name.name}~{self._new_id()}")
        digest = await self._code.keep(archive_name, archive.content)
        revision = self._new_id()

        async def decide(draft: Draft) -> LayerVersion:
            layer = await draft.get(LAYER, name.key) or LayerRecord(name)
            number = layer.versions + 1
            version = _layer_version(
                LayerReference(name, number),
                archive_name.name,
                digest,
                archive,
                FunctionPolicy(revision),
                call.now,
                params,
            )
            draft.put(LAYER, name.key, LayerRecord(name, number))
            draft.put(LAYER_VERSION, version.key, version)
            return version

        return self._as_structure(call, await self._engine.resources.write(decide))

    def _new_id(self) -> str:
        return id_text(self._engine.runtime.message_id())

    async def get_layer_version(self, call: Call, params: Structure) -> Structure:
        return await self._get(call, read_layer(call, params["LayerName"], params["VersionNumber"]))

    async def get_layer_version_by_arn(self, call: Call, params: Structure) -> Structure:
        reference = layer_of_arn(params["Arn"])
        if reference is None:  # one of Amazon's own, `awslayer`
            raise no_such()
        return await self._get(call, reference)

    async def _get(self, call: Call, reference: LayerReference) -> Structure:
        version = await self._engine.resources.documents.get(LAYER_VERSION, layer_version_key(reference))
        check_layer(call, reference, version, _BY_ARN)
        if version is None:
            raise no_such()
        return self._as_structure(call, version)

    async def list_layers(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_ListLayers.html; the newest version that fits of each."""
        versions = await self._engine.resources.documents.find(
            LAYER_VERSION, f"{call.account}/{call.region}/"
        )
        # A later version replaces an earlier one: they come in order of their numbers.
        newest = {version.name.key: version for version in versions if _fits(version, params)}
        layers = [newest[key] for key in sorted(newest)]
        return PAGES.of("ListLayers", params, layers, _as_layer, lambda version: version.name.key)

    async def list_layer_versions(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_ListLayerVersions.html; the newest first."""
        reference = read_layer(call, params["LayerName"])
        if reference.name.account != call.account:
            raise denied(call.principal.name, "ListLayerVersions", reference.arn)
        versions = await self._engine.resources.documents.find(LAYER_VERSION, f"{reference.name.key}/")
        matches = [each for each in reversed(versions) if _fits(each, params)]
        page, answer = PAGES.cut(
            "ListLayerVersions", params, matches, lambda version: version.key, descending=True
        )
        return {"LayerVersions": [_render_summary(version) for version in page], **answer}

    async def delete_layer_version(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_DeleteLayerVersion.html; functions that use it keep it."""
        reference = read_layer(call, params["LayerName"], params["VersionNumber"])
        if reference.name.account != call.account:
            raise denied(call.principal.name, "DeleteLayerVersion", reference.arn)

        async def decide(draft: Draft) -> LayerVersion | None:
            key = layer_version_key(reference)
            version = await draft.get(LAYER_VERSION, key)
            if version is not None:
                draft.remove(LAYER_VERSION, key)
            return version

        removed_version = await self._engine.resources.write(decide)
        if removed_version is not None:
            await self._layers.forget_unused([removed_version.use])
        return {}

    def _as_structure(self, call: Call, version: LayerVersion) -> Structure:
        archive_name = ResourceName(version.name.account, version.name.region, version.kept_as)
        return {
            "Content": {
                "CodeSha256": version.code,
                "CodeSize": version.code_bytes,
                "Location": self._downloads.url(call.base_url, archive_name, version.code),
            },
            "LayerArn": LayerReference(version.name).arn,
            **_render_summary(version),
        }


def check_layer(
    call: Call, reference: LayerReference, layer_version: LayerVersion | None, action: str
) -> None:
    """Refuse an action on a layer's version that the caller has no permission for; what is not there has no policy.

    Raises:
        AwsError: `AccessDeniedException`.
    """
    policy = None
    if layer_version is not None and layer_version.policy.statements:
        policy = policy_text(layer_version.policy)
    if not call.may(f"lambda:{action}", reference.arn, reference.name.account, policy):
        raise denied(call.principal.name, action, reference.arn)


def _layer_version(
    reference: LayerReference,
    kept_as: str,
    digest: str,
    archive: Archive,
    policy: FunctionPolicy,
    now: int,
    params: Structure,
) -> LayerVersion:
    return LayerVersion(
        name=reference.name,
        number=reference.number or 0,
        kept_as=kept_as,
        code=digest,
        code_bytes=len(archive.content),
        unpacked_bytes=archive.unpacked_bytes,
        created_at=now,
        policy=policy,
        description=params.get("Description", ""),
        license=params.get("LicenseInfo"),
        runtimes=params.get("CompatibleRuntimes"),
        architectures=params.get("CompatibleArchitectures"),
    )


def _fits(version: LayerVersion, params: Structure) -> bool:
    runtime, architecture = params.get("CompatibleRuntime"), params.get("CompatibleArchitecture")
    return _has(version.runtimes, runtime) and _has(version.architectures, architecture)


def _has(values: Sequence[str] | None, value: str | None) -> bool:
    return value is None or value in (values or ())


def _as_layer(version: LayerVersion) -> Structure:
    return {
        "LayerName": version.name.name,
        "LayerArn": LayerReference(version.name).arn,
        "LatestMatchingVersion": _render_summary(version),
    }


def _render_summary(version: LayerVersion) -> Structure:
    members = {
        "LicenseInfo": version.license,
        "CompatibleRuntimes": version.runtimes,
        "CompatibleArchitectures": version.architectures,
    }
    return {
        "LayerVersionArn": version.reference.arn,
        "Version": version.number,
        "Description": version.description,
        "CreatedDate": to_offset_iso8601(version.created_at),
        **{name: value for name, value in members.items() if value is not None},
    }


class LayerPermissions:
    """Adds, removes and shows statements of layers' policies."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def add_layer_version_permission(self, call: Call, params: Structure) -> Structure:
        reference = read_layer(call, params["LayerName"], params["VersionNumber"])
        statement = _statement(reference, params)
        action = "AddLayerVersionPermission"
        policy = await self._change(
            call, reference, params, action, lambda policy: with_statement(policy, statement)
        )
        return {"Statement": orjson.dumps(statement).decode(), "RevisionId": policy.revision}

    async def remove_layer_version_permission(self, call: Call, params: Structure) -> Structure:
        reference = read_layer(call, params["LayerName"], params["VersionNumber"])
        action, sid = "RemoveLayerVersionPermission", params["StatementId"]
        await self._change(call, reference, params, action, lambda policy: without_statement(policy, sid))
        return {}

    async def get_layer_version_policy(self, call: Call, params: Structure) -> Structure:
        reference = read_layer(call, params["LayerName"], params["VersionNumber"])
        layer = await self._engine.resources.documents.get(LAYER_VERSION, layer_version_key(reference))
        version = _existing_version(call, reference, layer, "GetLayerVersionPolicy")
        if not version.policy.statements:
            raise no_such("No policy is associated with the given resource.")
        return {"Policy": policy_text(version.policy), "RevisionId": version.policy.revision}

    async def _change(
        self,
        call: Call,
        reference: LayerReference,
        params: Structure,
        action: str,
        change: Callable[[FunctionPolicy], tuple[Mapping[str, Any], ...]],
    ) -> FunctionPolicy:
        """Write the statements that `change` makes of a version's policy; returns the policy with its new revision."""
        revision = id_text(self._engine.runtime.message_id())

        async def decide(draft: Draft) -> FunctionPolicy:
            layer = await draft.get(LAYER_VERSION, layer_version_key(reference))
            version = _existing_version(call, reference, layer, action)
            if params.get("RevisionId") not in (None, version.policy.revision):
                raise outdated_revision("GetLayerPolicy")
            after = FunctionPolicy(revision, change(version.policy))
            check_policy(after)
            draft.put(LAYER_VERSION, version.key, replace(version, policy=after))
            return after

        return await self._engine.resources.write(decide)


def _existing_version(
    call: Call, reference: LayerReference, layer_version: LayerVersion | None, action: str
) -> LayerVersion:
    check_layer(call, reference, layer_version, action)
    if layer_version is None:
        raise no_such(f"Layer version {reference.arn} does not exist.")
    return layer_version


def _statement(reference: LayerReference, params: Structure) -> dict[str, Any]:
    statement = new_statement(reference.arn, params)
    if params.get("OrganizationId"):
        statement["Condition"] = {"StringEquals": {"aws:PrincipalOrgID": params["OrganizationId"]}}
    return statement
