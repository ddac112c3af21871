"""The control routes behind `redrive endpoints`: how endpoints stand and why, and what they opted for."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from redrive.aws.gateway.authentication import Authentication
from redrive.engine.engine import Engine
from redrive.engine.operations import EndpointCondition
from redrive.model.circuit import OpenCircuit
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription
from redrive.server.owned import (
    Audit,
    ControlRefusal,
    OwnedRoute,
    OwnedRoutes,
    document_of,
    json_answer,
    page_of,
    parameters,
    subscription_named,
)

PATH: Final = "/_redrive/endpoints"
AT_ONCE: Final = 200  # conditions that are read together: 2 ms
_OPTIONS: Final = ("circuit_breaker", "client_errors_delivered")
_FORMER: Final = {"rests": "circuit_breaker", "lift": "close"}  # names that are taken for one release more


class EndpointRoutes:
    """Answers requests about the endpoints of the caller's own subscriptions."""

    def __init__(self, engine: Engine, authentication: Authentication, audit: Audit) -> None:
        self._engine = engine
        routes: dict[tuple[str, str], OwnedRoute] = {("GET", PATH): self._list, ("POST", PATH): self._change}
        self.answer = OwnedRoutes(authentication, routes, audit).answer

    async def _list(self, request: Request, where: ResourceName) -> Response:
        """The endpoints with a trouble or an open circuit; with `all=true` the others too."""
        arguments = parameters(request)
        after, limit = page_of(arguments)
        everybody = arguments.get("all") == "true"
        subscriptions = await self._engine.resources.subscriptions.of_account(
            where.account,
            where.region,
            where._replace(name=after).key if after else "",
            limit + 1 if everybody else None,
        )
        endpoints: list[tuple[Subscription, EndpointCondition]] = []
        for begin in range(0, len(subscriptions), AT_ONCE):
            at_once = subscriptions[begin : begin + AT_ONCE]
            conditions = await self._engine.operations.conditions.of_each(at_once)
            endpoints += [
                (subscription, condition)
                for subscription, condition in zip(at_once, conditions, strict=True)
                if everybody or condition.troubled
            ]
            if len(endpoints) > limit:
                break
        now = self._engine.clock.now()
        documents = [_row(subscription, condition, now) for subscription, condition in endpoints[:limit]]
        return json_answer(200, {"endpoints": documents, "more": len(endpoints) > limit, "now": now})

    async def _change(self, request: Request, where: ResourceName) -> Response:
        """`{"topic", "id", "close"?: true, "circuit_breaker"?: bool, "client_errors_delivered"?: bool}`."""
        members = {_FORMER.get(name, name): value for name, value in document_of(request.body).items()}
        subscription = await self._subscription(where, members)
        options = _options(members)

        def with_options(current: Subscription) -> Subscription:
            return replace(
                current,
                rests=options.get("circuit_breaker", current.rests),
                client_errors_delivered=options.get(
                    "client_errors_delivered", current.client_errors_delivered
                ),
            )

        if options:
            subscription = await self._engine.resources.subscriptions.update(subscription, with_options)
        closed = members.get("close") is True and await self._engine.operations.close_circuit(subscription)
        condition = await self._engine.operations.conditions.of(subscription)
        document = _row(subscription, condition, self._engine.clock.now())
        return json_answer(200, {"endpoint": document, "closed": closed, "lifted": closed})

    async def _subscription(self, where: ResourceName, members: Mapping[str, Any]) -> Subscription:
        """The subscription that the members `topic` and `id` name."""
        topic, name = subscription_named(where, members.get("topic"), members.get("id"))
        subscription = await self._engine.resources.subscriptions.get(topic, name)
        if subscription is None:
            raise ControlRefusal(
                f"there is no subscription {name} of {topic.name} in {topic.account} {topic.region}"
            )
        return subscription


def _options(members: Mapping[str, Any]) -> dict[str, bool]:
    """The options of a subscription that a request sets."""
    options = {name: members[name] for name in _OPTIONS if name in members}
    for name, value in options.items():
        if not isinstance(value, bool):
            raise ControlRefusal(f"{name} is true or false")
    return options


def _row(subscription: Subscription, condition: EndpointCondition, now: int) -> dict[str, Any]:
    """A subscription's endpoint; `rests` and `probation` are the former names of `circuit_breaker` and `circuit`."""
    failing = condition.failing
    circuit = None if condition.circuit is None else _shown_circuit(condition.circuit, now)
    return {
        "topic": subscription.topic.name,
        "id": subscription.id,
        "protocol": subscription.protocol,
        "endpoint": subscription.redacted_endpoint,
        "circuit_breaker": subscription.rests,
        "rests": subscription.rests,
        "client_errors_delivered": subscription.client_errors_delivered,
        "state": condition.condition,
        "failing": None if failing is None else asdict(failing),
        "circuit": circuit,
        "probation": circuit,
    }


def _shown_circuit(state: OpenCircuit, now: int) -> dict[str, Any]:
    """A circuit but for its endpoint, whose URL may carry a password, and the node that probes."""
    document = state.to_document()
    for private_field in ("endpoint", "prober", "probing_until"):
        del document[private_field]
    return {**document, "over": state.until <= now}
