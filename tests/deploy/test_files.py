"""The files in `deploy/`, held against the server that they are for."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from redrive.settings import Settings
from redrive.settings.sources import variable_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "redrive"
VARIABLES = {variable_of(name) for name in Settings.__dataclass_fields__}


def metrics_in(text: str) -> set[str]:
    return {re.sub(r"_bucket$", "", name) for name in re.findall(r"redrive_[a-z_]+", text)}


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "redrive.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown = set().union(*map(metrics_in, expressions))
    documented = metrics_in((ROOT / "docs/reference/metrics.md").read_text())
    assert shown
    assert not shown - documented


@pytest.mark.parametrize(
    "file",
    [
        ROOT / "Dockerfile",
        DEPLOY / "docker" / "compose.yaml",
        CHART / "templates" / "deployment.yaml",
        DEPLOY / "systemd" / "redrive.service",
        ROOT / "docs/how-to/install.md",
    ],
    ids=lambda file: file.name,
)
def test_each_variable_is_a_setting(file: Path) -> None:
    named = set(re.findall(r"REDRIVE_[A-Z_]*[A-Z]", file.read_text()))
    assert named
    assert not named - VARIABLES


def values() -> Any:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def schema() -> Any:
    return json.loads((CHART / "values.schema.json").read_text())


def test_the_charts_values_fit_their_schema_and_each_has_a_row_there() -> None:
    jsonschema.validate(values(), schema())
    assert set(values()) | {"global"} == set(schema()["properties"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": 0},
        {"publicUrl": "queues.example"},
        {"blobStore": "/var/lib/redrive"},
        {"settings": {"region": "eu"}},
        {"allowPrivateEndpoints": ["10.0.0.0"]},
        {"replica": 2},
    ],
)
def test_the_chart_refuses_values_that_mean_nothing(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values() | wrong, schema())


def test_templates_use_values_that_there_are() -> None:
    used: set[str] = set()
    for template in (CHART / "templates").iterdir():
        used |= set(re.findall(r"\.Values\.(\w+)", template.read_text()))
    assert used == set(values())


def test_the_balancer_asks_the_nodes_of_the_compose_file_for_their_health() -> None:
    services = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())["services"]
    balancer = (DEPLOY / "docker" / "haproxy.cfg").read_text()
    nodes = dict(re.findall(r"server (\S+) (\S+):4566", balancer))
    assert set(nodes.values()) == {name for name in services if name.startswith("node-")}
    assert "option httpchk GET /_redrive/health" in balancer


def test_the_image_is_built_from_what_the_context_lets_through() -> None:
    let_through = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {name for line in copied for name in line.split()} == let_through
