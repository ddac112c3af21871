"""Reading mappings: what a caller gives for an event source mapping, checked, over what it had."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.lambda_.documents.errors import invalid, unoffered
from redrive.aws.lambda_.documents.mapping import EventSourceMapping
from redrive.aws.lambda_.mappings.filter import MappingFilter
from redrive.aws.wire.shapes import Structure

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


def given(before: EventSourceMapping, params: Structure) -> EventSourceMapping:
    """A mapping with what a caller gives for it.

    Raises:
        AwsError: Something is not acceptable for a queue, or is not offered here.
    """
    check_parameters(params)
    after = replace(
        before,
        enabled=params.get("Enabled", before.enabled),
        batch_size=params.get("BatchSize") or before.batch_size,
        window_seconds=params.get("MaximumBatchingWindowInSeconds", before.window_seconds),
        concurrency_max=params.get("ScalingConfig", {"MaximumConcurrency": before.concurrency_max}).get(
            "MaximumConcurrency"
        ),
        partial=_PARTIAL in params["FunctionResponseTypes"]
        if "FunctionResponseTypes" in params
        else before.partial,
        filters=_filters(params, before.filters),
        counted=_counted(params, before),
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
    for parameter, nothing in _UNOFFERED.items():
        if parameter in params and params[parameter] not in nothing:
            raise unoffered(parameter)


def _check(mapping: EventSourceMapping) -> None:
    most = ORDERED_BATCH_MAX if mapping.ordered else BATCH_MAX
    if mapping.batch_size > most:
        raise invalid(f"Maximum batch size is {most} for this event source type.")  # chosen
    if mapping.ordered and mapping.window_seconds:
        raise invalid("Batching window is not supported for FIFO queues.")
    if mapping.batch_size > WITHOUT_WINDOW_MAX and not mapping.window_seconds:
        raise invalid(
            "Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10"
        )


def _counted(params: Structure, before: EventSourceMapping) -> bool:
    if "MetricsConfig" not in params:
        return before.counted
    metric_names: list[str] = params["MetricsConfig"].get("Metrics") or []
    for metrics in metric_names:
        if metrics != "EventCount":  # ErrorCount and KafkaMetrics are of streams
            raise unoffered(f"MetricsConfig {metrics}")
    return bool(metric_names)


def _filters(params: Structure, before: tuple[str, ...]) -> tuple[str, ...]:
    if "FilterCriteria" not in params:
        return before
    listed = (params["FilterCriteria"] or {}).get("Filters") or []
    patterns = tuple(each.get("Pattern", "") for each in listed)
    if len(patterns) > FILTERS_MAX:
        raise invalid(f"Maximum number of filters is {FILTERS_MAX}.")  # chosen
    try:
        MappingFilter(patterns)
    except ValueError:
        raise invalid("Invalid filter pattern definition.") from None
    return patterns
