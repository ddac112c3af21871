"""What a trial takes: the parts of the engine that it goes through, and whose deliveries they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redrive.engine.arrivals import Arrivals
from redrive.engine.facts import Listener
from redrive.engine.fan_out import TopicPublisher
from redrive.engine.faults import Faults
from redrive.engine.patience import Patience
from redrive.engine.ports import Dialect, Endpoint, Plan, Runtime, Store
from redrive.engine.probation import Probations
from redrive.engine.queues import Queues
from redrive.engine.unsettled import Unsettled
from redrive.model.topic import Subscription, Topic


class Terms(NamedTuple):
    """Whose deliveries they are, and how they are pushed."""

    topic: Topic
    subscription: Subscription
    plan: Plan
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class Means:
    """The parts of the engine that a trial goes through."""

    store: Store
    runtime: Runtime
    queues: Queues
    arrivals: Arrivals
    endpoints: Mapping[str, Endpoint]
    faults: Faults
    listeners: Sequence[Listener]
    publisher: TopicPublisher
    probations: Probations
    unsettled: Unsettled
    patience: Patience
