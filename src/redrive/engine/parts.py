"""The parts that an engine is made of, put together in one place."""

from collections.abc import Sequence

from redrive.engine.configuration.dead_letter_sources import DeadLetterSources
from redrive.engine.configuration.directory import Directory
from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.topics import Topics
from redrive.engine.node.memory import FaultInjection, Listeners, NodeCounters, SubscriptionContexts
from redrive.engine.node.sealed_store import DocumentSeals, MessageSeals, SealedStore
from redrive.engine.ports import DeliveryProfile, Endpoint, Runtime, Store
from redrive.engine.ports.facts import Listener
from redrive.engine.publish.fan_out import TopicPublisher
from redrive.engine.publish.sender import Publisher
from redrive.engine.push.circuit_breakers import CircuitBreakers
from redrive.engine.push.conditions import EndpointConditions
from redrive.engine.push.dispatcher import Dispatcher
from redrive.engine.push.late_pushes import LatePushes, SoftTimeout
from redrive.engine.push.retrier import SettleRetrier
from redrive.engine.push.settlement import PushParts
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.receive.receiver import Receiver
from redrive.engine.receive.settler import Settler
from redrive.engine.resources import Resources, Subscriptions
from redrive.engine.sweep import Sweeper
from redrive.engine.tasks.dead_letters import ChosenMoves, DeadLetters
from redrive.engine.tasks.redrive import Redriver
from redrive.engine.tasks.replay import Replayer
from redrive.engine.tracing import Tracer


class EngineParts:
    """The objects that carry out the verbs of `messages`, `resources` and `operations`.

    Facades have no business here: only the engine, and tests of one part, reach for parts. What carries bodies or
    documents works on the sealed store, everything else on the store itself.
    """

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        profiles: dict[str, DeliveryProfile],
        endpoints: dict[str, Endpoint],
        listeners: Sequence[Listener],
    ) -> None:
        """Make them; nothing runs yet. See `Engine` for the arguments; profiles and endpoints are added to later."""
        clock = runtime.clock
        self.store = store
        self.clock = clock
        self.profiles = profiles
        self.endpoints = endpoints
        self.seals = MessageSeals()
        self.document_seals = DocumentSeals()
        self.sealed_store = sealed = SealedStore(store, self.seals, self.document_seals)
        self.listeners = all_listeners = Listeners(listeners)
        self.counters = NodeCounters()
        self.faults = FaultInjection()
        self.notifier = notifier = QueueNotifier(clock)
        self.directory = Directory(sealed, runtime.first_version)
        self.queues = Queues(sealed, self.directory, clock)
        self.subscriptions = Subscriptions(sealed, self.directory, self.queues, clock)
        self.topics = Topics(sealed, self.directory, self.queues, self.subscriptions, clock)
        self.resources = resources = Resources(self.topics, self.subscriptions, self.queues, self.directory)
        self.contexts = SubscriptionContexts(profiles)
        self.circuits = CircuitBreakers(self.directory, runtime.node)
        self.publisher = Publisher(sealed, clock, notifier, self.counters, all_listeners, self.seals)
        self.receiver = Receiver(sealed, store, runtime, self.queues, notifier, self.counters, all_listeners)
        self.settler = Settler(
            store, clock, self.queues, notifier, self.receiver.in_flight, self.counters, all_listeners
        )
        self.topic_publisher = TopicPublisher(
            sealed,
            store,
            runtime,
            self.queues,
            self.topics,
            notifier,
            self.contexts,
            self.faults,
            all_listeners,
            self.seals,
        )
        self.dispatcher = Dispatcher(self._push_parts(runtime), self.topics)
        self.redriver = Redriver(store, runtime, resources, notifier, self.counters)
        self.chosen_moves = ChosenMoves(sealed, store, runtime, resources, notifier, self.counters)
        self.replayer = Replayer(store, runtime, resources, notifier, self.topic_publisher, self.seals)
        self.dead_letters = DeadLetters(
            store, clock, resources, DeadLetterSources(self.directory, self.subscriptions, profiles.keys())
        )
        self.tracer = Tracer(store, clock, self.queues, self.topics, self.dead_letters)
        self.conditions = EndpointConditions(
            store, self.topics, self.queues, self.contexts, endpoints, self.circuits
        )
        self.sweeper = Sweeper(
            store,
            clock,
            resources,
            self.circuits,
            self.counters,
            all_listeners,
            self.receiver.end_unasked,
            self.forget,
        )

    def _push_parts(self, runtime: Runtime) -> PushParts:
        return PushParts(
            store=self.sealed_store,
            queue_store=self.store,
            runtime=runtime,
            queues=self.queues,
            notifier=self.notifier,
            contexts=self.contexts,
            counters=self.counters,
            endpoints=self.endpoints,
            faults=self.faults,
            listeners=self.listeners,
            publisher=self.topic_publisher,
            circuits=self.circuits,
            retrier=SettleRetrier(self.clock),
            soft_timeout=SoftTimeout(self.clock),
            late_pushes=LatePushes(self.clock),
            seals=self.seals,
        )

    def forget(self, queue_id: int) -> None:
        """Remember nothing of a queue that is there no more."""
        self.counters.forget(queue_id)
        self.receiver.in_flight.forget(queue_id)
        self.notifier.unwatch(queue_id)
