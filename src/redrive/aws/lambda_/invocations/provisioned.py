"""Provisioned concurrency: how many environments of a version are kept ready, and how a node keeps them so."""

import asyncio
import logging
from typing import Final, NamedTuple

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import PAGES, absent_as, conflict, error, invalid, typeless
from redrive.aws.lambda_.documents.lookup import (
    FunctionTarget,
    Lookup,
    function_in,
    key_beginning,
    no_alias_or_version,
)
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference, arn_of, is_version
from redrive.aws.lambda_.documents.ports import Runner
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    PROVISIONED,
    VERSION,
    FunctionRecord,
    Provisioned,
    qualified_key,
)
from redrive.aws.lambda_.functions.settings import CONCURRENT_MAX, UNRESERVED_MIN, reserved_by
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.timestamps import to_offset_iso8601
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.model.function import FunctionVersion

logger = logging.getLogger(__name__)

_KINDS: Final = frozenset({ALIAS.name, PROVISIONED.name, VERSION.name, ""})
_AGAIN_MS: Final = 10_000  # until a store that was away is asked again


class _Pool(NamedTuple):
    """The environments of a version that the runner keeps."""

    function: FunctionVersion
    size: int


class Warmth:
    """Keeps environments, by configurations that any node may change."""

    def __init__(self, engine: Engine, lookup: Lookup, executor: Executor, runner: Runner) -> None:
        self._engine = engine
        self._lookup = lookup
        self._executor = executor
        self._runner = runner
        self._pools: dict[str, _Pool] = {}  # By the key of the configuration
        self._following: asyncio.Task[None] | None = None
        self._is_outdated = False
        documents = engine.resources.documents
        documents.on_write(lambda kind, _key, _value: self._changed(kind))
        documents.on_change_elsewhere(lambda kind, _key: self._changed(kind))

    def start(self) -> None:
        """Keep what is asked for now, and from now on what will be."""
        self._is_outdated = True
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def _changed(self, kind: str) -> None:
        """Follow the settings again after a write of one of their kinds."""
        if kind not in _KINDS or self._following is None:
            return
        self._is_outdated = True
        if self._following.done():
            self._following = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        """Keep as many processes as the settings ask for, again while they change or cannot be read."""
        while self._is_outdated:
            self._is_outdated = False
            try:
                await self._keep()
            except StoreUnavailable as error:
                logger.warning("provisioned.unread error=%s", error)
                self._is_outdated = True
                await self._engine.clock.sleep_until(self._engine.clock.now() + _AGAIN_MS)

    async def _keep(self) -> None:
        """Have the runner keep the number of processes that each provision asks for, and none for those that are gone."""
        entries = await self._engine.resources.documents.entries(PROVISIONED)
        pools: dict[str, _Pool] = {}
        for key, config in entries:
            function = await self._function(config)
            if function is not None:
                pools[key] = _Pool(function, config.wanted)
        for key, old_pool in self._pools.items():
            if key not in pools or pools[key].function.key != old_pool.function.key:
                self._runner.keep(old_pool.function, 0)
        for key, pool in pools.items():
            if self._pools.get(key) != pool:
                self._runner.keep(*pool)
        self._pools = pools

    async def _function(self, config: Provisioned) -> FunctionVersion | None:
        """The version that is meant now, ready to run; None: it is gone, or its code cannot be had."""
        target = await self._lookup.at(arn_of(config.function, config.qualifier))
        if target is None:
            return None
        try:
            return await self._executor.runnable(target.configuration, target.function.reserved)
        except StoreUnavailable:
            raise
        except (RedriveError, ValueError) as error:
            logger.warning("provisioned.unusable function=%s error=%s", config.key, error)
            return None

    def readiness(self, config: Provisioned) -> tuple[int, str]:
        """The number of environments that this node has ready of those that are wanted, and why it has no more."""
        pool = self._pools.get(config.key)
        if pool is None:
            return 0, ""
        ready, failure = self._runner.readiness(pool.function)
        return min(ready, config.wanted), failure

    async def close(self) -> None:
        """Follow no more."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)


_UNPUBLISHED: Final = "Provisioned Concurrency Configs cannot be applied to unpublished function versions."
_UNQUALIFIED: Final = "The function resource provided must be an alias or a published version."
_UNSET: Final = "No Provisioned Concurrency Config found for this function"


class ProvisionedConcurrency:
    """Puts, shows, lists and deletes configurations."""

    def __init__(self, engine: Engine, lookup: Lookup, warmth: Warmth) -> None:
        """Use this engine; `warmth` knows the environments that are ready on this node."""
        self._engine = engine
        self._lookup = lookup
        self._warmth = warmth

    async def put_provisioned_concurrency_config(self, call: Call, params: Structure) -> Structure:
        reference, target = await self._reference(
            call, params, "PutProvisionedConcurrencyConfig", _UNPUBLISHED
        )
        if target.configuration.version == LATEST:
            raise invalid(_UNPUBLISHED)
        requested: int = params["ProvisionedConcurrentExecutions"]
        await self._check_account(reference, target.function, requested)
        provisioned = Provisioned(reference.name, reference.qualifier or "", requested, call.now)

        async def decide(draft: Draft) -> None:
            function = await function_in(draft, reference)
            configs = await draft.find(PROVISIONED, key_beginning(reference.name))
            others = [each for _, each in configs if each.qualifier != provisioned.qualifier]
            await _refuse_if_provisioned_in(draft, provisioned, target, others)
            total = requested + sum(each.wanted for each in others)
            if function.reserved is not None and total > function.reserved:
                raise invalid(
                    "Requested Provisioned Concurrency should not be greater than the reservedConcurrentExecution for"
                    " function"
                )
            draft.put(PROVISIONED, provisioned.key, provisioned)

        await self._engine.resources.write(decide)
        return {**_as_structure(provisioned, 0), "Status": "IN_PROGRESS"}

    async def get_provisioned_concurrency_config(self, call: Call, params: Structure) -> Structure:
        reference, _ = await self._reference(call, params, "GetProvisionedConcurrencyConfig", _UNQUALIFIED)
        key = qualified_key(reference.name, reference.qualifier or "")
        config = await self._engine.resources.documents.get(PROVISIONED, key)
        if config is None:
            raise error("ProvisionedConcurrencyConfigNotFoundException", _UNSET)
        return self._state(config)

    async def list_provisioned_concurrency_configs(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        operation = "ListProvisionedConcurrencyConfigs"
        await self._lookup.function(call, reference, operation)
        after, size = PAGES.after(operation, params), PAGES.limit(operation, params)
        documents, beginning = self._engine.resources.documents, key_beginning(reference.name)
        configs = await documents.find(PROVISIONED, beginning, after, size + 1)

        def as_structure(config: Provisioned) -> Structure:
            return {"FunctionArn": arn_of(config.function, config.qualifier), **self._state(config)}

        return PAGES.of(operation, params, configs, as_structure, lambda config: config.key)

    async def delete_provisioned_concurrency_config(self, call: Call, params: Structure) -> Structure:
        reference, _ = await self._reference(call, params, "DeleteProvisionedConcurrencyConfig", _UNQUALIFIED)
        key = qualified_key(reference.name, reference.qualifier or "")
        await self._engine.resources.documents.remove(PROVISIONED, key)
        return {}

    async def _reference(
        self, call: Call, params: Structure, action: str, unqualified: str
    ) -> tuple[FunctionReference, FunctionTarget]:
        """The version or alias of a call, and its target; `unqualified` is the refusal of a call without one."""
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        if reference.qualifier in (None, LATEST):
            raise invalid(unqualified)
        with absent_as(no_alias_or_version(reference)):
            return reference, await self._lookup.authorized_target(call, reference, action)

    async def _check_account(
        self, reference: FunctionReference, function: FunctionRecord, requested: int
    ) -> None:
        """Refuse what would leave an account less than a hundred at once for functions without a reservation."""
        if function.reserved is not None:
            return
        reserved = await reserved_by(self._engine.resources.documents, reference)
        unreserved = CONCURRENT_MAX - reserved
        if requested > unreserved:
            raise typeless(
                "Specified ConcurrentExecutions for function is greater than account's unreserved concurrency"
                f" [{unreserved}]."
            )
        if unreserved - requested < UNRESERVED_MIN:
            raise typeless(
                "Specified ConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below"
                f" its minimum value of [{UNRESERVED_MIN}]."
            )

    def _state(self, config: Provisioned) -> Structure:
        """The settings with the state of their processes as answers have them."""
        ready, failure = self._warmth.readiness(config)
        state = _as_structure(config, ready)
        if ready >= config.wanted:
            return {**state, "Status": "READY"}
        if failure:
            return {**state, "Status": "FAILED", "StatusReason": failure}
        return {**state, "Status": "IN_PROGRESS"}


async def _refuse_if_provisioned_in(
    draft: Draft, provisioned: Provisioned, target: FunctionTarget, others: list[Provisioned]
) -> None:
    """Refuse provisioned concurrency for a version that has it already, by its number or by another alias."""
    version = target.configuration.version
    for other in others:
        if is_version(other.qualifier):
            is_same = other.qualifier == version
        else:
            alias = await draft.get(ALIAS, other.key)
            is_same = alias is not None and alias.version == version
        if is_same:
            if is_version(provisioned.qualifier):
                raise conflict("Version is pointed by a Provisioned Concurrency alias")
            raise conflict(
                "Alias can't be used for Provisioned Concurrency configuration on an already Provisioned version"
            )


def _as_structure(config: Provisioned, ready: int) -> Structure:
    return {
        "RequestedProvisionedConcurrentExecutions": config.wanted,
        "AllocatedProvisionedConcurrentExecutions": ready,
        "AvailableProvisionedConcurrentExecutions": ready,
        "LastModified": to_offset_iso8601(config.modified_at),
    }
