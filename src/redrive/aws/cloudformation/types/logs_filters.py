"""Types of Amazon CloudWatch Logs beside groups: filters of their events, and resource policies."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    PutResourceType,
    ResourceType,
    Wanted,
    as_text,
    lowered_keys,
    pick,
    without_absence,
)


class _Filter(ResourceType):
    """A filter of a group's events; its id is its name.

    Attributes:
        kind: `MetricFilter`, `SubscriptionFilter`.
        listed: The member of descriptions that has them.
    """

    service = "logs"
    name_property = "FilterName"
    name_chars_max = 512
    kind: ClassVar[str]
    listed: ClassVar[str]

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        return await self._put(ask, wanted, wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return await self._put(ask, wanted, wanted.physical_id)

    async def _put(self, ask: Ask, wanted: Wanted, name: str) -> Made:
        params = lowered_keys(pick(wanted.properties, "LogGroupName", "FilterPattern"))
        await ask("logs", f"Put{self.kind}", filterName=name, **params, **self._rest(wanted.properties))
        return Made(name)

    def _rest(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that this kind of filter has beside the pattern."""
        raise NotImplementedError

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {"logGroupName": wanted.properties["LogGroupName"], "filterName": wanted.physical_id}
        await without_absence(ask("logs", f"Delete{self.kind}", **named))

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        group, name = wanted.properties["LogGroupName"], wanted.physical_id
        params = {"logGroupName": group, "filterNamePrefix": name}
        found = await without_absence(ask("logs", f"Describe{self.kind}s", **params))
        for shown in (found or {}).get(self.listed) or ():
            if shown["filterName"] == name:
                return {
                    "FilterName": name,
                    "LogGroupName": group,
                    "FilterPattern": shown.get("filterPattern", ""),
                }
        return None


class MetricFilter(_Filter):
    """`AWS::Logs::MetricFilter`."""

    kind = "MetricFilter"
    listed = "metricFilters"
    needs = "PutMetricFilter"

    @override
    def _rest(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        rest = lowered_keys(
            pick(properties, "ApplyOnTransformedLogs", "EmitSystemFieldDimensions", "FieldSelectionCriteria")
        )
        return {
            **rest,
            "metricTransformations": [_metric(each) for each in properties["MetricTransformations"]],
        }


class SubscriptionFilter(_Filter):
    """`AWS::Logs::SubscriptionFilter`."""

    kind = "SubscriptionFilter"
    listed = "subscriptionFilters"
    needs = "PutSubscriptionFilter"

    @override
    def _rest(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        known = (
            *("DestinationArn", "RoleArn", "Distribution", "ApplyOnTransformedLogs"),
            *("EmitSystemFields", "FieldSelectionCriteria"),
        )
        return lowered_keys(pick(properties, *known))


class LogsResourcePolicy(PutResourceType):
    """`AWS::Logs::ResourcePolicy`; its id is its name."""

    service = "logs"
    name_property = "PolicyName"
    needs = "PutResourcePolicy"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        name, text = wanted.properties["PolicyName"], as_text(wanted.properties["PolicyDocument"])
        await ask("logs", "PutResourcePolicy", policyName=name, policyDocument=text)
        return Made(name)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask("logs", "DeleteResourcePolicy", policyName=wanted.physical_id))


def _metric(transformation: Mapping[str, Any]) -> dict[str, Any]:
    shown = lowered_keys(transformation)
    if "dimensions" in shown:
        shown["dimensions"] = {pair["Key"]: pair["Value"] for pair in shown["dimensions"]}
    return shown


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Logs::MetricFilter": MetricFilter,
    "AWS::Logs::ResourcePolicy": LogsResourcePolicy,
    "AWS::Logs::SubscriptionFilter": SubscriptionFilter,
}
