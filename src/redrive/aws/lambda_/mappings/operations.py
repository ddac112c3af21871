"""Operations on event source mappings, and what a caller gives for one, checked, over what it had."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import PAGES, absent_as, conflict, invalid, no_such, unoffered
from redrive.aws.lambda_.documents.lookup import FunctionTarget, Lookup
from redrive.aws.lambda_.documents.names import FunctionReference, arn_of
from redrive.aws.lambda_.documents.records import MAPPING, EventSourceMapping
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.tags import TAGS
from redrive.aws.lambda_.mappings.batches import MappingFilter
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import NotFound
from redrive.model.names import ResourceName, id_text
from redrive.model.queue import Queue

BATCH_MAX: Final = 10_000
ORDERED_BATCH_MAX: Final = 10
WITHOUT_WINDOW_MAX: Final = 10
FILTERS_MAX: Final = 5
_PARTIAL: Final = "ReportBatchItemFailures"
# Parameters for streams and other sources, with what AWS says of them for a queue, where that is known.
_OF_OTHERS: Final[Mapping[str, str]] = {
    "DestinationConfig": "Unsupported DestinationConfig parameter for given event source mapping type.",
    "MaximumRetryAttempts": "MaximumRetryAttempts isn't supported for this event source type",
}
_UNOFFERED: Final[Mapping[str, tuple[Any, ...]]] = {
    "StartingPosition": (),
    "StartingPositionTimestamp": (),
    "ParallelizationFactor": (),
    "MaximumRecordAgeInSeconds": (),
    "BisectBatchOnFunctionError": (False,),
    "TumblingWindowInSeconds": (0,),
    "Topics": ([],),
    "Queues": ([],),
    "SourceAccessConfigurations": ([],),
    "SelfManagedEventSource": (),
    "KMSKeyArn": ("",),
    "LoggingConfig": ({},),
    "ProvisionedPollerConfig": ({},),
}
_QUEUE_ARN_PARTS: Final = 6
_NO_QUEUE: Final = (
    "Error occurred while ReceiveMessage. SQS Error Code: AWS.SimpleQueueService.NonExistentQueue. SQS Error Message:"
    " The specified queue does not exist."
)


def with_parameters(before: EventSourceMapping, params: Structure) -> EventSourceMapping:
    """A mapping with the settings that a caller changes.

    Raises:
        AwsError: Something is not acceptable for a queue, or is not offered here.
    """
    check_parameters(params)
    scaling = params.get("ScalingConfig", {"MaximumConcurrency": before.concurrency_max})
    after = replace(
        before,
        enabled=params.get("Enabled", before.enabled),
        batch_size=params.get("BatchSize") or before.batch_size,
        window_seconds=params.get("MaximumBatchingWindowInSeconds", before.window_seconds),
        concurrency_max=scaling.get("MaximumConcurrency"),
        partial=_PARTIAL in params["FunctionResponseTypes"]
        if "FunctionResponseTypes" in params
        else before.partial,
        filters=_filters(params, before.filters),
        counted=_counts_events(params, before),
    )
    _check(after)
    return after


def check_parameters(params: Structure) -> None:
    """Refuse parameters of other sources, and those that are not offered here.

    Raises:
        AwsError: `InvalidParameterValueException`.
    """
    for parameter, text in _OF_OTHERS.items():
        if params.get(parameter):
            raise invalid(text)
    for parameter, harmless_values in _UNOFFERED.items():
        if parameter in params and params[parameter] not in harmless_values:
            raise unoffered(parameter)


def _check(mapping: EventSourceMapping) -> None:
    """Refuse a batch size or window that the mapping's queue may not have."""
    maximum = ORDERED_BATCH_MAX if mapping.ordered else BATCH_MAX
    if mapping.batch_size > maximum:
        raise invalid(f"Maximum batch size is {maximum} for this event source type.")  # chosen
    if mapping.ordered and mapping.window_seconds:
        raise invalid("Batching window is not supported for FIFO queues.")
    if mapping.batch_size > WITHOUT_WINDOW_MAX and not mapping.window_seconds:
        raise invalid(
            "Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10"
        )


def _counts_events(params: Structure, before: EventSourceMapping) -> bool:
    if "MetricsConfig" not in params:
        return before.counted
    metric_names: list[str] = params["MetricsConfig"].get("Metrics") or []
    for metrics in metric_names:
        if metrics != "EventCount":  # ErrorCount and KafkaMetrics are of streams
            raise unoffered(f"MetricsConfig {metrics}")
    return bool(metric_names)


def _filters(params: Structure, before: tuple[str, ...]) -> tuple[str, ...]:
    """The filter patterns of a request, or those from before if it has none; raises AwsError."""
    if "FilterCriteria" not in params:
        return before
    filters = (params["FilterCriteria"] or {}).get("Filters") or []
    patterns = tuple(each.get("Pattern", "") for each in filters)
    if len(patterns) > FILTERS_MAX:
        raise invalid(f"Maximum number of filters is {FILTERS_MAX}.")  # chosen
    try:
        MappingFilter(patterns)
    except ValueError:
        raise invalid("Invalid filter pattern definition.") from None
    return patterns


