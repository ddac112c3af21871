"""Routing: finds the resource of a path. A text precedes a `{variable}`, and that a `{greedy+}` one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from redrive.aws.apigateway.control.records import METHODS

DEFAULT: Final = "$default"
_REMEMBERED_MAX: Final = 256


@dataclass(slots=True)
class _RouteNode:
    """A node of the tree of paths, below one part of a path."""

    # The resources whose paths end here: in HTTP APIs several, which name their variables differently.
    resources: list[Mapping[str, Any]] = field(default_factory=list)
    literals: dict[str, "_RouteNode"] = field(default_factory=dict)  # The next parts, by their text
    variable: "_RouteNode | None" = None  # The node below a variable for the next part
    # The resources whose paths end in a variable for all the parts that follow.
    greedy_resources: list[Mapping[str, Any]] = field(default_factory=list)


class Routes:
    """The resources of an API, found by path."""

    def __init__(self, resources: Iterable[Mapping[str, Any]]) -> None:
        """Route to these; the resource with the path `$default` is for requests that match no other."""
        self._root = _RouteNode()
        self._default: Mapping[str, Any] | None = None
        for resource in resources:
            if resource["path"] == DEFAULT:
                self._default = resource
            else:
                self._add(resource)

    def _add(self, resource: Mapping[str, Any]) -> None:
        """Enter a resource below the parts of its path; a greedy part is the last."""
        node = self._root
        for part in resource["path"].strip("/").split("/"):
            if not part:
                continue
            if part.startswith("{") and part.endswith("+}"):
                node.greedy_resources.append(resource)
                return
            if part.startswith("{"):
                node.variable = node.variable or _RouteNode()
                node = node.variable
            else:
                node = node.literals.setdefault(part, _RouteNode())
        node.resources.append(resource)

    def find(
        self, path: str, method: str
    ) -> tuple[Mapping[str, Any], Mapping[str, Any], dict[str, str]] | None:
        """The resource of a path, its method, and the path's parameters; None: none fits, and there is no `$default`."""
        parts = [part for part in path.split("/") if part]
        route_match = _search(self._root, parts, 0, method, [])
        if route_match is None:
            if self._default is None:
                return None
            route_match = self._default, []
        resource, values = route_match
        names = [part.strip("{+}") for part in resource["path"].split("/") if part.startswith("{")]
        parameters = dict(zip(names, values, strict=False))  # a name behind a greedy one has no value
        methods = resource[METHODS]
        return resource, methods.get(method) or methods["ANY"], parameters


class RoutesCache:
    """The routes of recently used stages, built anew when a stage serves another document."""

    def __init__(self) -> None:
        self._routes: dict[str, tuple[object, Routes]] = {}

    def of(self, key: str, source: object, resources: Callable[[], Iterable[Mapping[str, Any]]]) -> Routes:
        """The routes of a stage or a deployment; `source`: the document that they are built from."""
        known_source, routes = self._routes.get(key, (None, None))
        if routes is not None and known_source is source:
            return routes
        if len(self._routes) >= _REMEMBERED_MAX:
            self._routes.clear()
        routes = Routes(resources())
        self._routes[key] = source, routes
        return routes


def _search(
    node: _RouteNode, parts: list[str], at: int, method: str, values: list[str]
) -> tuple[Mapping[str, Any], list[str]] | None:
    """The best resource below a node, and its variables' values. A part leads to at most two nodes: text and variable."""
    if at == len(parts):
        resource = _resource_for(method, node.resources)
        return None if resource is None else (resource, values)
    literal = node.literals.get(parts[at])
    if literal is not None:
        match = _search(literal, parts, at + 1, method, values)
        if match is not None:
            return match
    if node.variable is not None:
        match = _search(node.variable, parts, at + 1, method, [*values, unquote(parts[at])])
        if match is not None:
            return match
    resource = _resource_for(method, node.greedy_resources)
    return None if resource is None else (resource, [*values, unquote("/".join(parts[at:]))])


def _resource_for(method: str, resources: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The resource that has a method, before one that has `ANY`; None: there is neither."""
    for name in (method, "ANY"):
        for resource in resources:
            if name in (resource.get(METHODS) or {}):
                return resource
    return None
