"""Amazon CloudWatch Logs: the operations on groups, streams and events."""

from collections.abc import Mapping, Sequence

from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.rounds import Rounds
from redrive.aws.kit.service import Facades, OfferedService, operations_of
from redrive.aws.logs.destinations import DeliveryStreams, Functions, LogDestination, SubscribedEndpoint
from redrive.aws.logs.events import LogReader, PutEventOperations
from redrive.aws.logs.filters import MetricFilters
from redrive.aws.logs.groups import LogGroupOperations, LogStreamOperations
from redrive.aws.logs.live_tails import LiveTails
from redrive.aws.logs.places import LogPlaces, Settle, StreamNames
from redrive.aws.logs.querying import Querying
from redrive.aws.logs.records import METRIC_FILTER, SUBSCRIPTION_FILTER
from redrive.aws.logs.resource_policies import ResourcePolicies
from redrive.aws.logs.service import SERVICE
from redrive.aws.logs.subscriptions import SubscriptionFilters
from redrive.engine.engine import Engine
from redrive.engine.ports import NodeStore
from redrive.model.log import LogEvent

_GROUP = "log-group:"


class Logs(OfferedService):
    """CloudWatch Logs on a store of events.

    Attributes:
        endpoint: What subscribed events are pushed to.
        tails: The sessions that follow groups.
    """

    def __init__(
        self,
        engine: Engine,  # not open yet
        store: NodeStore,
        settle: Settle,  # lets what this node has logged arrive in the store, so that whoever reads sees it
        services: Facades,  # those that are added later are found as well
        identities: Identities,
        rounds: Rounds,
        *,
        simulated: bool,  # the clock is a simulated one
        open_functions: bool,
    ) -> None:
        self._documents = engine.resources.documents
        places = LogPlaces(self._documents)
        calls = InnerCalls(services, engine.runtime)
        destinations: Mapping[str, LogDestination] = {
            "lambda": Functions(calls, rounds, open_functions=open_functions),
            "firehose": DeliveryStreams(calls, identities),
        }
        self._filters = MetricFilters(store, places)
        self._subscriptions = SubscriptionFilters(engine, store, places, destinations)
        self._filters.stored_filters.share_regex_limit_with(SUBSCRIPTION_FILTER)
        self._subscriptions.stored_filters.share_regex_limit_with(METRIC_FILTER)
        self.tails = LiveTails(store, places, settle, engine.runtime, simulated=simulated)
        self.endpoint = SubscribedEndpoint(destinations)
        groups = LogGroupOperations(
            store, places, settle, self._filters.stored_filters, self._subscriptions.stored_filters
        )
        super().__init__(
            SERVICE,
            engine,
            operations_of(
                "logs",
                groups,
                groups.tagging,
                LogStreamOperations(store, places, settle),
                PutEventOperations(places, self.write_down),
                LogReader(store, places, settle),
                Querying(store, places, settle, engine.runtime),
                ResourcePolicies(places.documents),
                self._filters,
                self._subscriptions,
                self.tails,
            ),
        )

    async def write_down(self, events: Sequence[LogEvent], streams: StreamNames) -> None:
        """Write events of streams down with what they lead to: callers' own, and those of whoever else writes to groups.

        Raises:
            StoreUnavailable: It is unknown whether they are on disk.
        """
        await self._subscriptions.write_down(events, streams)
        self.tails.note_news()
        await self._filters.pass_through(events)