class MappingOperations:
    """Creates, shows, changes and deletes mappings."""

    def __init__(
        self, engine: Engine, lookup: Lookup, follow: Callable[[], Awaitable[None]], roles: ExecutionRoles
    ) -> None:
        self._engine = engine
        self._lookup = lookup
        self._roles = roles
        self._follow = follow

    async def create_event_source_mapping(self, call: Call, params: Structure) -> Structure:
        check_parameters(params)  # before the function, and that before the queue (recorded)
        reference, target = await self._function(call, params["FunctionName"], "CreateEventSourceMapping")
        queue = await self._queue(params.get("EventSourceArn", ""))
        await self._check_consumer(target, queue)
        plain = EventSourceMapping(
            id_text(self._engine.runtime.message_id()), queue.name, reference.name, reference.qualifier
        )
        tags = TAGS.read(params.get("Tags"))
        mapping = replace(with_parameters(plain, params), modified_at=call.now, tags=tags)

        async def decide(draft: Draft) -> None:
            for _, existing in await draft.find(MAPPING, _beginning(call)):
                if (existing.queue, existing.reference) == (mapping.queue, mapping.reference):
                    raise conflict(
                        f'An event source mapping with SQS arn (" {mapping.queue_arn} ") and function ('
                        f'" {reference.name.name} ")'
                        " already exists. Please update or delete the existing mapping with UUID"
                        f" {existing.id}"
                    )
            draft.put(MAPPING, mapping.key, mapping)

        await self._engine.resources.write(decide)
        await self._follow()
        return _render(mapping, "Creating")

    async def get_event_source_mapping(self, call: Call, params: Structure) -> Structure:
        return _render(await self._read(call, params))

    async def list_event_source_mappings(self, call: Call, params: Structure) -> Structure:
        source, function = params.get("EventSourceArn"), params.get("FunctionName")
        reference = None if function is None else names.read(call, function)
        operation = "ListEventSourceMappings"
        after = PAGES.after(operation, params)
        mappings = await self._engine.resources.documents.find(MAPPING, _beginning(call), after)
        matches = [
            mapping
            for mapping in mappings
            if source in (None, mapping.queue_arn) and (reference is None or mapping.reference == reference)
        ]
        return PAGES.of(operation, params, matches, _render, lambda mapping: mapping.key)

    async def update_event_source_mapping(self, call: Call, params: Structure) -> Structure:
        before = await self._read(call, params)
        reference = None
        if params.get("FunctionName"):
            reference, target = await self._function(call, params["FunctionName"], "UpdateEventSourceMapping")
            await self._check_consumer(target, await self._queue(before.queue_arn))

        def change(current: EventSourceMapping) -> EventSourceMapping:
            name, qualifier = reference or current.reference
            retargeted = replace(current, function=name, qualifier=qualifier, modified_at=call.now)
            return with_parameters(retargeted, params)

        try:
            after = await self._engine.resources.documents.update(MAPPING, before.key, change)
        except NotFound:  # deleted meanwhile
            raise no_such() from None
        await self._follow()
        state = "Updating"
        if before.enabled != after.enabled:
            state = "Enabling" if after.enabled else "Disabling"
        return _render(after, state)

    async def delete_event_source_mapping(self, call: Call, params: Structure) -> Structure:
        mapping = await self._read(call, params)
        if not await self._engine.resources.documents.remove(MAPPING, mapping.key):
            raise no_such()
        await self._follow()
        return _render(mapping, "Deleting")

    # ---- what a mapping names ----------------------------------------------------------------------------------

    async def _read(self, call: Call, params: Structure) -> EventSourceMapping:
        mapping = await self._engine.resources.documents.get(MAPPING, f"{_beginning(call)}{params['UUID']}")
        if mapping is None:
            raise no_such()
        return mapping

    async def _queue(self, arn: str) -> Queue:
        """The queue of an ARN; raises AwsError."""
        parts = arn.split(":")
        if len(parts) != _QUEUE_ARN_PARTS or parts[2] != "sqs":
            raise invalid("Unrecognized event source.")
        _, _, _, region, account, name = parts
        queue = await self._engine.resources.queues.get(ResourceName(account, region, name))
        if queue is None:
            raise invalid(_NO_QUEUE)
        return queue

    async def _function(self, call: Call, text: str, action: str) -> tuple[FunctionReference, FunctionTarget]:
        """The function that is named."""
        reference = names.read(call, text)
        with absent_as(invalid("Function does not exist")):
            return reference, await self._lookup.authorized_target(call, reference, action)

    async def _check_consumer(self, target: FunctionTarget, queue: Queue) -> None:
        """Refuse a function whose role may not consume a queue, or that may run longer than a claim lasts."""
        await self._roles.check_source(target.configuration, queue)
        timeout = target.configuration.timeout_seconds
        if queue.lease_ms < timeout * 1000:
            raise invalid(
                f"Queue visibility timeout: {queue.lease_ms // 1000} seconds is less than Function timeout:"
                f" {timeout} seconds"
            )


def _beginning(call: Call) -> str:
    return f"{call.account}/{call.region}/"


def _render(mapping: EventSourceMapping, state: str = "") -> Structure:
    function = mapping.function
    answer: Structure = {
        "BatchSize": mapping.batch_size,
        "EventSourceArn": mapping.queue_arn,
        "EventSourceMappingArn": mapping.arn,
        "FunctionArn": arn_of(function, mapping.qualifier),
        "FunctionResponseTypes": ["ReportBatchItemFailures"] if mapping.partial else [],
        "LastModified": mapping.modified_at,
        "MaximumBatchingWindowInSeconds": mapping.window_seconds,
        "State": state or ("Enabled" if mapping.enabled else "Disabled"),
        "StateTransitionReason": "USER_INITIATED",
        "UUID": mapping.id,
    }
    if mapping.filters:
        answer["FilterCriteria"] = {"Filters": [{"Pattern": pattern} for pattern in mapping.filters]}
    if mapping.concurrency_max is not None:
        answer["ScalingConfig"] = {"MaximumConcurrency": mapping.concurrency_max}
    if mapping.counted:
        answer["MetricsConfig"] = {"Metrics": ["EventCount"]}
    return answer
