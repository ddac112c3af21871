"""AWS Lambda: functions that this server runs."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.lambda_.aliases import AliasOperations
from redrive.protocols.aws.lambda_.archives import Archives
from redrive.protocols.aws.lambda_.asynchronous import AsyncInvocations
from redrive.protocols.aws.lambda_.downloads import Downloads
from redrive.protocols.aws.lambda_.errors import translated
from redrive.protocols.aws.lambda_.event_settings import EventSettingsOperations
from redrive.protocols.aws.lambda_.execution import Executor
from redrive.protocols.aws.lambda_.fixed_settings import FixedSettings
from redrive.protocols.aws.lambda_.functions import FunctionOperations
from redrive.protocols.aws.lambda_.invoking import Invoking
from redrive.protocols.aws.lambda_.layer_permissions import LayerPermissions
from redrive.protocols.aws.lambda_.layer_records import LAYER, LAYER_VERSION
from redrive.protocols.aws.lambda_.layer_use import LayerCode
from redrive.protocols.aws.lambda_.layers import LayerOperations
from redrive.protocols.aws.lambda_.lookup import Lookup
from redrive.protocols.aws.lambda_.mapping import MAPPING
from redrive.protocols.aws.lambda_.mapping_operations import MappingOperations
from redrive.protocols.aws.lambda_.permissions import Permissions
from redrive.protocols.aws.lambda_.ports import CodeKeeper, Runner
from redrive.protocols.aws.lambda_.provisioned import ProvisionedConcurrency
from redrive.protocols.aws.lambda_.quotas import Quotas
from redrive.protocols.aws.lambda_.records import ALIAS, EVENTS, FUNCTION, PROVISIONED, VERSION
from redrive.protocols.aws.lambda_.streaming import StreamingInvocations
from redrive.protocols.aws.lambda_.tags import TagOperations
from redrive.protocols.aws.lambda_.url_records import FUNCTION_URL
from redrive.protocols.aws.lambda_.urls import UrlOperations
from redrive.protocols.aws.lambda_.versions import VersionOperations
from redrive.protocols.aws.lambda_.warmth import Warmth
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError


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
        """
        layers = LayerCode(engine.resources.documents, code)
        self.operations: Mapping[str, Verb] = operations_of(
            "lambda",
            FunctionOperations(engine, lookup, archives, code, runner, downloads, layers),
            LayerOperations(engine, archives, code, downloads, layers),
            LayerPermissions(engine),
            UrlOperations(engine),
            VersionOperations(engine, lookup),
            AliasOperations(engine, lookup),
            Permissions(engine, lookup),
            Quotas(engine, lookup),
            FixedSettings(lookup),
            ProvisionedConcurrency(engine, lookup, warmth),
            TagOperations(engine, lookup),
            StreamingInvocations(engine, lookup, executor),
            Invoking(engine, lookup, executor, invocations),
            EventSettingsOperations(engine, lookup),
            MappingOperations(engine, lookup, follow),
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

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
