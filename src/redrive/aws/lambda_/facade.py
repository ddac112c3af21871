"""AWS Lambda: functions that this server runs."""

from collections.abc import Awaitable, Callable

from redrive.aws.kit.service import OfferedService, operations_of
from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.lambda_.documents.ports import CodeKeeper, Runner
from redrive.aws.lambda_.functions.archives import Archives, Downloads
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.layer_use import LayerCode
from redrive.aws.lambda_.functions.layers import LayerOperations, LayerPermissions
from redrive.aws.lambda_.functions.lifecycle import FunctionOperations
from redrive.aws.lambda_.functions.permissions import FunctionPermissions
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables
from redrive.aws.lambda_.functions.settings import ConcurrencyOperations, FixedSettings
from redrive.aws.lambda_.functions.tags import TAGS, FunctionTags
from redrive.aws.lambda_.functions.versions import AliasOperations, VersionOperations
from redrive.aws.lambda_.invocations.event_settings import EventSettingsOperations
from redrive.aws.lambda_.invocations.events import AsyncInvocations
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.invoking import Invoking
from redrive.aws.lambda_.invocations.provisioned import ProvisionedConcurrency, Warmth
from redrive.aws.lambda_.invocations.streams import StreamingInvocations
from redrive.aws.lambda_.mappings.operations import MappingOperations
from redrive.aws.lambda_.service import SERVICE
from redrive.aws.lambda_.urls.operations import UrlOperations
from redrive.engine.engine import Engine


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
        follow: Callable[[], Awaitable[None]],  # when event source mappings have changed
        warmth: Warmth,
        roles: ExecutionRoles,
        variables: SealedVariables,
        *,
        ended_runtimes: bool,  # whether runtimes that AWS has ended are taken
    ) -> None:
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
