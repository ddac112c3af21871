"""A service as one value: what its folder's `service.py` says of it, and what this server carries out by that."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from redrive.aws.kit.call import Call, Facade, ResourceScope, Verb
from redrive.aws.services import FOLDERS
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.hosted_urls import HostedUrls
from redrive.aws.wire.profiles import Profile
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DeliveryProfile, DocumentKind
from redrive.model.errors import RedriveError

_WORD_ENDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(operation: str) -> str:
    """The name of the method for an operation: `get_sms_attributes` for `GetSMSAttributes`."""
    return _WORD_ENDS.sub("_", operation).lower()


def operations_of(service: str, *parts: object) -> dict[str, Verb]:
    """Map the operations of a service to the methods of `parts` that have their names in snake case.

    A part that is a mapping of operations to methods is added as it is.

    Raises:
        ValueError: Two parts have a method for the same operation.
    """
    verbs: dict[str, Verb] = {}
    for part in parts:
        if isinstance(part, Mapping):
            verbs |= part
    for operation in sorted(Service.load(service).operation_names):
        name = snake_case(operation)
        methods: list[Any] = [getattr(part, name) for part in parts if hasattr(part, name)]
        if len(methods) + (operation in verbs) > 1:
            raise ValueError(f"{service} {operation} has {len(methods)} methods {name}")
        if methods:
            verbs[operation] = methods[0]
    return verbs


Scopes = Callable[[Engine, Call, str, Structure], Awaitable[Iterable[ResourceScope]]]


def _no_profiles(_: Any) -> Mapping[str, DeliveryProfile]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A service besides its operations: what it answers to and does by itself, told before any of it is imported."""

    paths: tuple[str, ...] = ()  # Beginnings of paths that it has to itself
    hosted: HostedUrls | None = None  # The URLs of what has a host of its own
    endpoints: tuple[str, ...] = ()  # Endpoint protocols of its subscriptions
    # Makes the profiles of its deliveries, by the dialect that topics carry, of the `Host`.
    profiles: Callable[[Any], Mapping[str, DeliveryProfile]] = _no_profiles
    # Documents for which it has work that goes on by itself: where there are any, it starts with the server.
    wakes: tuple[DocumentKind[Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsService:
    """All that is particular to a service."""

    profile: Profile  # Facts that its published model leaves out
    title: str  # As Amazon's handlers of resources call it in reasons: `CloudWatchLogs`
    # Translates a refusal of the engine into the service's error.
    translated: Callable[[RedriveError], AwsError]
    scopes: Scopes  # The resources that an operation is about; see `Facade.scopes`
    # What callers make through it, all of which a reset removes.
    documents: tuple[DocumentKind[Any], ...] = ()
    # The action that a caller needs for an operation, where it is not called as the operation is.
    action: Callable[[Call, str], str] | None = None
    switch: str = ""  # How a server has to be started to offer the service; empty: it is offered always
    # Makes its operations, of the `Host` that is handed to it; None: `redrive.composition` has a module for
    # the service, since there is more to it than operations.
    operations: Callable[[Any], Mapping[str, Verb]] | None = None
    outline: Outline = Outline()  # Everything besides operations

    @property
    def name(self) -> str:
        """Botocore's name of the service."""
        return self.profile.name

    def action_of(self, call: Call, operation: str) -> str:
        """The action that a caller needs for an operation: `iam:PassRole`."""
        return f"{self.name}:{operation}" if self.action is None else self.action(call, operation)


def service_of(name: str) -> AwsService:
    """The service that botocore calls so, out of its folder; raises KeyError if Redrive has none."""
    service: AwsService = import_module(f"redrive.aws.{FOLDERS[name]}.service").SERVICE
    return service


class OfferedService:
    """A service that this server offers (`Facade`).

    Attributes:
        service: What it is.
        operations: The operations that it offers.
    """

    def __init__(self, service: AwsService, engine: Engine, operations: Mapping[str, Verb]) -> None:
        self.operations = operations
        self.service = service
        self._engine = engine

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
        """The resources that the caller's own policies have to allow for a call; none: the operation asks itself."""
        return await self.service.scopes(self._engine, call, operation, params)

    def action(self, call: Call, operation: str) -> str:
        """The action that a caller needs for an operation, as `iam:PassRole`."""
        return self.service.action_of(call, operation)

    def translated(self, refusal: RedriveError) -> AwsError:
        """The service's error for a refusal of the engine."""
        return self.service.translated(refusal)


class UnopenedService:
    """A service before its first request."""

    def __init__(self, open_service: Callable[[], Awaitable[Facade]]) -> None:
        self.open: Final = open_service


Facades = Mapping[str, Facade | UnopenedService]
"""Services by botocore's names."""


async def facade_of(facades: Facades, service: str) -> Facade | None:
    """A service, opened where it was not; None: it is not offered."""
    facade = facades.get(service)
    return await facade.open() if isinstance(facade, UnopenedService) else facade


def offered(service: AwsService, host: Any) -> OfferedService:
    """A service that is nothing but operations, on a `Host`."""
    if service.operations is None:
        raise ValueError(f"{service.name} has a module of its own in redrive.composition")
    return OfferedService(service, host.engine, service.operations(host))
