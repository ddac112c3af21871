"""Amazon CloudWatch Logs: groups, streams and their events, and what events lead to."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from redrive.aws.gateway.owed_calls import owed_profiles
from redrive.aws.kit.call import Call, ResourceScope, resource_part, values_of
from redrive.aws.kit.service import AwsService, Outline
from redrive.aws.logs.errors import translated
from redrive.aws.logs.places import GROUP, STREAM
from redrive.aws.logs.records import (
    DIALECT,
    METRIC_FILTER,
    QUERY,
    RESOURCE_POLICY,
    SUBSCRIPTION_FILTER,
    TO_DESTINATION,
)
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.profiles import JSON, MIB, Profile
from redrive.aws.wire.shapes import Raw, Structure
from redrive.aws.wire.violations import Violation, ViolationKind, coral_text
from redrive.engine.engine import Engine

_GROUP: Final = "log-group:"
_LOG_NAMES: Final = frozenset({"logGroupName", "logStreamName"})
_LOG_NAME_CHARS_MAX: Final = 512
_TRANSFORMATION: Final = (
    "metricName",
    "metricNamespace",
    "metricValue",
    "defaultValue",
    "unit",
    "dimensions",
)


async def _scopes(engine: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    """The log streams that a request concerns, as Amazon names them in policies; of a whole group all of its streams.

    For those Amazon asks about the stream without a name, so that policies that end in `:*` match.
    """
    prefix = f"arn:aws:logs:{call.region}:{call.account}"
    if operation == "DescribeLogGroups":  # which looks at no other parameter that names groups
        return [_of_group(f"{prefix}:{_GROUP}{params.get('logGroupNamePrefix', '')}*", params)]
    members = ("logGroupName", "logGroupNames", "logGroupIdentifier", "logGroupIdentifiers", "resourceArn")
    group_names = [resource_part(text) for text in values_of(params, *members)]
    if query_id := params.get("queryId"):
        queries = await engine.resources.documents.find(QUERY, f"{call.account}/{call.region}/")
        group_names = [name for query in queries if query.id == query_id for name in query.groups]
    groups = dict.fromkeys(name.removeprefix(_GROUP).removesuffix(":*") for name in group_names)
    return [_of_group(f"{prefix}:{_GROUP}{name}", params) for name in groups or ["*"]]


def _of_group(arn: str, params: Structure) -> ResourceScope:
    """The streams of a group that a call is about, as policies name them."""
    streams = f"{arn}:log-stream:"
    if name := params.get("logStreamName"):
        return ResourceScope(f"{streams}{name}", (arn,))
    resources = [f"{streams}{name}" for name in values_of(params, "logStreamNames")]
    prefixes = values_of(params, "logStreamNamePrefix", "logStreamNamePrefixes")
    resources += [f"{streams}{prefix}*" for prefix in prefixes]
    return ResourceScope(streams, (arn, *(resources or [f"{streams}*"])))


def violated(violations: Sequence[Violation]) -> AwsError:
    """Return CloudWatch Logs' `InvalidParameterException` with `coral_text`.

    A name that is too long has words of its own, and of an identifier that does not fit nothing is printed (recorded).
    """
    if any(each.path in _LOG_NAMES and each.kind is ViolationKind.LENGTH_MAX for each in violations):
        return AwsError(
            "InvalidParameterException",
            f"Invalid LogGroup or LogStream, both must have length less than or equal to {_LOG_NAME_CHARS_MAX}.",
        )
    return AwsError(
        "InvalidParameterException", coral_text([_with_printed_value(each) for each in violations])
    )


def _with_printed_value(violation: Violation) -> Violation:
    """A violation with its value as refusals print it."""
    if violation.path == "logGroupIdentifier" and violation.kind is ViolationKind.PATTERN:
        return replace(violation, value=b"")
    if violation.path == "metricTransformations" and isinstance(violation.value, list):
        return replace(violation, value=[_transformation(each) for each in violation.value])
    return violation


def _transformation(members: Structure) -> str:
    values = ", ".join(f"{name}={members.get(name, 'null')}" for name in _TRANSFORMATION)
    return f"MetricTransformation({values})"


def _amended(shapes: Raw) -> Raw:
    """Logs takes colons in the namespaces of metrics, which the model refuses (recorded)."""
    return {**shapes, "MetricNamespace": {**shapes["MetricNamespace"], "pattern": "[^*$]*"}}


SERVICE: Final = AwsService(
    profile=Profile(
        name="logs",
        endpoint_prefix="logs",
        api_version="2014-03-28",
        protocols=JSON,
        target_prefix="Logs_20140328",
        violated=violated,
        amended=_amended,
        hosts=("streaming-logs",),
        # PutLogEvents takes 10,000 events of a mebibyte, escaped, with names around them.
        body_bytes_max=4 * MIB,
        values_max=50_000,
    ),
    title="CloudWatchLogs",
    documents=(STREAM, GROUP, METRIC_FILTER, SUBSCRIPTION_FILTER, QUERY, RESOURCE_POLICY),  # besides events
    translated=translated,
    scopes=_scopes,
    outline=Outline(endpoints=(TO_DESTINATION,), profiles=owed_profiles(DIALECT)),
)
