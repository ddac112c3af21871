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
    """The whole server's, put together with everything that can be switched on, and not started."""

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


# ---- routes and metrics ------------------------------------------------------------------------------------------


def routes() -> list[str]:
    own = [f"{method} {path}" for method, path in router()._control._routes]
    for path, answer in router()._paths.items():
        several: Any = getattr(getattr(answer, "__self__", None), "_routes", {("GET", path): None})
        own += [f"{method} {route}" for method, route in several]
    return own


@pytest.mark.parametrize("route", routes())
def test_a_control_route_has_its_section(route: str) -> None:
    """A path that ends in something made up is documented by its beginning."""
    sections = page("control-routes").sections
    assert any(heading.startswith(route) and text.strip() for heading, text in sections.items())


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


@pytest.mark.parametrize(("service", "operation"), operations())
def test_an_operation_has_its_section_or_line(service: str, operation: str) -> None:
    shown = page(service)
    assert shown.sections.get(operation, "").strip() or f"| `{operation}` |" in shown.text


@pytest.mark.parametrize("service", sorted({service for service, _ in operations()}))
def test_no_operation_is_documented_that_is_not_there(service: str) -> None:
    """On a service's page every heading of the third level is an operation."""
    shown = re.findall(r"^### (.+)$", page(service).prose, re.MULTILINE)
    assert not [name for name in shown if (service, name) not in operations()]


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


@pytest.mark.parametrize("route", azure_routes("Arm"))
def test_a_route_of_the_resource_manager_has_its_line(route: str) -> None:
    method, path = route.split(" ", 1)
    (methods,) = re.findall(rf"^\| `{re.escape(path)}` \| (.*) \|$", page("eventgrid").text, re.MULTILINE)
    assert method in methods.split()


@pytest.mark.parametrize("route", azure_routes("Entra"))
def test_a_route_of_the_sign_in_has_its_line(route: str) -> None:
    assert f"| `{route}` |" in page("eventgrid").text


def test_every_route_of_namespaces_has_its_line() -> None:
    (azure,) = [each for each in router()._recognising if isinstance(each, AzureGateway)]
    (namespaces,) = [one for one in azure._services if type(one).__name__ == "Namespaces"]
    assert not [route for route in namespaces.routes if f"| `{route}` |" not in page("eventgrid").text]
