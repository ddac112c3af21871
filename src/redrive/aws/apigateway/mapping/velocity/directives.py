"""Directives and texts of templates, each a node that writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redrive.aws.apigateway.mapping.velocity import values
from redrive.aws.apigateway.mapping.velocity.expressions import (
    Expression,
    Reference,
    TemplateNode,
    TemplateScope,
)
from redrive.model.budget import Budget


class Broken(Exception):  # noqa: N818 - a turn of the way, not an error
    """The end of a loop, by `#break`."""


class Stopped(Exception):  # noqa: N818 - a turn of the way, not an error
    """The end of a template, by `#stop`."""


@dataclass(frozen=True, slots=True)
class VerbatimText:
    """Text as it is."""

    text: str

    def write(self, scope: TemplateScope) -> None:
        """See `TemplateNode`."""
        scope.budget.spend()
        scope.write(self.text)


@dataclass(frozen=True, slots=True)
class Set:
    """`#set($place = value)`."""

    place: Reference
    given: Expression

    def write(self, scope: TemplateScope) -> None:
        """See `TemplateNode`."""
        self.place.put(scope, self.given.value(scope))


@dataclass(frozen=True, slots=True)
class If:
    """`#if … #elseif … #else … #end`: the first branch whose condition is true; that of `#else` has none."""

    branches: Sequence[tuple[Expression | None, Sequence[TemplateNode]]]

    def write(self, scope: TemplateScope) -> None:
        """See `TemplateNode`."""
        for condition, nodes in self.branches:
            scope.budget.spend()
            if condition is None or values.is_true(condition.value(scope)):
                for node in nodes:
                    node.write(scope)
                return


@dataclass(frozen=True, slots=True)
class Foreach:
    """`#foreach($item in $items) … #end`, over the values of a map too."""

    name: str
    items: Expression
    nodes: Sequence[TemplateNode]

    def write(self, scope: TemplateScope) -> None:
        """See `TemplateNode`."""
        collection = self.items.value(scope)
        items = _items(scope.budget, collection)
        before = {name: scope.names.get(name) for name in (self.name, "foreach", "velocityCount")}
        for index, item in enumerate(items):
            scope.budget.spend()
            count = index + 1
            scope.names[self.name] = item
            scope.names["velocityCount"] = count
            scope.names["foreach"] = {
                "index": index,
                "count": count,
                "first": index == 0,
                "last": count == len(items),
                "hasNext": count < len(items),
                "parent": before["foreach"],
            }
            try:
                for node in self.nodes:
                    node.write(scope)
            except Broken:
                break
        scope.names.update(before)


def _items(budget: Budget, items: Any) -> list[Any]:
    if not isinstance(items, list | dict):
        return []
    budget.spend(len(items))  # a copy: the loop may change what it goes through
    return list(items.values() if isinstance(items, dict) else items)


@dataclass(frozen=True, slots=True)
class Break:
    """`#break`."""

    def write(self, _: TemplateScope) -> None:
        """See `TemplateNode`."""
        raise Broken


@dataclass(frozen=True, slots=True)
class Stop:
    """`#stop`, and `#return`."""

    def write(self, _: TemplateScope) -> None:
        """See `TemplateNode`."""
        raise Stopped
