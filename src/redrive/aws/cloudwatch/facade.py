"""Amazon CloudWatch: the operations on metrics, alarms and dashboards."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from redrive.aws.cloudwatch.alarms.part import Alarms
from redrive.aws.cloudwatch.dashboards import DASHBOARD, DashboardOperations
from redrive.aws.cloudwatch.metrics.datapoints import Datapoints
from redrive.aws.cloudwatch.metrics.errors import translated
from redrive.aws.cloudwatch.metrics.listing import MetricListing
from redrive.aws.cloudwatch.metrics.putting import PutMetricOperations
from redrive.aws.cloudwatch.metrics.queries import Queries
from redrive.aws.cloudwatch.metrics.reading import MetricReader
from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import WHOLE_SERVICE, ResourceScope, resource_part, values_of
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import DocumentKind, TelemetryStore
from redrive.engine.resources import Documents
from redrive.model.errors import RedriveError


class CloudWatch:
    """CloudWatch on a store of metrics."""

    def __init__(
        self,
        store: TelemetryStore,
        documents: Documents,
        settle: Callable[[], Awaitable[None]],
        alarms: Alarms,
    ) -> None:
        """Speak for this store.

        Args:
            store: Where metrics are.
            documents: Where dashboards are.
            settle: Lets what this node has counted arrive in the store, so that whoever reads sees it.
            alarms: The alarms.
        """
        reading = MetricReader(store, settle)
        self.operations: Mapping[str, Verb] = operations_of(
            "cloudwatch",
            Queries(reading),
            Datapoints(reading),
            MetricListing(store, reading),
            PutMetricOperations(store),
            DashboardOperations(documents),
            *alarms.operations,
        )

    kinds: tuple[DocumentKind[Any], ...] = (*Alarms.kinds, DASHBOARD)
    """All that callers make through this service, besides metrics."""

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:  # noqa: ARG002 - see `Facade`
        """See `Facade.scopes`."""
        own = f"arn:aws:cloudwatch:{call.region}:{call.account}"
        alarms, dashboards = f"{own}:alarm", f"arn:aws:cloudwatch::{call.account}:dashboard"
        arns = [f"{alarms}:{name}" for name in values_of(params, "AlarmName", "AlarmNames")]
        arns += [f"{alarms}:{prefix}*" for prefix in values_of(params, "AlarmNamePrefix")]
        arns += [f"{dashboards}/{name}" for name in values_of(params, "DashboardName", "DashboardNames")]
        arns += [f"{dashboards}/{prefix}*" for prefix in values_of(params, "DashboardNamePrefix")]
        arns += [f"{own}:{resource_part(arn)}" for arn in values_of(params, "ResourceARN")]
        if not arns or params.get("ChildrenOfAlarmName") or params.get("ParentsOfAlarmName"):
            return [WHOLE_SERVICE]
        return map(ResourceScope, arns)

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
