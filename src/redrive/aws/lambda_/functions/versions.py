"""Versions, what `$LATEST` was when it was published, for good; and aliases, names for versions or shares of two."""

from collections.abc import Mapping
from dataclasses import replace

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.backlogs import remove_backlogs_in, update_backlogs_in
from redrive.aws.lambda_.documents.errors import (
    PAGES,
    absent_as,
    conflict,
    invalid,
    no_function,
    no_such,
    outdated_revision,
    typeless,
)
from redrive.aws.lambda_.documents.lookup import Lookup, function_in, key_beginning
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference, arn_of
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    FUNCTION,
    PROVISIONED,
    VERSION,
    Configuration,
    FunctionAlias,
    FunctionRecord,
    qualified_key,
    version_key,
    without_url_in,
)
from redrive.aws.lambda_.functions.configurations import render, render_summary
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import id_text


class VersionOperations:
    """Publishes and lists versions."""

    def __init__(self, engine: Engine, lookup: Lookup, variables: SealedVariables) -> None:
        """Use this engine; variables are shown only to callers who may decrypt them."""
        self._engine = engine
        self._variables = variables
        self._lookup = lookup

    async def publish_version(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "PublishVersion")
        new_id = self._engine.runtime.message_id
        revision, latest_revision = id_text(new_id()), id_text(new_id())

        async def decide(draft: Draft) -> Configuration:
            function = await function_in(draft, reference)
            latest = function.latest
            if params.get("RevisionId") not in (None, latest.revision):
                raise outdated_revision()
            code_digest = params.get("CodeSha256")
            if code_digest and code_digest != latest.code:
                raise invalid(
                    f"CodeSHA256 ({code_digest}) is different from current CodeSHA256 in $LATEST ({latest.code})."
                    " Please try again with the CodeSHA256 in $LATEST."
                )
            description = params.get("Description")
            return await publish_in(draft, function, revision, call.now, description, latest_revision)

        version = await self._engine.resources.write(decide)
        return render(await self._variables.readable(call, version), version.version)

    async def list_versions_by_function(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        operation = "ListVersionsByFunction"
        function = await self._lookup.function(call, reference, operation)
        after, size = PAGES.after(operation, params), PAGES.limit(operation, params)
        beginning = key_beginning(function.name)
        documents = self._engine.resources.documents
        stored_versions = await documents.find(VERSION, beginning, after or beginning, size + 1)
        versions = stored_versions if after else [function.latest, *stored_versions]
        readable_versions = [await self._variables.readable(call, version) for version in versions]
        return PAGES.of(
            operation,
            params,
            readable_versions,
            lambda version: render_summary(version, version.version),
            _key,
        )


def _key(version: Configuration) -> str:
    """The key that a page after this version begins behind; `$LATEST` is before all others."""
    if version.version == LATEST:
        return key_beginning(version.name)
    return version_key(version.name, version.version)


async def publish_in(
    draft: Draft,
    function: FunctionRecord,
    revision: str,  # of the version, if one is made
    now: int,
    description: str | None = None,  # the version's own; None: that of `$LATEST`
    latest_revision: str = "",  # that of `$LATEST` from then on; empty: it keeps its own
) -> Configuration:
    """Publish `$LATEST`; returns the new version, or the last one if nothing was updated since."""
    if function.versions and not function.configured:
        last = await draft.get(VERSION, version_key(function.name, str(function.versions)))
        if last is not None and _is_same(last, function.latest):
            return last
    number = str(function.versions + 1)
    version = replace(
        function.latest,
        version=number,
        revision=revision,
        modified_at=now,
        description=function.latest.description if description is None else description,
    )
    draft.put(VERSION, version_key(function.name, number), version)
    latest = replace(function.latest, revision=latest_revision or function.latest.revision)
    versions = function.versions + 1
    draft.put(
        FUNCTION, function.name.key, replace(function, latest=latest, versions=versions, configured=False)
    )
    return version


def _is_same(version: Configuration, latest: Configuration) -> bool:
    """True if a version is what `$LATEST` is, whatever it is called."""
    return version == replace(
        latest,
        version=version.version,
        revision=version.revision,
        modified_at=version.modified_at,
        description=version.description,
    )


class AliasOperations:
    """Creates, shows, changes and deletes aliases."""

    def __init__(self, engine: Engine, lookup: Lookup) -> None:
        self._engine = engine
        self._lookup = lookup

    async def create_alias(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        with absent_as(no_function(reference._replace(qualifier=params["FunctionVersion"]).arn)):
            await self._lookup.function(call, reference, "CreateAlias")
        alias = FunctionAlias(
            function=reference.name,
            name=params["Name"],
            version=params["FunctionVersion"],
            revision=self._revision(),
            description=params.get("Description", ""),
            weights=_weights(params),
        )

        async def decide(draft: Draft) -> None:
            await function_in(draft, reference)
            if await draft.get(ALIAS, qualified_key(reference.name, alias.name)) is not None:
                raise conflict(f"Alias already exists: {arn_of(reference.name, alias.name)}")
            await _check_alias(draft, alias)
            draft.put(ALIAS, qualified_key(reference.name, alias.name), alias)

        await self._engine.resources.write(decide)
        return _render(alias)

    async def get_alias(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "GetAlias")
        alias = await self._engine.resources.documents.get(
            ALIAS, qualified_key(reference.name, params["Name"])
        )
        if alias is None:
            raise no_such(f"Cannot find alias arn: {arn_of(reference.name, params['Name'])}")
        return _render(alias)

    async def update_alias(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "UpdateAlias")
        revision = self._revision()

        async def decide(draft: Draft) -> FunctionAlias:
            function = await function_in(draft, reference)
            key = qualified_key(reference.name, params["Name"])
            before = await draft.get(ALIAS, key)
            if before is None:
                raise no_such(f"Alias not found: {arn_of(reference.name, params['Name'])}")
            if params.get("RevisionId") not in (None, before.revision):
                raise outdated_revision()
            after = replace(
                before,
                version=params.get("FunctionVersion", before.version),
                description=params.get("Description", before.description),
                weights=_weights(params) if "RoutingConfig" in params else before.weights,
                revision=revision,
            )
            await _check_alias(draft, after)
            draft.put(ALIAS, key, after)
            await update_backlogs_in(draft, self._engine.resources, function)
            return after

        return _render(await self._engine.resources.write(decide))

    async def delete_alias(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_DeleteAlias.html; once it is gone, again is not an error."""
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "DeleteAlias")
        alias = params["Name"]

        async def decide(draft: Draft) -> None:
            function = await function_in(draft, reference)
            if await draft.get(ALIAS, qualified_key(reference.name, alias)) is None:
                return
            draft.remove(ALIAS, qualified_key(reference.name, alias))
            function = without_url_in(draft, _without_policy(function, alias), alias)
            draft.put(FUNCTION, reference.name.key, function)
            draft.remove(PROVISIONED, qualified_key(reference.name, alias))
            await remove_backlogs_in(draft, self._engine.resources, function.name, alias)

        await self._engine.resources.write(decide)
        return {}

    async def list_aliases(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "ListAliases")
        after, size = PAGES.after("ListAliases", params), PAGES.limit("ListAliases", params)
        version = params.get("FunctionVersion")
        documents = self._engine.resources.documents
        aliases = await documents.find(
            ALIAS, key_beginning(reference.name), after, None if version else size + 1
        )
        matches = [alias for alias in aliases if version in (None, alias.version)]
        return PAGES.of(
            "ListAliases", params, matches, _render, lambda alias: qualified_key(reference.name, alias.name)
        )

    def _revision(self) -> str:
        return id_text(self._engine.runtime.message_id())


def _without_policy(function: FunctionRecord, qualifier: str) -> FunctionRecord:
    others = {each: policy for each, policy in function.policies.items() if each != qualifier}
    return replace(function, policies=others)


def _weights(params: Structure) -> Mapping[str, float]:
    weights: dict[str, float] = params.get("RoutingConfig", {}).get("AdditionalVersionWeights") or {}
    if len(weights) > 1:
        raise invalid("Number of items in AdditionalVersionWeights cannot be greater than 1")
    return weights


async def _check_alias(draft: Draft, alias: FunctionAlias) -> None:
    """Refuse an alias for a version that is not there, or weights that cannot be."""
    if alias.weights and LATEST in (alias.version, *alias.weights):
        raise typeless("$LATEST is not supported for an alias pointing to more than 1 version")
    if alias.version in alias.weights:
        raise invalid(
            f"Invalid function version {alias.version}. Function version {alias.version} is already included in"
            " routing configuration."
        )
    for version in (alias.version, *alias.weights):
        if version != LATEST and await draft.get(VERSION, version_key(alias.function, version)) is None:
            raise no_function(FunctionReference(alias.function, version).arn)


def _render(alias: FunctionAlias) -> Structure:
    answer: Structure = {
        "AliasArn": arn_of(alias.function, alias.name),
        "Description": alias.description,
        "FunctionVersion": alias.version,
        "Name": alias.name,
        "RevisionId": alias.revision,
    }
    if alias.weights:
        answer["RoutingConfig"] = {"AdditionalVersionWeights": dict(alias.weights)}
    return answer
