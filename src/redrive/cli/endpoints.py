"""`redrive endpoints`: the state of endpoints, with its cause; let those that rest be served again."""

import argparse
from typing import Any

from redrive.cli.client import Client, add_server, asking
from redrive.cli.listing import Entry, Listing, add_listing
from redrive.cli.terminal import moment


def register(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its own commands."""
    command = commands.add_parser("endpoints", help="show the state of endpoints, and end a probation")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list the endpoints that are not simply served")
    listing.add_argument("--all", action="store_true", help="the others too")
    add_listing(listing, "TOPIC/ID")
    listing.set_defaults(run=asking(_list))
    lift = actions.add_parser("lift", help="serve an endpoint again at once")
    lift.set_defaults(run=asking(_lift))
    options = actions.add_parser("set", help="say how an endpoint's failures are taken")
    options.add_argument(
        "--rests",
        choices=("on", "off"),
        help="whether it is let rest when it fails (Event Grid's always are)",
    )
    options.add_argument(
        "--client-errors", choices=("delivered", "refused"), help="what a 4xx that is not retried means"
    )
    options.set_defaults(run=asking(_set))
    for action in (lift, options):
        action.add_argument("topic", help="its name or ARN, or the subscription's ARN")
        action.add_argument("id", nargs="?", help="the subscription's id, unless its ARN is given")
    for action in (listing, lift, options):
        add_server(action)


def _list(client: Client, parsed: argparse.Namespace) -> int:
    nothing = "there are no subscriptions" if parsed.all else "every endpoint is served"
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


def _lift(client: Client, parsed: argparse.Namespace) -> int:
    done = client.post("/_redrive/endpoints", {"topic": parsed.topic, "id": parsed.id, "lift": True})
    print("lifted: it is served again" if done["lifted"] else "it was not on probation")
    return 0


def _set(client: Client, parsed: argparse.Namespace) -> int:
    wish: dict[str, Any] = {"topic": parsed.topic, "id": parsed.id}
    if parsed.rests:
        wish["rests"] = parsed.rests == "on"
    if parsed.client_errors:
        wish["client_errors_delivered"] = parsed.client_errors == "delivered"
    endpoint = client.post("/_redrive/endpoints", wish)["endpoint"]
    print(f"{endpoint['topic']}  {endpoint['id']}{_options(endpoint)}")
    return 0


def _state(endpoint: Entry) -> str:
    match endpoint["state"]:
        case "unconfirmed":
            return "unconfirmed: it has not agreed to get messages"
        case "not_set_up":
            return f"not set up: this server has nothing to push {endpoint['protocol']} to"
        case "resting":
            return _resting(endpoint["probation"])
        case "failing":
            return f"failing ({_why(endpoint['failing'])})"
        case _:
            return "served"


def _resting(circuit: Entry) -> str:
    why = _why(circuit)
    if circuit["over"]:
        return f"on probation since {moment(circuit['since'])} ({why}): one delivery is tried next"
    return f"rests until {moment(circuit['until'])} ({why})"


def _why(failing: Entry) -> str:
    status = f" {failing['status']}" if failing["status"] else ""
    failures = "1 failure" if failing["failures"] == 1 else f"{failing['failures']} failures"
    return f"{failing['reason']}{status}" + (f", {failures} in a row" if failing["failures"] else "")


def _options(endpoint: Entry) -> str:
    rests = "  rests=on" if endpoint["rests"] else ""
    return rests + ("  client-errors=delivered" if endpoint["client_errors_delivered"] else "")
