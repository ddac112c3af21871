"""Amazon CloudWatch Logs: the operations on groups, streams and events."""

from collections.abc import Mapping
from typing import Any

from redrive.engine.ports import DocumentKind, NodeStore, Runtime
from redrive.engine.resources import Documents
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.logs.errors import translated
from redrive.protocols.aws.logs.filters import METRIC_FILTER, MetricFilters
from redrive.protocols.aws.logs.groups import Groups
from redrive.protocols.aws.logs.places import GROUP, STREAM, Places, Settle
from redrive.protocols.aws.logs.putting import Putting
from redrive.protocols.aws.logs.querying import QUERY, Querying
from redrive.protocols.aws.logs.reading import Reading
from redrive.protocols.aws.logs.resource_policies import RESOURCE_POLICY, ResourcePolicies
from redrive.protocols.aws.logs.streams import Streams
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError


class Logs:
    """CloudWatch Logs on a store of events.

    Attributes:
        written: To be told of events that others than its callers wrote down.
    """

    def __init__(self, store: NodeStore, documents: Documents, settle: Settle, runtime: Runtime) -> None:
        """Speak for this store.

        Args:
            store: Where events are.
            documents: Where groups and streams are.
            settle: Lets what this node has logged arrive in the store, so that whoever reads sees it.
            runtime: Makes the ids of queries.
        """
        places = Places(documents)
        filters = MetricFilters(store, places)
        self.written = filters.pass_through
        self.operations: Mapping[str, Verb] = operations_of(
            "logs",
            Groups(store, places, settle, filters),
            Streams(store, places, settle),
            Putting(store, places, self.written),
            Reading(store, places, settle),
            Querying(store, places, settle, runtime),
            ResourcePolicies(documents),
            filters,
        )

    kinds: tuple[DocumentKind[Any], ...] = (STREAM, GROUP, METRIC_FILTER, QUERY, RESOURCE_POLICY)
    """All that callers make through this service, besides events."""

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
