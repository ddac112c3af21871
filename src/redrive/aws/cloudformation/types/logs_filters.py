"""Types of Amazon CloudWatch Logs beside groups: filters of their events, and resource policies."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    lowered_keys,
    pick,
    without_absence,
)


class _FilterType(ResourceType):
    """A filter of a group's events; its id is its name."""

    service = "logs"
    name_property = "FilterName"
    name_chars_max = 512
    kind: ClassVar[str]  # `MetricFilterType`, `SubscriptionFilterType`
    listed: ClassVar[str]  # The member of descriptions that has them

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        return await self._put(ask, spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self._put(ask, spec, spec.physical_id)

    async def _put(self, ask: Ask, spec: ResourceSpec, name: str) -> ResourceState:
        params = lowered_keys(pick(spec.properties, "LogGroupName", "FilterPattern"))
        await ask("logs", f"Put{self.kind}", filterName=name, **params, **self._rest(spec.properties))
        return ResourceState(name)

    def _rest(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that this kind of filter has beside the pattern."""
        raise NotImplementedError

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {"logGroupName": spec.properties["LogGroupName"], "filterName": spec.physical_id}
        await without_absence(ask("logs", f"Delete{self.kind}", **identifiers))

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        group, name = spec.properties["LogGroupName"], spec.physical_id
        params = {"logGroupName": group, "filterNamePrefix": name}
        answer = await without_absence(ask("logs", f"Describe{self.kind}s", **params))
        for item in (answer or {}).get(self.listed) or ():
            if item["filterName"] == name:
                return {
                    "FilterName": name,
                    "LogGroupName": group,
                    "FilterPattern": item.get("filterPattern", ""),
                }
        return None


class MetricFilterType(_FilterType):
    """`AWS::Logs::MetricFilter`."""

    kind = "MetricFilter"
    listed = "metricFilters"

    @override
    def _rest(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        rest = lowered_keys(
            pick(properties, "ApplyOnTransformedLogs", "EmitSystemFieldDimensions", "FieldSelectionCriteria")
        )
        return {
            **rest,
            "metricTransformations": [_metric(each) for each in properties["MetricTransformations"]],
        }


class SubscriptionFilterType(_FilterType):
    """`AWS::Logs::SubscriptionFilter`."""

    kind = "SubscriptionFilter"
    listed = "subscriptionFilters"

    @override
    def _rest(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        known = (
            *("DestinationArn", "RoleArn", "Distribution", "ApplyOnTransformedLogs"),
            *("EmitSystemFields", "FieldSelectionCriteria"),
        )
        return lowered_keys(pick(properties, *known))


def _metric(transformation: Mapping[str, Any]) -> dict[str, Any]:
    members = lowered_keys(transformation)
    if "dimensions" in members:
        members["dimensions"] = {pair["Key"]: pair["Value"] for pair in members["dimensions"]}
    return members


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Logs::MetricFilter": MetricFilterType,
    "AWS::Logs::SubscriptionFilter": SubscriptionFilterType,
}
