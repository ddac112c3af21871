"""AWS Lambda: functions that this server runs."""

from collections.abc import Awaitable, Callable
from typing import Final

from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.service import OfferedService
from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.lambda_.documents.ports import CodeKeeper, Runner
from redrive.aws.lambda_.functions.aliases import AliasOperations
from redrive.aws.lambda_.functions.archives import Archives
from redrive.aws.lambda_.functions.downloads import Downloads
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.fixed_settings import FixedSettings
from redrive.aws.lambda_.functions.layer_use import LayerCode
from redrive.aws.lambda_.functions.lifecycle import FunctionOperations
from redrive.aws.lambda_.functions.permissions import FunctionPermissions
from redrive.aws.lambda_.functions.quotas import ConcurrencyOperations
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables
from redrive.aws.lambda_.functions.tags import TAGS, FunctionTags
from redrive.aws.lambda_.functions.versions import VersionOperations
from redrive.aws.lambda_.invocations.asynchronous import AsyncInvocations
from redrive.aws.lambda_.invocations.event_settings import EventSettingsOperations
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.invoking import Invoking
from redrive.aws.lambda_.invocations.provisioned import ProvisionedConcurrency
from redrive.aws.lambda_.invocations.streaming import StreamingInvocations
from redrive.aws.lambda_.invocations.warmth import Warmth
from redrive.aws.lambda_.layers.operations import LayerOperations
from redrive.aws.lambda_.layers.permissions import LayerPermissions
from redrive.aws.lambda_.mappings.operations import MappingOperations
from redrive.aws.lambda_.service import SERVICE
from redrive.aws.lambda_.urls.operations import UrlOperations
from redrive.engine.engine import Engine

#: Asked about by the facade, of the policy of a layer's version and the caller's own.
_OF_LAYERS: Final = frozenset(
    {
        *("AddLayerVersionPermission", "GetLayerVersion", "GetLayerVersionByArn", "GetLayerVersionPolicy"),
        "RemoveLayerVersionPermission",
    }
)


class Lambda(OfferedService):
    """Lambda on an engine."""

    def __init__(
        self,
        engine: Engine,
        lookup: Lookup,
        archives: Archives,
        code: CodeKeeper,
        runner: Runner,
        executor: Executor,
        invocations: AsyncInvocations,
        downloads: Downloads,
        follow: Callable[[], Awaitable[None]],
        warmth: Warmth,
        roles: ExecutionRoles,
        variables: SealedVariables,
        *,
        ended_runtimes: bool = False,
    ) -> None:
        """Speak for this engine.

        Args:
            engine: Where functions are kept.
            lookup: Finds them there.
            archives: Reads the code that callers give.
            code: Keeps it.
            runner: Runs them.
            executor: Has them run, and counts it.
            invocations: Takes events for them.
            downloads: Where their code can be fetched from.
            follow: Awaited when event source mappings have changed.
            warmth: Keeps environments ready.
            roles: Those that functions run as.
            variables: Encrypts environment variables by callers' keys.
            ended_runtimes: Whether runtimes that AWS has ended are taken.
        """
        layers = LayerCode(engine.resources.documents, code)
        super().__init__(
            SERVICE,
            engine,
            operations_of(
                "lambda",
                FunctionOperations(
                    engine,
                    lookup,
                    archives,
                    code,
                    runner,
                    downloads,
                    layers,
                    roles,
                    variables,
                    ended_runtimes=ended_runtimes,
                ),
                LayerOperations(engine, archives, code, downloads, layers),
                LayerPermissions(engine),
                UrlOperations(engine),
                VersionOperations(engine, lookup, variables),
                AliasOperations(engine, lookup),
                FunctionPermissions(engine, lookup),
                ConcurrencyOperations(engine, lookup),
                FixedSettings(lookup),
                ProvisionedConcurrency(engine, lookup, warmth),
                TAGS.operations(FunctionTags(engine, lookup)),
                StreamingInvocations(engine, lookup, executor),
                Invoking(engine, lookup, executor, invocations),
                EventSettingsOperations(engine, lookup, roles),
                MappingOperations(engine, lookup, follow, roles),
            ),
        )
