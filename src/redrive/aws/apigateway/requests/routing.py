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

    resource: Mapping[str, Any] | None = None  # The resource whose path ends here
    literals: dict[str, "_RouteNode"] = field(default_factory=dict)  # The next parts, by their text
    # The name of a variable for the next part, and the node below it.
    variable: tuple[str, "_RouteNode"] | None = None
    # The name of a variable for all the parts that follow, and its resource.
    greedy: tuple[str, Mapping[str, Any]] | None = None


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
        node = self._root
        for part in resource["path"].strip("/").split("/"):
            if not part:
                continue
            if part.startswith("{") and part.endswith("+}"):
                node.greedy = part[1:-2], resource
                return
            if part.startswith("{"):
                node.variable = node.variable or (part[1:-1], _RouteNode())
                _, node = node.variable
            else:
                node = node.literals.setdefault(part, _RouteNode())
        node.resource = resource

    def find(
        self, path: str, method: str
    ) -> tuple[Mapping[str, Any], Mapping[str, Any], dict[str, str]] | None:
        """The resource of a path, its method, and the path's parameters; None: there is no such resource or method."""
        parts = [part for part in path.split("/") if part]
        route_match = _search(self._root, parts, 0, method, {})
        if route_match is None:
            if self._default is None:
                return None
            route_match = self._default, {}
        resource, parameters = route_match
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
    node: _RouteNode, parts: list[str], at: int, method: str, parameters: dict[str, str]
) -> tuple[Mapping[str, Any], dict[str, str]] | None:
    """The best resource below a node, and the parameters. A part leads to at most two nodes: text and variable."""
    if at == len(parts):
        if node.resource is not None and _answers(node.resource, method):
            return node.resource, parameters
        return None
    literal = node.literals.get(parts[at])
    if literal is not None:
        match = _search(literal, parts, at + 1, method, parameters)
        if match is not None:
            return match
    if node.variable is not None:
        name, below = node.variable
        match = _search(below, parts, at + 1, method, {**parameters, name: unquote(parts[at])})
        if match is not None:
            return match
    if node.greedy is not None:
        name, resource = node.greedy
        if _answers(resource, method):
            return resource, {**parameters, name: unquote("/".join(parts[at:]))}
    return None


def _answers(resource: Mapping[str, Any], method: str) -> bool:
    methods = resource.get(METHODS) or {}
    return method in methods or "ANY" in methods
