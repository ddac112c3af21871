"""Aliases: names for versions, and for shares of two of them."""

from collections.abc import Mapping
from dataclasses import replace

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.backlogs import follow_in, remove_in
from redrive.aws.lambda_.documents.errors import (
    PAGES,
    absent_as,
    invalid,
    no_function,
    no_such,
    outdated,
    taken,
    typeless,
)
from redrive.aws.lambda_.documents.lookup import Lookup, function_in, key_beginning
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference, arn_of
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    FUNCTION,
    PROVISIONED,
    VERSION,
    FunctionAlias,
    FunctionRecord,
    qualified_key,
    version_key,
)
from redrive.aws.lambda_.documents.url_records import without_url_in
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.ids import id_text


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
            reference.name,
            params["Name"],
            params["FunctionVersion"],
            self._revision(),
            params.get("Description", ""),
            _weights(params),
        )

        async def decide(draft: Draft) -> None:
            await function_in(draft, reference)
            if await draft.get(ALIAS, qualified_key(reference.name, alias.name)) is not None:
                raise taken(f"Alias already exists: {arn_of(reference.name, alias.name)}")
            await _check_in(draft, alias)
            draft.put(ALIAS, qualified_key(reference.name, alias.name), alias)

        await self._engine.resources.write(decide)
        return _rendered(alias)

    async def get_alias(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "GetAlias")
        alias = await self._engine.resources.documents.get(
            ALIAS, qualified_key(reference.name, params["Name"])
        )
        if alias is None:
            raise no_such(f"Cannot find alias arn: {arn_of(reference.name, params['Name'])}")
        return _rendered(alias)

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
                raise outdated()
            after = replace(
                before,
                version=params.get("FunctionVersion", before.version),
                description=params.get("Description", before.description),
                weights=_weights(params) if "RoutingConfig" in params else before.weights,
                revision=revision,
            )
            await _check_in(draft, after)
            draft.put(ALIAS, key, after)
            await follow_in(draft, self._engine.resources, function)
            return after

        return _rendered(await self._engine.resources.write(decide))

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
            await remove_in(draft, self._engine.resources, function.name, alias)

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
        chosen = [alias for alias in aliases if version in (None, alias.version)]
        return PAGES.of(
            "ListAliases", params, chosen, _rendered, lambda alias: qualified_key(reference.name, alias.name)
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


async def _check_in(draft: Draft, alias: FunctionAlias) -> None:
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


def _rendered(alias: FunctionAlias) -> Structure:
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
