"""Every metric that a server shows has its row in the reference, and the alert rules ask for metrics that there are."""

import asyncio
import re
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML ships no types

from redrive.app import assembled
from redrive.settings import Settings
from tests.docs.pages import DOCS, Page

_METRICS = Page.at(DOCS / "reference/metrics.md").text
_MONITOR = Page.at(DOCS / "how-to/monitor.md")
_SUFFIX = re.compile(r"_(bucket|sum|count)$")


def families() -> dict[str, str]:
    """The families that a server shows, with their types."""

    async def scrape() -> str:
        async with assembled(Settings(store="sqlite://:memory:"), "http://localhost") as server:
            return await server.exposition.text()

    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", asyncio.run(scrape()), re.MULTILINE))


FAMILIES = families()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_documented(name: str) -> None:
    assert f"`{name}`" in _METRICS


def test_no_family_is_documented_that_is_not_there() -> None:
    assert not set(re.findall(r"`(redrive_[a-z_]+)", _METRICS)) - FAMILIES.keys()


def rules() -> list[dict[str, Any]]:
    (text,) = [fence.text for fence in _MONITOR.fences if fence.mark == "redrive-rules.yml"]
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_metrics_that_there_are(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["annotations"]["summary"]
    assert rule["expr"].count("(") == rule["expr"].count(")")
    for name in re.findall(r"\bredrive_[a-z_]+", rule["expr"]):
        kind = FAMILIES[_SUFFIX.sub("", name) if name not in FAMILIES else name]
        function = "gauge" if re.search(rf"(rate|increase)\({name}\[", rule["expr"]) is None else "counter"
        assert (kind == "gauge") == (function == "gauge")


def test_the_rules_are_about_what_goes_wrong() -> None:
    asked = " ".join(rule["expr"] for rule in rules())
    for name in (
        "messages_available",
        "age_seconds",
        "dead_letters",
        "lost",
        "circuit_breakers",
        "commit_duration",
    ):
        assert name in asked
