"""Extensions: what a part of the server brings along, as one value that the server registers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.kit.call import Facade
from redrive.aws.kit.service import UnopenedService
from redrive.aws.sns.parts import SnsPart
from redrive.engine.engine import Engine
from redrive.engine.ports import DeliveryProfile, DocumentKind, Endpoint
from redrive.engine.ports.facts import Listener
from redrive.model.delivery import Delivery
from redrive.server.app import Answer, HostedProtocol, Recognising

Presenter: TypeAlias = Callable[[Delivery], tuple[str, Mapping[str, Any]]]
"""The body and the attributes that a receiver gets of a delivery that came from another service."""


class ClockDriven(Protocol):
    """A part of the server that does something by itself when time passes, besides the engine."""

    @property
    def is_quiet(self) -> bool:
        """True if `until_quiet` would return at once."""
        ...

    async def until_quiet(self) -> None:
        """Return when nothing is under way."""
        ...


@dataclass(frozen=True, slots=True)
class Interface:
    """The requests that an extension answers, and the documents that they make."""

    # Amazon services, by botocore's names.
    services: Mapping[str, Facade | UnopenedService] = field(default_factory=dict)
    protocols: Sequence[Recognising] = ()  # Those that know their own requests when they see them
    hosted: HostedProtocol | None = None  # The protocol whose requests are told by their host
    # Beginnings of paths that the extension has to itself.
    paths: Mapping[str, Answer] = field(default_factory=dict)
    kinds: Sequence[DocumentKind[Any]] = ()  # Documents that a reset removes
    # Removals of a reset that are not of all documents of a kind.
    reset: Sequence[Callable[[], Awaitable[None]]] = ()


@dataclass(frozen=True, slots=True)
class DeliveryParts:
    """An extension's part in delivering messages."""

    # How deliveries are made, by the dialect that topics carry.
    profiles: Mapping[str, DeliveryProfile] = field(default_factory=dict)
    # What deliveries are pushed to, by the protocol that subscriptions carry.
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    # Told what happens, each with the dialects and profiles whose facts it hears; none: all of them.
    listeners: Sequence[tuple[Listener, Sequence[str]]] = ()
    presenters: Mapping[str, Presenter] = field(default_factory=dict)  # By envelope, for receivers of queues
    sns: SnsPart | None = None  # Parts that the extension adds to SNS
    encryption: Encryption | None = None  # Encrypts messages at rest, if it is this extension that does


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The work of an extension at the start and the end of the server, and in between by itself."""

    # What is done to the store before anything is taken up.
    prepare: Sequence[Callable[[], Awaitable[None]]] = ()
    start: Sequence[Callable[[], None]] = ()  # Called once the server is ready
    # Parts that the passing of simulated time sets off, besides the engine.
    clock_driven: Sequence[ClockDriven] = ()
    # Given, once all parts are there, what moves a simulated clock on.
    drives: Sequence[Callable[[Callable[[int], Awaitable[int]]], None]] = ()
    # Ends answers that go on and on, before those that are under way are waited for.
    end_streams: Sequence[Callable[[], None]] = ()
    # Let go of while the engine is still open: what calls it by itself.
    stop: Sequence[Callable[[], Awaitable[None]]] = ()
    close: Sequence[Callable[[], Awaitable[None]]] = ()  # Resources to close at the end, besides endpoints


@dataclass(frozen=True, slots=True)
class Extension:
    """A facade, or a part of one. One that has no life of its own, or delivers nothing, leaves that value out."""

    interface: Interface = Interface()
    delivery: DeliveryParts = DeliveryParts()
    lifecycle: Lifecycle = Lifecycle()

    def register(self, engine: Engine) -> None:
        """Make the engine know it, before that is open."""
        delivery = self.delivery
        if delivery.encryption is not None:
            engine.seal_by(delivery.encryption, delivery.encryption.root)
        engine.add_kinds(self.interface.kinds)
        for dialect, profile in delivery.profiles.items():
            engine.add_profile(dialect, profile)
        for protocol, endpoint in delivery.endpoints.items():
            engine.add_endpoint(protocol, endpoint)
        for listener, names in delivery.listeners:
            engine.add_listener(listener, *names)
