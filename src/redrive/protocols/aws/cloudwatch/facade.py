"""Amazon CloudWatch: the operations on metrics and alarms."""

from collections.abc import Awaitable, Callable, Mapping

from redrive.engine.ports import TelemetryStore
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.cloudwatch.alarms.part import Alarms
from redrive.protocols.aws.cloudwatch.datapoints import Datapoints
from redrive.protocols.aws.cloudwatch.errors import translated
from redrive.protocols.aws.cloudwatch.listing import Listing
from redrive.protocols.aws.cloudwatch.putting import Putting
from redrive.protocols.aws.cloudwatch.queries import Queries
from redrive.protocols.aws.cloudwatch.reading import Reading
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError


class CloudWatch:
    """CloudWatch on a store of metrics."""

    def __init__(self, store: TelemetryStore, settle: Callable[[], Awaitable[None]], alarms: Alarms) -> None:
        """Speak for this store.

        Args:
            store: Where metrics are.
            settle: Lets what this node has counted arrive in the store, so that whoever reads sees it.
            alarms: The alarms.
        """
        reading = Reading(store, settle)
        self.operations: Mapping[str, Verb] = operations_of(
            "cloudwatch",
            Queries(reading),
            Datapoints(reading),
            Listing(store, reading),
            Putting(store),
            *alarms.operations,
        )

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
