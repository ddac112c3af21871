"""Amazon CloudWatch: metrics, alarms and dashboards."""

from collections.abc import Iterable
from typing import Final

from redrive.aws.cloudwatch.alarms.records import ALARMS, DIALECT, HISTORY, TO_ACTION, TURN
from redrive.aws.cloudwatch.metrics.errors import translated
from redrive.aws.cloudwatch.records import DASHBOARD
from redrive.aws.gateway.owed_calls import owed_profiles
from redrive.aws.kit.call import WHOLE_SERVICE, Call, ResourceScope, resource_part, values_of
from redrive.aws.kit.service import AwsService, Outline
from redrive.aws.wire.profiles import JSON, MIB, QUERY, Profile, in_order
from redrive.aws.wire.shapes import Raw, Structure
from redrive.aws.wire.timestamps import FRACTIONAL_SECONDS
from redrive.engine.engine import Engine


async def _scopes(_: Engine, call: Call, _operation: str, params: Structure) -> Iterable[ResourceScope]:
    """The resources that a call is about, as policies name them."""
    service = f"arn:aws:cloudwatch:{call.region}:{call.account}"
    alarms, dashboards = f"{service}:alarm", f"arn:aws:cloudwatch::{call.account}:dashboard"
    arns = [f"{alarms}:{name}" for name in values_of(params, "AlarmName", "AlarmNames")]
    arns += [f"{alarms}:{prefix}*" for prefix in values_of(params, "AlarmNamePrefix")]
    arns += [f"{dashboards}/{name}" for name in values_of(params, "DashboardName", "DashboardNames")]
    arns += [f"{dashboards}/{prefix}*" for prefix in values_of(params, "DashboardNamePrefix")]
    arns += [f"{service}:{resource_part(arn)}" for arn in values_of(params, "ResourceARN")]
    if not arns or params.get("ChildrenOfAlarmName") or params.get("ParentsOfAlarmName"):
        return [WHOLE_SERVICE]
    return map(ResourceScope, arns)


def _amended(shapes: Raw) -> Raw:
    """CloudWatch prints moments in JSON as numbers with a fraction, also where that is nothing (recorded)."""
    moments = {
        name: {**shape, "timestampFormat": FRACTIONAL_SECONDS}
        for name, shape in shapes.items()
        if shape["type"] == "timestamp"
    }
    return in_order(StateValue=("INSUFFICIENT_DATA", "ALARM", "OK"))({**shapes, **moments})


SERVICE: Final = AwsService(
    profile=Profile(
        name="cloudwatch",
        endpoint_prefix="monitoring",
        api_version="2010-08-01",
        protocols=JSON | QUERY | {"smithy-rpc-v2-cbor"},
        target_prefix="GraniteServiceVersion20100801",
        json_namespace="com.amazonaws.cloudwatch.v2010_08_01",
        amended=_amended,
        bad_requests_alone=True,
        body_bytes_max=MIB + MIB // 16,  # PutMetricData takes 1 MB, of it 1,000 metrics of 300 numbers
        values_max=400_000,
        fields_max=32_768,  # a megabyte of PutMetricData's shortest
        large_answers=frozenset({"GetMetricData"}),
        takes_gzip=True,
    ),
    title="CloudWatch",
    documents=(ALARMS, HISTORY, TURN, DASHBOARD),  # besides metrics
    translated=translated,
    scopes=_scopes,
    outline=Outline(endpoints=(TO_ACTION,), profiles=owed_profiles(DIALECT), wakes=(ALARMS,)),
)
