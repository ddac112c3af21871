"""The parts of the engine that an attempt goes through."""

from collections.abc import Mapping
from dataclasses import dataclass

from redrive.engine.configuration.queues import Queues
from redrive.engine.fault_injection import FaultInjection
from redrive.engine.listeners import Listeners
from redrive.engine.ports import Endpoint, MessageStore, QueueStore, Runtime
from redrive.engine.publish.fan_out import TopicPublisher
from redrive.engine.push.circuit_breakers import CircuitBreakers
from redrive.engine.push.contexts import SubscriptionContexts
from redrive.engine.push.late_pushes import LatePushes
from redrive.engine.push.retrier import SettleRetrier
from redrive.engine.push.soft_timeout import SoftTimeout
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.sealed_store import MessageSeals


@dataclass(frozen=True, slots=True)
class PushParts:
    """The parts of the engine that an attempt goes through, by their roles."""

    store: MessageStore
    queue_store: QueueStore
    runtime: Runtime
    queues: Queues
    notifier: QueueNotifier
    contexts: SubscriptionContexts
    endpoints: Mapping[str, Endpoint]
    faults: FaultInjection
    listeners: Listeners
    publisher: TopicPublisher
    circuits: CircuitBreakers
    retrier: SettleRetrier
    soft_timeout: SoftTimeout
    late_pushes: LatePushes
    seals: MessageSeals
