"""Layers: archives that functions share, published as versions that never change."""

from collections.abc import Sequence
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.lambda_ import paging
from redrive.aws.lambda_.errors import denied, no_such
from redrive.aws.lambda_.functions.archives import Archive, Archives
from redrive.aws.lambda_.functions.downloads import Downloads
from redrive.aws.lambda_.functions.rendering import timestamp
from redrive.aws.lambda_.layers.records import (
    LAYER,
    LAYER_VERSION,
    LayerNamed,
    LayerRecord,
    LayerVersion,
    layer_of_arn,
    layer_version_key,
    read_layer,
)
from redrive.aws.lambda_.layers.use import LayerCode
from redrive.aws.lambda_.lookup import policy_text
from redrive.aws.lambda_.ports import CodeKeeper
from redrive.aws.lambda_.records import Policy
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.ids import id_text
from redrive.model.names import ResourceName

_BY_ARN: Final = "GetLayerVersion"  # the action of both operations


class LayerOperations:
    """Publishes, shows, lists and deletes versions of layers."""

    def __init__(
        self, engine: Engine, archives: Archives, code: CodeKeeper, downloads: Downloads, layers: LayerCode
    ) -> None:
        """Do it through these.

        Args:
            engine: Where layers are kept.
            archives: Reads the archives that callers give.
            code: Keeps them.
            downloads: Where they can be fetched from.
            layers: Forgets those that nobody needs any more.
        """
        self._engine = engine
        self._archives = archives
        self._code = code
        self._downloads = downloads
        self._layers = layers

    async def publish_layer_version(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_PublishLayerVersion.html."""
        name = read_layer(call, params["LayerName"]).name
        if name.account != call.account or name.region != call.region:
            raise denied(call.principal.name, "PublishLayerVersion", LayerNamed(name).arn)
        archive = await self._archives.read(call, params["Content"])
        kept = ResourceName(name.account, name.region, f"{name.name}~{self._mark()}")
        digest = await self._code.keep(kept, archive.content)
        revision = self._mark()

        async def decide(draft: Draft) -> LayerVersion:
            layer = await draft.get(LAYER, name.key) or LayerRecord(name)
            number = layer.versions + 1
            made = _made(
                LayerNamed(name, number), kept.name, digest, archive, Policy(revision), call.now, params
            )
            draft.put(LAYER, name.key, LayerRecord(name, number))
            draft.put(LAYER_VERSION, made.key, made)
            return made

        return self._shown(call, await self._engine.resources.write(decide))

    def _mark(self) -> str:
        return id_text(self._engine.runtime.message_id())

    async def get_layer_version(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_GetLayerVersion.html."""
        return await self._get(call, read_layer(call, params["LayerName"], params["VersionNumber"]))

    async def get_layer_version_by_arn(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_GetLayerVersionByArn.html."""
        named = layer_of_arn(params["Arn"])
        if named is None:  # one of Amazon's own, `awslayer`
            raise no_such()
        return await self._get(call, named)

    async def _get(self, call: Call, named: LayerNamed) -> Structure:
        found = await self._engine.resources.documents.get(LAYER_VERSION, layer_version_key(named))
        check_layer(call, named, found, _BY_ARN)
        if found is None:
            raise no_such()
        return self._shown(call, found)

    async def list_layers(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_ListLayers.html; the newest version that fits of each."""
        found = await self._engine.resources.documents.find(LAYER_VERSION, f"{call.account}/{call.region}/")
        newest = {version.name.key: version for version in found if _fits(version, params)}
        after, size = paging.after(params), paging.limit(params)
        shown = [newest[key] for key in sorted(newest) if key > after]
        return paging.paged(shown, lambda version: version.name.key, size, "Layers", _as_layer)

    async def list_layer_versions(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_ListLayerVersions.html; the newest first."""
        named = read_layer(call, params["LayerName"])
        if named.name.account != call.account:
            raise denied(call.principal.name, "ListLayerVersions", named.arn)
        found = await self._engine.resources.documents.find(LAYER_VERSION, f"{named.name.key}/")
        after, size = paging.after(params), paging.limit(params)
        shown = [each for each in reversed(found) if _fits(each, params) and (not after or each.key < after)]
        return paging.paged(shown, lambda version: version.key, size, "LayerVersions", _listed)

    async def delete_layer_version(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_DeleteLayerVersion.html; functions that use it keep it."""
        named = read_layer(call, params["LayerName"], params["VersionNumber"])
        if named.name.account != call.account:
            raise denied(call.principal.name, "DeleteLayerVersion", named.arn)

        async def decide(draft: Draft) -> LayerVersion | None:
            key = layer_version_key(named)
            found = await draft.get(LAYER_VERSION, key)
            if found is not None:
                draft.remove(LAYER_VERSION, key)
            return found

        gone = await self._engine.resources.write(decide)
        if gone is not None:
            await self._layers.forget_unused([gone.use])
        return {}

    def _shown(self, call: Call, version: LayerVersion) -> Structure:
        kept = ResourceName(version.name.account, version.name.region, version.kept_as)
        return {
            "Content": {
                "CodeSha256": version.code,
                "CodeSize": version.code_bytes,
                "Location": self._downloads.url(call.base_url, kept, version.code),
            },
            "LayerArn": LayerNamed(version.name).arn,
            **_listed(version),
        }


def check_layer(call: Call, named: LayerNamed, found: LayerVersion | None, action: str) -> None:
    """Refuse an action on a layer's version that the caller has no permission for; what is not there has no policy.

    Raises:
        AwsError: `AccessDeniedException`.
    """
    policy = policy_text(found.policy) if found is not None and found.policy.statements else None
    if not call.may(f"lambda:{action}", named.arn, named.name.account, policy):
        raise denied(call.principal.name, action, named.arn)


def _made(
    named: LayerNamed,
    kept_as: str,
    digest: str,
    archive: Archive,
    policy: Policy,
    now: int,
    params: Structure,
) -> LayerVersion:
    return LayerVersion(
        named.name,
        named.number or 0,
        kept_as,
        digest,
        len(archive.content),
        archive.unpacked_bytes,
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


def _has(said: Sequence[str] | None, wanted: str | None) -> bool:
    return wanted is None or wanted in (said or ())


def _as_layer(version: LayerVersion) -> Structure:
    return {
        "LayerName": version.name.name,
        "LayerArn": LayerNamed(version.name).arn,
        "LatestMatchingVersion": _listed(version),
    }


def _listed(version: LayerVersion) -> Structure:
    given = {
        "LicenseInfo": version.license,
        "CompatibleRuntimes": version.runtimes,
        "CompatibleArchitectures": version.architectures,
    }
    return {
        "LayerVersionArn": version.named.arn,
        "Version": version.number,
        "Description": version.description,
        "CreatedDate": timestamp(version.created_at),
        **{name: value for name, value in given.items() if value is not None},
    }
