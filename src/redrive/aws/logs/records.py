"""Documents of CloudWatch Logs besides groups and streams."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from redrive.engine.ports import DocumentKind, Unremembered
from redrive.model.document import Document
from redrive.model.names import ResourceName

DIALECT: Final = "logs"
SUBSCRIBED: Final = "subscribed"  # the subscription that is the backlog
TO_DESTINATION: Final = "logs.function"  # as stored backlogs name it, from when there were functions alone


@dataclass(frozen=True, slots=True)
class GroupFilter(Document):
    """A filter of a log group."""

    restored: ClassVar = {"group": ResourceName._make}

    group: ResourceName  # The name of its log group
    group_id: int  # The group's number
    name: str  # Unique within the group
    pattern: str  # As it was put
    created_at: int  # ms

    @property
    def key(self) -> str:
        """The group's number and the name."""
        return f"{self.group_id:020d}/{self.name}"


@dataclass(frozen=True, slots=True)
class MetricFilter(GroupFilter):
    """One metric filter."""

    transformation: Mapping[str, Any]  # The metric that matching events become, as put


METRIC_FILTER: Final = DocumentKind.of("log_metric_filter", MetricFilter)


@dataclass(frozen=True, slots=True)
class SubscriptionFilter(GroupFilter):
    """One subscription filter."""

    destination: str  # The ARN of the function or the delivery stream
    distribution: str  # As it was put; it decides nothing but for Kinesis streams
    role: str = ""  # The ARN of the role that a delivery stream is filled as; empty for a function


SUBSCRIPTION_FILTER: Final = DocumentKind.of("log_subscription_filter", SubscriptionFilter)


@dataclass(frozen=True, slots=True)
class StoredQuery(Document, Unremembered):
    """A query and what it found."""

    restored: ClassVar = {}

    id: str  # Its own
    text: str  # The query
    groups: Sequence[str]  # The names of the groups that it looked at
    created_at: int  # ms
    results: Sequence[Any]  # Rows of fields and values
    statistics: Mapping[str, float]  # How much was looked at


QUERY: Final = DocumentKind.of("log_query", StoredQuery)


@dataclass(frozen=True, slots=True)
class ResourcePolicy(Document):
    """One resource policy."""

    restored: ClassVar = {}

    name: str  # Unique within the account's region
    text: str  # JSON, as it was put
    updated_at: int  # ms


RESOURCE_POLICY: Final = DocumentKind.of("log_resource_policy", ResourcePolicy)
