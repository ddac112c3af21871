"""Versions: what `$LATEST` was when it was published, for good."""

from dataclasses import replace

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import PAGES, invalid, outdated
from redrive.aws.lambda_.documents.lookup import Lookup, function_in, key_beginning
from redrive.aws.lambda_.documents.names import LATEST
from redrive.aws.lambda_.documents.records import (
    FUNCTION,
    VERSION,
    Configuration,
    FunctionRecord,
    version_key,
)
from redrive.aws.lambda_.functions.rendering import listed, rendered
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.ids import id_text


class VersionOperations:
    """Publishes and lists versions."""

    def __init__(self, engine: Engine, lookup: Lookup, variables: SealedVariables) -> None:
        """Do it through this engine; variables are shown to who may decrypt them."""
        self._engine = engine
        self._variables = variables
        self._lookup = lookup

    async def publish_version(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "PublishVersion")
        revision, of_latest = (id_text(self._engine.runtime.message_id()) for _ in range(2))

        async def decide(draft: Draft) -> Configuration:
            function = await function_in(draft, reference)
            latest = function.latest
            if params.get("RevisionId") not in (None, latest.revision):
                raise outdated()
            code_digest = params.get("CodeSha256")
            if code_digest and code_digest != latest.code:
                raise invalid(
                    f"CodeSHA256 ({code_digest}) is different from current CodeSHA256 in $LATEST ({latest.code})."
                    " Please try again with the CodeSHA256 in $LATEST."
                )
            description = params.get("Description")
            return await publish_in(draft, function, revision, call.now, description, of_latest)

        version = await self._engine.resources.write(decide)
        return rendered(await self._variables.readable(call, version), version.version)

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
            operation, params, readable_versions, lambda version: listed(version, version.version), _key
        )


def _key(version: Configuration) -> str:
    """The key that a page after this version begins behind; `$LATEST` is before all others."""
    if version.version == LATEST:
        return key_beginning(version.name)
    return version_key(version.name, version.version)


async def publish_in(
    draft: Draft,
    function: FunctionRecord,
    revision: str,
    now: int,
    description: str | None = None,
    of_latest: str = "",
) -> Configuration:
    """Publish what `$LATEST` is now; where the last version is the same, it is that one.

    Args:
        draft: What is published is written with it.
        function: As the draft has it.
        revision: Of the version, if one is made.
        now: ms.
        description: The version's own; None: that of `$LATEST`.
        of_latest: The revision that `$LATEST` has from then on; empty: it keeps its own.
    """
    if function.versions and not function.configured:
        last = await draft.get(VERSION, version_key(function.name, str(function.versions)))
        if last is not None and _same(last, function.latest):
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
    latest = replace(function.latest, revision=of_latest or function.latest.revision)
    versions = function.versions + 1
    draft.put(
        FUNCTION, function.name.key, replace(function, latest=latest, versions=versions, configured=False)
    )
    return version


def _same(version: Configuration, latest: Configuration) -> bool:
    """True if a version is what `$LATEST` is, whatever it is called."""
    return version == replace(
        latest,
        version=version.version,
        revision=version.revision,
        modified_at=version.modified_at,
        description=version.description,
    )
