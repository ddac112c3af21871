"""Functions come, change and go."""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.backlogs import count_waiting, remove_backlogs_in, update_backlogs_in
from redrive.aws.lambda_.documents.errors import (
    PAGES,
    absent_as,
    conflict,
    denied,
    invalid,
    no_function,
    outdated_revision,
    unoffered,
)
from redrive.aws.lambda_.documents.lookup import Lookup, function_in, key_beginning
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference
from redrive.aws.lambda_.documents.ports import CodeKeeper, Runner
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    FUNCTION,
    FUNCTION_URL,
    PROVISIONED,
    VERSION,
    Configuration,
    FunctionRecord,
    version_key,
)
from redrive.aws.lambda_.functions.archives import Archives, Downloads
from redrive.aws.lambda_.functions.configurations import CREATING, UPDATING, configure, render, render_summary
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.layer_use import LayerCode, check_unpacked, layers_in
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables
from redrive.aws.lambda_.functions.tags import TAGS
from redrive.aws.lambda_.functions.versions import publish_in
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import id_text

logger = logging.getLogger(__name__)

_MANDATORY: Final = (
    "Runtime and Handler are mandatory parameters for functions created with deployment packages."
)


class FunctionOperations:
    """Creates, shows, changes and deletes functions."""

    def __init__(
        self,
        engine: Engine,
        lookup: Lookup,
        archives: Archives,
        code: CodeKeeper,
        runner: Runner,
        downloads: Downloads,
        layers: LayerCode,
        roles: ExecutionRoles,
        variables: SealedVariables,
        *,
        ended_runtimes: bool = False,  # whether runtimes that AWS has ended are taken
    ) -> None:
        self._configure = partial(configure, ended_runtimes=ended_runtimes)
        self._engine = engine
        self._lookup = lookup
        self._archives = archives
        self._code = code
        self._runner = runner
        self._downloads = downloads
        self._layers = layers
        self._roles = roles
        self._variables = variables

    # ---- create ----------------------------------------------------------------------------------------------

    async def create_function(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        names.check_length(reference)
        if reference.name.account != call.account:
            raise denied(call.principal.name, "CreateFunction", reference.arn)
        if params.get("PackageType", "Zip") != "Zip":
            raise unoffered("PackageType")
        if not (params.get("Runtime") and params.get("Handler")):
            raise invalid(_MANDATORY)
        tags = TAGS.read(params.get("Tags"), of_stack=call.of_stack)
        await self._roles.check(call, params["Role"])
        archive = await self._archives.read(call, params["Code"])
        draft_configuration = self._configure(self._blank(call, reference, params), params)
        await self._roles.check_dead_letters(draft_configuration)
        draft_configuration = await self._variables.seal(call, draft_configuration, params)
        draft_configuration = replace(
            draft_configuration, code_bytes=len(archive.content), unpacked_bytes=archive.unpacked_bytes
        )
        await self._check_layers(call, draft_configuration, params)
        await self._refuse_existing(reference)
        draft_configuration = replace(
            draft_configuration, code=await self._code.keep(reference.name, archive.content)
        )
        revision = self._revision()

        async def decide(draft: Draft) -> Configuration:
            if await draft.get(FUNCTION, reference.name.key) is not None:
                raise conflict(f"Function already exist: {reference.name.name}")
            latest = await _layered_in(draft, call, draft_configuration, params)
            function = FunctionRecord(latest, tags=tags)
            draft.put(FUNCTION, reference.name.key, function)
            return await publish_in(draft, function, revision, call.now) if params.get("Publish") else latest

        latest_version = await self._engine.resources.write(decide)
        return render(await self._variables.readable(call, latest_version), state=CREATING)

    def _blank(self, call: Call, reference: FunctionReference, params: Structure) -> Configuration:
        """The configuration of a new function before its code is stored."""
        return Configuration(
            reference.name,
            LATEST,
            revision=self._revision(),
            modified_at=call.now,
            role=params["Role"],
            runtime=params["Runtime"],
            handler=params["Handler"],
            code="",
            code_bytes=0,
        )

    async def _refuse_existing(self, reference: FunctionReference) -> None:
        if await self._engine.resources.documents.get_stored(FUNCTION, reference.name.key) is not None:
            raise conflict(f"Function already exist: {reference.name.name}")

    async def _check_layers(self, call: Call, configuration: Configuration, params: Structure) -> None:
        """Refuse layers that cannot be used, before the code is kept."""
        await self._engine.resources.write(lambda draft: _layered_in(draft, call, configuration, params))

    def _revision(self) -> str:
        return id_text(self._engine.runtime.message_id())

    # ---- show ------------------------------------------------------------------------------------------------

    async def get_function(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        target = await self._lookup.authorized_target(call, reference, "GetFunction")
        function, configuration = target.function, await self._variables.readable(call, target.configuration)
        location = self._downloads.url(call.base_url, configuration.name, configuration.code)
        answer: Structure = {
            "Configuration": render(configuration, reference.qualifier),
            "Code": {"RepositoryType": "S3", "Location": location},
        }
        if function.tags:
            answer["Tags"] = dict(function.tags)
        if function.reserved is not None:
            answer["Concurrency"] = {"ReservedConcurrentExecutions": function.reserved}
        return answer

    async def get_function_configuration(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        target = await self._lookup.authorized_target(call, reference, "GetFunctionConfiguration")
        return render(await self._variables.readable(call, target.configuration), reference.qualifier)

    async def list_functions(self, call: Call, params: Structure) -> Structure:
        beginning = f"{call.account}/{call.region}/"
        after, size = PAGES.after("ListFunctions", params), PAGES.limit("ListFunctions", params)
        documents = self._engine.resources.documents
        functions = await documents.find(FUNCTION, beginning, after, size + 1)
        configurations = [await self._variables.readable(call, function.latest) for function in functions]
        if params.get("FunctionVersion") != "ALL":
            return PAGES.of("ListFunctions", params, configurations, render_summary, _key)
        versions = await documents.find(VERSION, beginning, after, size + 1)
        configurations += [await self._variables.readable(call, version) for version in versions]
        configurations.sort(key=_key)
        return PAGES.of(
            "ListFunctions",
            params,
            configurations,
            lambda version: render_summary(version, version.version),
            _key,
        )

    # ---- change ----------------------------------------------------------------------------------------------

    async def update_function_code(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "UpdateFunctionCode")
        if params.get("ImageUri"):
            raise invalid("Please don't provide ImageUri when updating a function with packageType Zip.")
        archive = await self._archives.read(call, params)
        code = await self._code.keep(reference.name, archive.content)
        architectures = {"Architectures": params["Architectures"]} if "Architectures" in params else {}

        def change(before: Configuration) -> Configuration:
            after = self._configure(before, architectures)
            return replace(
                after, code=code, code_bytes=len(archive.content), unpacked_bytes=archive.unpacked_bytes
            )

        return await self._update(call, reference, params, change)

    async def update_function_configuration(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "UpdateFunctionConfiguration")
        if params.get("Role"):
            await self._roles.check(call, params["Role"])
        return await self._update(
            call, reference, params, lambda before: self._configure(before, params), configures=True
        )

    async def _update(
        self,
        call: Call,
        reference: FunctionReference,
        params: Structure,
        change: Callable[[Configuration], Configuration],
        *,
        configures: bool = False,
    ) -> Structure:
        """Change `$LATEST`, then publish it as a version if the request asks for that.

        With `configures`, the next version is a new one even if it equals the last.
        """
        revision, version_revision = self._revision(), self._revision()

        async def decide(draft: Draft) -> tuple[Configuration, Configuration, Configuration | None]:
            """`$LATEST` before and after the change, and the published version; None: none is published."""
            function = await function_in(draft, reference)
            before = function.latest
            if params.get("RevisionId") not in (None, before.revision):
                raise outdated_revision()
            configuration = await self._variables.seal(call, change(before), params)
            if {"Role", "DeadLetterConfig"} & params.keys():
                await self._roles.check_dead_letters(configuration)
            latest = await _layered_in(draft, call, configuration, params)
            latest = replace(latest, revision=revision, modified_at=call.now)
            if params.get("DryRun"):
                return before, latest, None
            function = replace(function, latest=latest, configured=function.configured or configures)
            draft.put(FUNCTION, reference.name.key, function)
            await update_backlogs_in(draft, self._engine.resources, function)
            if not params.get("Publish"):
                return before, latest, None
            return before, latest, await publish_in(draft, function, version_revision, call.now)

        before, latest, version = await self._engine.resources.write(decide)
        if not params.get("DryRun"):
            await self._runner.drop(reference.name, LATEST, latest.revision)
            await self._forget_unused(reference, before)
        if version is None:
            return render(await self._variables.readable(call, latest), state=UPDATING)
        return render(await self._variables.readable(call, version), version.version, CREATING)

    async def _forget_unused(self, reference: FunctionReference, removal: Configuration) -> None:
        """Forget code and layers that no version has any more; what others are about to use stays."""
        documents = self._engine.resources.documents
        function = await documents.get_stored(FUNCTION, reference.name.key)
        versions = await documents.find(VERSION, key_beginning(reference.name))
        used_digests = {version.code for version in versions} | (
            {function.latest.code} if function else set()
        )
        if removal.code not in used_digests:
            await self._code.forget(reference.name, [removal.code])
        await self._layers.forget_unused(removal.layers)

    # ---- delete ----------------------------------------------------------------------------------------------

    async def delete_function(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        if reference.qualifier == LATEST:  # before the function is looked for (recorded)
            raise invalid("$LATEST version cannot be deleted without deleting the function.")
        function_reference = reference._replace(qualifier=None)
        with absent_as(no_function(function_reference.arn)):
            await self._lookup.function_as_named(call, reference, "DeleteFunction")
        if reference.qualifier is None:
            await self._delete(reference)
        else:
            # An absent version is not an error (recorded).
            await self._delete_version(reference, reference.qualifier)
        return {"StatusCode": 204}

    async def _delete(self, reference: FunctionReference) -> None:
        """Delete a function and all that is its own, then end its processes and remove its code."""

        async def decide(draft: Draft) -> list[Configuration]:
            function = await function_in(draft, reference)
            beginning = key_beginning(reference.name)
            versions = await draft.find(VERSION, beginning)
            for key, _ in versions:
                draft.remove(VERSION, key)
            for key, _ in await draft.find(ALIAS, beginning):
                draft.remove(ALIAS, key)
            for url in function.urls.values():
                draft.remove(FUNCTION_URL, url.id)
            for key, _ in await draft.find(PROVISIONED, beginning):
                draft.remove(PROVISIONED, key)
            draft.remove(FUNCTION, reference.name.key)
            await remove_backlogs_in(draft, self._engine.resources, function.name)
            return [function.latest, *(version for _, version in versions)]

        event_count = await count_waiting(self._engine, reference.name)
        deletions = await self._engine.resources.write(decide)
        _warn_of_dropped(reference, event_count)
        await self._runner.drop(reference.name)
        await self._code.forget(reference.name, {version.code for version in deletions})
        await self._layers.forget_unused({layer for version in deletions for layer in version.layers})

    async def _delete_version(self, reference: FunctionReference, version: str) -> None:
        """Delete a version, unless an alias leads to it; one that is not there is no fault."""

        async def decide(draft: Draft) -> Configuration | None:
            function = await function_in(draft, reference)
            key = version_key(reference.name, version)
            configuration = await draft.get(VERSION, key)
            if configuration is None:
                return None
            for _, alias in await draft.find(ALIAS, key_beginning(reference.name)):
                if version == alias.version or version in alias.weights:
                    raise conflict(
                        f"Version {version} is used by the alias {alias.name} and cannot be deleted."  # chosen
                    )
            draft.remove(VERSION, key)
            draft.remove(PROVISIONED, f"{key_beginning(reference.name)}{version}")
            policies = {
                qualifier: policy for qualifier, policy in function.policies.items() if qualifier != version
            }
            draft.put(FUNCTION, reference.name.key, replace(function, policies=policies))
            await remove_backlogs_in(draft, self._engine.resources, function.name, version)
            return configuration

        event_count = await count_waiting(self._engine, reference.name, version)
        configuration = await self._engine.resources.write(decide)
        if configuration is None:
            return
        _warn_of_dropped(reference, event_count)
        await self._runner.drop(reference.name, version)
        await self._forget_unused(reference, configuration)


def _warn_of_dropped(reference: FunctionReference, event_count: int) -> None:
    """Warn of events that went with their function: they are in no dead-letter queue."""
    if event_count:
        logger.warning(
            "function.events_dropped function=%s events=%d: it was deleted while they waited",
            reference.arn,
            event_count,
        )


async def _layered_in(
    draft: Draft, call: Call, configuration: Configuration, params: Structure
) -> Configuration:
    """A configuration with the layers that a caller gives for it, all of which unpacks to no more than it may."""
    if "Layers" in params:
        configuration = replace(configuration, layers=await layers_in(draft, call, params["Layers"]))
    check_unpacked(configuration)
    return configuration


def _key(version: Configuration) -> str:
    return version.name.key if version.version == LATEST else version_key(version.name, version.version)
