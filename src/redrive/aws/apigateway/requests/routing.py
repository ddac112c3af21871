"""Routing of requests: the resource that a path is for: text before `{variables}`, those before `{greedy+}` ones."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from redrive.aws.apigateway.control.records import METHODS

DEFAULT: Final = "$default"
_REMEMBERED_MAX: Final = 256


@dataclass(slots=True)
class _Step:
    """A part of paths."""

    resource: Mapping[str, Any] | None = None  # The resource that ends here; None: none does
    literals: dict[str, "_Step"] = field(default_factory=dict)  # The next parts, by their text
    # The next part where it may be anything, and its name; None: it may not.
    variable: tuple[str, "_Step"] | None = None
    # The resource that takes all that follows, and its parameter's name; None: none does.
    greedy: tuple[str, Mapping[str, Any]] | None = None


class Routes:
    """The resources of an API, found by path."""

    def __init__(self, resources: Iterable[Mapping[str, Any]]) -> None:
        """Find these; the one whose path is `$default` is for all that no other is for."""
        self._root = _Step()
        self._default: Mapping[str, Any] | None = None
        for resource in resources:
            if resource["path"] == DEFAULT:
                self._default = resource
            else:
                self._add(resource)

    def _add(self, resource: Mapping[str, Any]) -> None:
        at = self._root
        for part in resource["path"].strip("/").split("/"):
            if not part:
                continue
            if part.startswith("{") and part.endswith("+}"):
                at.greedy = part[1:-2], resource
                return
            if part.startswith("{"):
                at.variable = at.variable or (part[1:-1], _Step())
                at = at.variable[1]
            else:
                at = at.literals.setdefault(part, _Step())
        at.resource = resource

    def find(
        self, path: str, method: str
    ) -> tuple[Mapping[str, Any], Mapping[str, Any], dict[str, str]] | None:
        """The resource of a path, its method, and the parameters; None: no caller can ask for that."""
        parts = [part for part in path.split("/") if part]
        route_match = _search(self._root, parts, 0, method, {})
        if route_match is None:
            if self._default is None:
                return None
            route_match = self._default, {}
        resource, parameters = route_match
        methods = resource[METHODS]
        return resource, methods.get(method) or methods["ANY"], parameters


class RememberedRoutes:
    """The routes of the stages that requests came to last, each made anew when it shows another document."""

    def __init__(self) -> None:
        self._routes: dict[str, tuple[object, Routes]] = {}

    def of(self, key: str, source: object, resources: Callable[[], Iterable[Mapping[str, Any]]]) -> Routes:
        """The routes of a stage or deployment, read again when `source`, their document, is another."""
        known = self._routes.get(key)
        if known is not None and known[0] is source:
            return known[1]
        if len(self._routes) >= _REMEMBERED_MAX:
            self._routes.clear()
        routes = Routes(resources())
        self._routes[key] = source, routes
        return routes


def _search(
    step: _Step, parts: list[str], at: int, method: str, parameters: dict[str, str]
) -> tuple[Mapping[str, Any], dict[str, str]] | None:
    """The best resource below a step. A path has one variable and one text for each part at most: 2 steps each."""
    if at == len(parts):
        if step.resource is not None and _answers(step.resource, method):
            return step.resource, parameters
        return None
    literal = step.literals.get(parts[at])
    if literal is not None:
        match = _search(literal, parts, at + 1, method, parameters)
        if match is not None:
            return match
    if step.variable is not None:
        name, below = step.variable
        match = _search(below, parts, at + 1, method, {**parameters, name: unquote(parts[at])})
        if match is not None:
            return match
    if step.greedy is not None and _answers(step.greedy[1], method):
        name, resource = step.greedy
        return resource, {**parameters, name: unquote("/".join(parts[at:]))}
    return None


def _answers(resource: Mapping[str, Any], method: str) -> bool:
    methods = resource.get(METHODS) or {}
    return method in methods or "ANY" in methods
