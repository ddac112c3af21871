"""`redrive endpoints`: the state of endpoints, with its cause; close circuit breakers."""

import argparse
from typing import Any

from redrive.cli.client import Client, Entry, Listing, add_listing, add_server, with_client
from redrive.cli.terminal import moment


def register(command: argparse.ArgumentParser) -> None:
    """Add its own commands."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser(
        "list", help="list endpoints that fail, are unconfirmed or have an open circuit breaker"
    )
    listing.add_argument("--all", action="store_true", help="list the healthy ones too")
    add_listing(listing, "TOPIC/ID")
    listing.set_defaults(run=with_client(_list))
    close = actions.add_parser(
        "close",
        aliases=["lift"],
        help="close the circuit breaker of an endpoint and retry waiting deliveries at once",
    )
    close.set_defaults(run=with_client(_close))
    options = actions.add_parser("set", help="set how failures of an endpoint are handled")
    options.add_argument(
        "--circuit-breaker",
        "--rests",
        choices=("on", "off"),
        help="stop deliveries while the endpoint fails (always on for Event Grid)",
    )
    options.add_argument(
        "--client-errors", choices=("delivered", "refused"), help="how a 4xx that is not retried counts"
    )
    options.set_defaults(run=with_client(_set))
    for action in (close, options):
        action.add_argument("topic", help="name or ARN of the topic, or ARN of the subscription")
        action.add_argument("id", nargs="?", help="id of the subscription, unless its ARN is given")
    for action in (listing, close, options):
        add_server(action)


def _list(client: Client, parsed: argparse.Namespace) -> int:
    nothing = "there are no subscriptions" if parsed.all else "no endpoint needs attention"
    listing = Listing(
        "/_redrive/endpoints",
        "endpoints",
        lambda endpoint: f"{endpoint['topic']}/{endpoint['id']}",
        _show,
        nothing,
    )
    return listing.run(client, parsed, **({"all": "true"} if parsed.all else {}))


def _show(endpoints: list[Entry]) -> None:
    for endpoint in endpoints:
        print(f"{endpoint['topic']}  {endpoint['id']}  {endpoint['protocol']}  {endpoint['endpoint']}")
        print(f"    {_state(endpoint)}{_options(endpoint)}")


def _close(client: Client, parsed: argparse.Namespace) -> int:
    answer = client.post("/_redrive/endpoints", {"topic": parsed.topic, "id": parsed.id, "close": True})
    print("closed: it is served again" if answer["closed"] else "it was not open")
    return 0


def _set(client: Client, parsed: argparse.Namespace) -> int:
    """Change a subscription's options, of those that are named, and print them."""
    document: dict[str, Any] = {"topic": parsed.topic, "id": parsed.id}
    if parsed.circuit_breaker:
        document["circuit_breaker"] = parsed.circuit_breaker == "on"
    if parsed.client_errors:
        document["client_errors_delivered"] = parsed.client_errors == "delivered"
    endpoint = client.post("/_redrive/endpoints", document)["endpoint"]
    print(f"{endpoint['topic']}  {endpoint['id']}{_options(endpoint)}")
    return 0


def _state(endpoint: Entry) -> str:
    """The state of an endpoint in words."""
    match endpoint["state"]:
        case "unconfirmed":
            return "unconfirmed: it has not agreed to get messages"
        case "not_set_up":
            return f"not set up: this server has nothing to push {endpoint['protocol']} to"
        case "circuit_open":
            return _circuit(endpoint["circuit"])
        case "failing":
            return f"failing ({_cause(endpoint['failing'])})"
        case _:
            return "served"


def _circuit(circuit: Entry) -> str:
    cause = _cause(circuit)
    if circuit["over"]:
        return f"circuit breaker half open since {moment(circuit['since'])} ({cause}): one delivery is tried next"
    return f"circuit breaker open until {moment(circuit['until'])} ({cause})"


def _cause(state: Entry) -> str:
    status = f" {state['status']}" if state["status"] else ""
    failures = "1 failure" if state["failures"] == 1 else f"{state['failures']} failures"
    return f"{state['reason']}{status}" + (f", {failures} in a row" if state["failures"] else "")


def _options(endpoint: Entry) -> str:
    breaker = "  circuit-breaker=on" if endpoint["circuit_breaker"] else ""
    return breaker + ("  client-errors=delivered" if endpoint["client_errors_delivered"] else "")
