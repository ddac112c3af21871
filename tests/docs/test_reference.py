"""Everything the server offers, taken from its own tables, has its entry in docs/reference/."""

import argparse
import asyncio
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import pytest

from redrive.app import assembled
from redrive.aws.gateway.unoffered import service_text
from redrive.aws.sns.documents.destinations import PROTOCOLS
from redrive.aws.sqs import attributes
from redrive.aws.sqs.receiving import ATTRIBUTES
from redrive.azure.gateway import AzureGateway
from redrive.cli.main import parser
from redrive.engine.node.memory import METRIC_NAMES
from redrive.settings import ENVIRONMENT_PREFIX, Settings
from redrive.telemetry.accumulators import TOPIC_COUNTERS
from tests.docs.pages import DOCS, Page

REFERENCE = DOCS / "reference"


@cache
def page(name: str) -> Page:
    return Page.at(REFERENCE / f"{name}.md")


@cache
def router() -> Any:
    """The whole server's, put together with everything that can be switched on, and not started.

    Called by tests alone, each of which takes all that the server offers: at import it would be put together by each
    process that collects.
    """

    async def assemble() -> Any:
        settings = Settings(store="sqlite://:memory:", clock="simulated", allow_reset=True, functions="on")
        async with assembled(settings, "http://localhost") as server:
            await server.parts.open_all()
            for extension in server.parts.extensions:  # in place of what stood for them
                server.router._paths |= extension.interface.paths
                server.router._recognising = (
                    *server.router._recognising,
                    *extension.interface.protocols,
                )
            return server.router

    return asyncio.run(assemble())


# ---- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_a_setting_has_its_line(field: Any) -> None:
    flag = f"`--{field.name.replace('_', '-')}`"
    shown = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    default = f"`{shown}`" if shown else ""
    line = f"| {flag} | `{ENVIRONMENT_PREFIX}{field.name.upper()}` | {default}".rstrip()
    assert line in page("settings").text


# ---- commands ----------------------------------------------------------------------------------------------------

_SETTINGS_FLAGS = {f"--{field.name.replace('_', '-')}" for field in fields(Settings)}


def commands(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Those that do something: the others only lead to them."""
    below = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield top
    for action in below:
        for command in action.choices.values():
            yield from commands(command)


@pytest.mark.parametrize("command", list(commands(parser())), ids=lambda command: command.prog)
def test_a_command_has_its_section_with_its_options(command: argparse.ArgumentParser) -> None:
    section = page("commands").sections[command.prog]
    if "--azure-subscription" in command._option_string_actions:
        section += page("commands").sections["Commands that ask a server"]
    takes_all = {"--host", "--port"} <= command._option_string_actions.keys()
    options = {option for option in command._option_string_actions if option.startswith("--")} - {"--help"}
    missing = [option for option in options if f"`{option}" not in section]
    if takes_all:  # the page of settings has them
        missing = [option for option in missing if option not in _SETTINGS_FLAGS | {"--config"}]
    assert not missing


def test_every_plan_of_a_schedule_has_its_line() -> None:
    (schedule,) = (command for command in commands(parser()) if command.prog == "redrive schedule")
    section = page("commands").sections[schedule.prog]
    choices = schedule._option_string_actions["--plan"].choices or ()
    assert not [plan for plan in choices if f"| `{plan}` |" not in section]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_protocol_of_subscriptions_has_its_line(protocol: str) -> None:
    assert f"`{protocol}`" in page("sns").text


# ---- routes and metrics ------------------------------------------------------------------------------------------


def routes() -> list[str]:
    own = [f"{method} {path}" for method, path in router()._control._routes]
    for path, answer in router()._paths.items():
        several: Any = getattr(getattr(answer, "__self__", None), "_routes", {("GET", path): None})
        own += [f"{method} {route}" for method, route in several]
    return own


def test_each_control_route_has_its_section() -> None:
    """A path that ends in something made up is documented by its beginning."""
    headings = [heading for heading, text in page("control-routes").sections.items() if text.strip()]
    assert not [route for route in routes() if not any(heading.startswith(route) for heading in headings)]


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_a_metric_has_its_line(metric: str) -> None:
    assert f"| `redrive_queue_{metric}_total` |" in page("metrics").text


@pytest.mark.parametrize("metric", TOPIC_COUNTERS)
def test_a_topic_s_metric_has_its_line(metric: str) -> None:
    assert f"| `redrive_topic_{metric}_total`" in page("metrics").text


# ---- services ----------------------------------------------------------------------------------------------------


def operations() -> list[tuple[str, str]]:
    gateway = router()._otherwise
    return [(service, name) for service, facade in gateway._facades.items() for name in facade.operations]


def test_each_operation_has_its_section_or_line_and_no_other_has() -> None:
    """On a service's page every heading of the third level is an operation."""
    offered = operations()
    assert len(offered) > 500
    assert not [
        (service, operation)
        for service, operation in offered
        if not page(service).sections.get(operation, "").strip()
        and f"| `{operation}` |" not in page(service).text
    ]
    headings = {
        (service, heading)
        for service in {service for service, _ in offered}
        for heading in re.findall(r"^### (.+)$", page(service).prose, re.MULTILINE)
    }
    assert headings <= set(offered)


def test_the_refusal_of_other_services_is_quoted_as_it_is() -> None:
    assert service_text("dynamodb", "ListTables", ("sns", "sqs", "…")) in page("sts").text


def test_every_sqs_attribute_is_there() -> None:
    section = page("sqs").sections["Attributes"]
    assert not [name for name in attributes.TABLE.names if f"| `{name}` |" not in section]
    assert not [name for name in attributes.COUNTED if f"`{name}`" not in section]


def test_every_sqs_message_attribute_is_there() -> None:
    section = page("sqs").sections["ReceiveMessage"]
    assert not [name for name in ATTRIBUTES if f"`{name}`" not in section]


# ---- Event Grid --------------------------------------------------------------------------------------------------

_IN_ALL_GROUPS = "/subscriptions/{subscription}/providers/Microsoft.EventGrid"
_IN_A_GROUP = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.EventGrid"


def azure_routes(service: str) -> list[str]:
    (azure,) = [each for each in router()._recognising if isinstance(each, AzureGateway)]
    (found,) = [one for one in azure._services if type(one).__name__ == service]
    names: list[str] = found.routes.names
    return [name.replace(_IN_ALL_GROUPS, "…in all groups").replace(_IN_A_GROUP, "…") for name in names]


def test_each_route_of_the_resource_manager_has_its_line() -> None:
    for route in azure_routes("Arm"):
        method, path = route.split(" ", 1)
        (methods,) = re.findall(rf"^\| `{re.escape(path)}` \| (.*) \|$", page("eventgrid").text, re.MULTILINE)
        assert method in methods.split(), route


def test_each_route_of_the_sign_in_has_its_line() -> None:
    text = page("eventgrid").text
    assert not [route for route in azure_routes("Entra") if f"| `{route}` |" not in text]


def test_every_route_of_namespaces_has_its_line() -> None:
    (azure,) = [each for each in router()._recognising if isinstance(each, AzureGateway)]
    (namespaces,) = [one for one in azure._services if type(one).__name__ == "Namespaces"]
    assert not [route for route in namespaces.routes if f"| `{route}` |" not in page("eventgrid").text]
