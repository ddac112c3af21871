"""The parts of the engine that an attempt goes through."""

from collections.abc import Mapping
from dataclasses import dataclass

from redrive.engine.arrivals import Arrivals
from redrive.engine.contexts import SubscriptionContexts
from redrive.engine.fan_out import TopicPublisher
from redrive.engine.faults import Faults
from redrive.engine.listeners import Listeners
from redrive.engine.patience import SoftTimeout
from redrive.engine.ports import Endpoint, Runtime, Store
from redrive.engine.probation import Probations
from redrive.engine.queues import Queues
from redrive.engine.unsettled import SettleRetrier


@dataclass(frozen=True, slots=True)
class DispatchContext:
    """The parts of the engine that an attempt goes through, by their roles."""

    store: Store
    runtime: Runtime
    queues: Queues
    arrivals: Arrivals
    contexts: SubscriptionContexts
    endpoints: Mapping[str, Endpoint]
    faults: Faults
    listeners: Listeners
    publisher: TopicPublisher
    probations: Probations
    retrier: SettleRetrier
    soft_timeout: SoftTimeout
