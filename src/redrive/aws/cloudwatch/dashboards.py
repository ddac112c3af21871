"""Dashboards: kept and given back as they were put. Nobody draws them here; the body is checked as far as people err."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from redrive.aws.cloudwatch.metrics.errors import PAGES, error, invalid
from redrive.aws.cloudwatch.records import DASHBOARD, Dashboard
from redrive.aws.kit.call import Call
from redrive.aws.kit.json_cursor import read_object
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents, Draft
from redrive.model.names import ResourceName

PAGE: Final = 1_000
WIDGETS_MAX: Final = 500
_WIDTH_MAX: Final = 24
_HEIGHT_MAX: Final = 1_000
_NAME: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_Complaint = tuple[str, str]


class DashboardOperations:
    """Puts, gets, lists and deletes dashboards."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def put_dashboard(self, call: Call, params: Structure) -> Structure:
        name, body = _name(call, params["DashboardName"]), params["DashboardBody"]
        _check_name(name.name)
        _check_body(body)
        dashboard = Dashboard(name, body, call.now)
        await self._documents.update_or_create(DASHBOARD, name.key, dashboard, lambda _: dashboard)
        return {"DashboardValidationMessages": []}

    async def get_dashboard(self, call: Call, params: Structure) -> Structure:
        name = _name(call, params["DashboardName"])
        dashboard = await self._documents.get(DASHBOARD, name.key)
        if dashboard is None:
            raise _no_such(name.name)
        return {"DashboardArn": _arn(name), "DashboardBody": dashboard.body, "DashboardName": name.name}

    async def list_dashboards(self, call: Call, params: Structure) -> Structure:
        prefix = _name(call, params.get("DashboardNamePrefix") or "").key
        after = PAGES.after("ListDashboards", params)
        dashboards = await self._documents.find(DASHBOARD, prefix, after, PAGE + 1)
        page, ending = PAGES.cut(
            "ListDashboards", params, dashboards, lambda dashboard: dashboard.name.key, size=PAGE
        )
        return {"DashboardEntries": [_entry(dashboard) for dashboard in page], **ending}

    async def delete_dashboards(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DeleteDashboards.html.

        All of them or none.
        """
        names = [_name(call, name) for name in dict.fromkeys(params["DashboardNames"])]

        async def decide(draft: Draft) -> None:
            for name in names:
                if await draft.get(DASHBOARD, name.key) is None:
                    raise _no_such(name.name)
                draft.remove(DASHBOARD, name.key)

        await self._documents.transact(decide)
        return {}


def _name(call: Call, name: str) -> ResourceName:
    return ResourceName(call.account, "", name)


def _arn(name: ResourceName) -> str:
    return f"arn:aws:cloudwatch::{name.account}:dashboard/{name.name}"


def _entry(dashboard: Dashboard) -> Structure:
    """A dashboard as lists have it."""
    return {
        "DashboardArn": _arn(dashboard.name),
        "DashboardName": dashboard.name.name,
        "LastModified": dashboard.modified_at,
        "Size": len(dashboard.body.encode()),
    }


def _no_such(name: str) -> Exception:
    return error("DashboardNotFoundError", f"Dashboard {name} does not exist")


def _check_name(name: str) -> None:
    if not name or not _NAME.issuperset(name):
        raise invalid(
            "The value for field DashboardName contains invalid characters. It can only contain alphanumerics, dash (-)"
            " and underscore (_).\n"
        )


# ---- the body --------------------------------------------------------------------------------------------------


def _check_body(text: str) -> None:
    body = read_object(text)
    if body is None:
        raise error("DashboardInvalidInputError", "The field DashboardBody must be a valid JSON object")
    if complaints := list(_complaints(body)):
        messages = orjson.dumps([{"dataPath": path, "message": why} for path, why in complaints]).decode()
        raise error(
            "DashboardInvalidInputError",
            f"The dashboard body is invalid, there are {len(complaints)} validation errors:{messages}",
        )


def _complaints(body: dict[str, Any]) -> Iterator[_Complaint]:
    widgets = body.get("widgets")
    if widgets is None:
        yield "", "Should have required property 'widgets'"
        return
    if not isinstance(widgets, list):
        yield "/widgets", "Should be array"
        return
    if len(widgets) > WIDGETS_MAX:
        yield "/widgets", f"Should NOT have more than {WIDGETS_MAX} items"
    for index, widget in enumerate(widgets[:WIDGETS_MAX]):
        yield from _about(f"/widgets/{index}", widget)


def _about(path: str, widget: object) -> Iterator[_Complaint]:
    """The complaints about a widget, each with its path."""
    if not isinstance(widget, dict):
        yield path, "Should be object"
        return
    for name, kind, kind_name in (("type", str, "string"), ("properties", dict, "object")):
        if name not in widget:
            yield path, f"Should have required property '{name}'"
        elif not isinstance(widget[name], kind):
            yield f"{path}/{name}", f"Should be {kind_name}"
    for name, low, high in (
        ("x", 0, _WIDTH_MAX),
        ("y", 0, None),
        ("width", 1, _WIDTH_MAX),
        ("height", 1, _HEIGHT_MAX),
    ):
        value = widget.get(name, low)
        if not isinstance(value, int) or isinstance(value, bool):
            yield f"{path}/{name}", "Should be integer"
        elif value < low or (high is not None and value > high):
            yield (
                f"{path}/{name}",
                f"Should be >= {low}" + (f" and <= {high}" if high is not None else ""),
            )
