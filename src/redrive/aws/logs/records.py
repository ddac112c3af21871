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
    """A filter of a log group.

    Attributes:
        group: The name of its log group.
        group_id: The group's number.
        name: Unique within the group.
        pattern: As it was put.
        created_at: ms.
    """

    restored: ClassVar = {"group": ResourceName._make}

    group: ResourceName
    group_id: int
    name: str
    pattern: str
    created_at: int

    @property
    def key(self) -> str:
        """The group's number and the name."""
        return f"{self.group_id:020d}/{self.name}"


@dataclass(frozen=True, slots=True)
class MetricFilter(GroupFilter):
    """One metric filter.

    Attributes:
        transformation: What matching events become, as it was put.
    """

    transformation: Mapping[str, Any]


METRIC_FILTER: Final = DocumentKind.of("log_metric_filter", MetricFilter)


@dataclass(frozen=True, slots=True)
class SubscriptionFilter(GroupFilter):
    """One subscription filter.

    Attributes:
        destination: The ARN of the function or the delivery stream.
        distribution: As it was put; it decides nothing but for Kinesis streams.
        role: The ARN of the role that a delivery stream is filled as; empty for a function.
    """

    destination: str
    distribution: str
    role: str = ""


SUBSCRIPTION_FILTER: Final = DocumentKind.of("log_subscription_filter", SubscriptionFilter)


@dataclass(frozen=True, slots=True)
class StoredQuery(Document, Unremembered):
    """A query and what it found.

    Attributes:
        id: Its own.
        text: The query.
        groups: The names of the groups that it looked at.
        created_at: ms.
        results: Rows of fields and values.
        statistics: How much was looked at.
    """

    restored: ClassVar = {}

    id: str
    text: str
    groups: Sequence[str]
    created_at: int
    results: Sequence[Any]
    statistics: Mapping[str, float]


QUERY: Final = DocumentKind.of("log_query", StoredQuery)


@dataclass(frozen=True, slots=True)
class ResourcePolicy(Document):
    """One resource policy.

    Attributes:
        name: Unique within the account's region.
        text: JSON, as it was put.
        updated_at: ms.
    """

    restored: ClassVar = {}

    name: str
    text: str
    updated_at: int


RESOURCE_POLICY: Final = DocumentKind.of("log_resource_policy", ResourcePolicy)
