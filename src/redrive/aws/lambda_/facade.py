"""AWS Lambda: functions that this server runs."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import WHOLE_SERVICE, ResourceScope
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import translated
from redrive.aws.lambda_.documents.layer_records import LAYER, LAYER_VERSION, read_layer
from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.lambda_.documents.mapping import MAPPING
from redrive.aws.lambda_.documents.ports import CodeKeeper, Runner
from redrive.aws.lambda_.documents.records import ALIAS, EVENTS, FUNCTION, PROVISIONED, VERSION
from redrive.aws.lambda_.documents.url_records import FUNCTION_URL
from redrive.aws.lambda_.functions.aliases import AliasOperations
from redrive.aws.lambda_.functions.archives import Archives
from redrive.aws.lambda_.functions.downloads import Downloads
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.fixed_settings import FixedSettings
from redrive.aws.lambda_.functions.lifecycle import FunctionOperations
from redrive.aws.lambda_.functions.permissions import FunctionPermissions
from redrive.aws.lambda_.functions.provisioned import ProvisionedConcurrency
from redrive.aws.lambda_.functions.quotas import ConcurrencyOperations
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables
from redrive.aws.lambda_.functions.tags import TAGS, FunctionTags
from redrive.aws.lambda_.functions.versions import VersionOperations
from redrive.aws.lambda_.functions.warmth import Warmth
from redrive.aws.lambda_.invocations.asynchronous import AsyncInvocations
from redrive.aws.lambda_.invocations.event_settings import EventSettingsOperations
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.invoking import Invoking
from redrive.aws.lambda_.invocations.streaming import StreamingInvocations
from redrive.aws.lambda_.layers.operations import LayerOperations
from redrive.aws.lambda_.layers.permissions import LayerPermissions
from redrive.aws.lambda_.layers.use import LayerCode
from redrive.aws.lambda_.mappings.operations import MappingOperations
from redrive.aws.lambda_.urls.operations import UrlOperations
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError

#: Of mappings: of a new one, which has no id yet, and of any. Amazon asks about `*`.
_OF_MAPPINGS: Final = {"CreateEventSourceMapping": "", "ListEventSourceMappings": "*"}
#: Asked about by the facade, of the policy of a layer's version and the caller's own.
_OF_LAYERS: Final = frozenset(
    {
        *("AddLayerVersionPermission", "GetLayerVersion", "GetLayerVersionByArn", "GetLayerVersionPolicy"),
        "RemoveLayerVersionPermission",
    }
)


class Lambda:
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
        self.operations: Mapping[str, Verb] = operations_of(
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
        )

    kinds: tuple[DocumentKind[Any], ...] = (
        FUNCTION,
        VERSION,
        ALIAS,
        EVENTS,
        MAPPING,
        LAYER,
        LAYER_VERSION,
        FUNCTION_URL,
        PROVISIONED,
    )
    """All that callers make through this service."""

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
        """See `Facade.scopes`."""
        own, function = f"arn:aws:lambda:{call.region}:{call.account}", params.get("FunctionName")
        if operation in _OF_LAYERS:
            return ()
        if "LayerName" in params:
            return [ResourceScope(read_layer(call, params["LayerName"], params.get("VersionNumber")).arn)]
        if "UUID" in params:
            return [ResourceScope(f"{own}:event-source-mapping:{params['UUID']}")]
        if function is None:
            return () if "Resource" in params else [WHOLE_SERVICE]
        arn = names.arn_of(names.read(call, function).name)
        if operation in _OF_MAPPINGS:
            return [ResourceScope(f"{own}:event-source-mapping:{_OF_MAPPINGS[operation]}", (arn,))]
        return [ResourceScope(arn)] if operation == "CreateFunction" else ()

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
