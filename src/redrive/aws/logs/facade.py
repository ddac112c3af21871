"""Amazon CloudWatch Logs: the operations on groups, streams and events."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.owed_calls import OwedCallProfile
from redrive.aws.gateway.rounds import Rounds
from redrive.aws.kit.call import Call, Facade, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import ResourceScope, resource_part, values_of
from redrive.aws.logs.destinations import DeliveryStreams, Functions, LogDestination
from redrive.aws.logs.errors import translated
from redrive.aws.logs.filters import METRIC_FILTER, MetricFilters
from redrive.aws.logs.groups import LogGroupOperations
from redrive.aws.logs.live_tails import LiveTails
from redrive.aws.logs.places import GROUP, STREAM, LogPlaces, Settle, StreamNames
from redrive.aws.logs.putting import PutEventOperations
from redrive.aws.logs.querying import QUERY, Querying
from redrive.aws.logs.reading import LogReader
from redrive.aws.logs.resource_policies import RESOURCE_POLICY, ResourcePolicies
from redrive.aws.logs.streams import LogStreamOperations
from redrive.aws.logs.subscribed import DIALECT, SubscribedEndpoint
from redrive.aws.logs.subscriptions import SUBSCRIPTION_FILTER, SubscriptionFilters
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind, NodeStore
from redrive.model.errors import RedriveError
from redrive.model.log import LogEvent

_GROUP = "log-group:"


class Logs:
    """CloudWatch Logs on a store of events.

    Attributes:
        profile: Of the deliveries that subscribed events are.
        endpoint: What they are pushed to.
        tails: The sessions that follow groups.
    """

    def __init__(
        self,
        engine: Engine,
        store: NodeStore,
        settle: Settle,
        services: Mapping[str, Facade],
        identities: Identities,
        rounds: Rounds,
        *,
        leaps: bool,
        open_functions: bool,
    ) -> None:
        """Speak for this store.

        Args:
            engine: Where groups and streams are, and what brings events to functions; not open yet.
            store: Where events are.
            settle: Lets what this node has logged arrive in the store, so that whoever reads sees it.
            services: Where functions and delivery streams are; those that are added later are found as well.
            identities: Where roles are.
            rounds: Counts the runs of functions that events lead to.
            leaps: Whether the clock leaps, as a simulated one does.
            open_functions: See `Functions`.
        """
        self._documents = engine.resources.documents
        places = LogPlaces(self._documents)
        calls = InnerCalls(services, engine.runtime)
        destinations: Mapping[str, LogDestination] = {
            "lambda": Functions(calls, rounds, open_functions=open_functions),
            "firehose": DeliveryStreams(calls, identities),
        }
        self._filters = MetricFilters(store, places)
        self._subscriptions = SubscriptionFilters(engine, store, places, destinations)
        self._filters.kept.stand_beside(SUBSCRIPTION_FILTER)
        self._subscriptions.kept.stand_beside(METRIC_FILTER)
        self.tails = LiveTails(store, places, settle, engine.runtime, leaps=leaps)
        self.profile = OwedCallProfile(DIALECT)
        self.endpoint = SubscribedEndpoint(destinations)
        groups = LogGroupOperations(store, places, settle, self._filters.kept, self._subscriptions.kept)
        self.operations: Mapping[str, Verb] = operations_of(
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
        )

    async def write_down(self, events: Sequence[LogEvent], streams: StreamNames) -> None:
        """Write events down with what they lead to: callers' own, and those of whoever else writes to groups.

        Args:
            events: Of streams that there are.
            streams: The names of those streams.

        Raises:
            StoreUnavailable: Nobody knows whether they are on disk.
        """
        await self._subscriptions.write_down(events, streams)
        self.tails.stir()
        await self._filters.pass_through(events)

    kinds: tuple[DocumentKind[Any], ...] = (
        STREAM,
        GROUP,
        METRIC_FILTER,
        SUBSCRIPTION_FILTER,
        QUERY,
        RESOURCE_POLICY,
    )
    """All that callers make through this service, besides events."""

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
        """See `Facade.scopes`.

        What is about a group is about its streams: Amazon asks about the stream without a name, so that policies that
        end in `:*` match.
        """
        own = f"arn:aws:logs:{call.region}:{call.account}"
        if operation == "DescribeLogGroups":  # which looks at no other parameter that names groups
            return [_of_group(f"{own}:{_GROUP}{params.get('logGroupNamePrefix', '')}*", params)]
        members = (
            "logGroupName",
            "logGroupNames",
            "logGroupIdentifier",
            "logGroupIdentifiers",
            "resourceArn",
        )
        group_names = [resource_part(text) for text in values_of(params, *members)]
        if query_id := params.get("queryId"):
            queries = await self._documents.find(QUERY, f"{call.account}/{call.region}/")
            group_names = [name for query in queries if query.id == query_id for name in query.groups]
        groups = dict.fromkeys(name.removeprefix(_GROUP).removesuffix(":*") for name in group_names)
        return [_of_group(f"{own}:{_GROUP}{name}", params) for name in groups or ["*"]]

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)


def _of_group(arn: str, params: Structure) -> ResourceScope:
    streams = f"{arn}:log-stream:"
    if name := params.get("logStreamName"):
        return ResourceScope(f"{streams}{name}", (arn,))
    chosen = [f"{streams}{name}" for name in values_of(params, "logStreamNames")]
    prefixes = values_of(params, "logStreamNamePrefix", "logStreamNamePrefixes")
    chosen += [f"{streams}{prefix}*" for prefix in prefixes]
    return ResourceScope(streams, (arn, *(chosen or [f"{streams}*"])))
