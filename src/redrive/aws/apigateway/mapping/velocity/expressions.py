"""Nodes of templates: expressions (literals, references, operators), and the directives and texts between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from redrive.aws.apigateway.mapping.velocity import values
from redrive.aws.apigateway.mapping.velocity.methods import call_method
from redrive.aws.apigateway.mapping.velocity.values import Value
from redrive.model.budget import Budget


class TemplateScope:
    """The variables and the output of one rendering.

    Attributes:
        budget: The remaining budget of the rendering.
        names: The variables.
        out: The pieces of the text so far.
    """

    __slots__ = ("budget", "names", "out")

    def __init__(self, budget: Budget, names: dict[str, Value]) -> None:
        self.budget = budget
        self.names = names
        self.out: list[str] = []

    def write(self, text: str) -> None:
        """Write a piece."""
        self.budget.spend_chars(len(text))
        self.out.append(text)


class Expression(Protocol):
    """A node that has a value."""

    def value(self, scope: TemplateScope) -> Value:
        """The value; raises TemplateFailed."""
        ...


class TemplateNode(Protocol):
    """A node that writes something, or nothing."""

    def write(self, scope: TemplateScope) -> None:
        """Write its text; raises TemplateFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a boolean, null, or a text in single quotes."""

    constant: Value

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        scope.budget.spend()
        return self.constant


@dataclass(frozen=True, slots=True)
class InterpolatedText:
    """A text in double quotes, with references and directives in it."""

    nodes: Sequence[TemplateNode]

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        scope.budget.spend()
        inner = TemplateScope(scope.budget, scope.names)
        for node in self.nodes:
            node.write(inner)
        return "".join(inner.out)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[1, $two]`."""

    items: Sequence[Expression]

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        return values.TemplateList(item.value(scope) for item in self.items)


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """`{"key": $value}`."""

    items: Sequence[tuple[Expression, Expression]]

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        members: dict[str, Value] = {}
        for key, item in self.items:
            values.put(members, key.value(scope), item.value(scope))
        return members


@dataclass(frozen=True, slots=True)
class RangeLiteral:
    """`[1..$n]`, from either end."""

    first: Expression
    last: Expression

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        first, last = self.first.value(scope), self.last.value(scope)
        if not (isinstance(first, int) and isinstance(last, int)):
            return None
        scope.budget.spend(abs(last - first) + 1)
        return values.TemplateList(range(first, last + 1) if first <= last else range(first, last - 1, -1))


@dataclass(frozen=True, slots=True)
class TemplateMember:
    """`.name` behind a reference."""

    name: str

    def of(self, scope: TemplateScope, value: Value) -> Value:
        """The member of a value."""
        scope.budget.spend()
        return values.member(value, self.name)

    def put(self, _: TemplateScope, value: Value, item: Value) -> None:
        """Put a value there."""
        values.put(value, self.name, item)


@dataclass(frozen=True, slots=True)
class TemplateElement:
    """`[index]` behind a reference."""

    index: Expression

    def of(self, scope: TemplateScope, value: Value) -> Value:
        """The element of a value."""
        return values.element(value, self.index.value(scope))

    def put(self, scope: TemplateScope, value: Value, item: Value) -> None:
        """Put a value there."""
        values.put(value, self.index.value(scope), item)


@dataclass(frozen=True, slots=True)
class MethodCall:
    """`.name(arguments)` behind a reference."""

    name: str
    arguments: Sequence[Expression]

    def of(self, scope: TemplateScope, value: Value) -> Value:
        """The answer of a value's method."""
        values = [argument.value(scope) for argument in self.arguments]
        return None if value is None else call_method(scope.budget, value, self.name, values)

    def put(self, _: TemplateScope, value: Value, item: Value) -> None:
        """Do nothing: a call is no place."""


@dataclass(frozen=True, slots=True)
class Reference:
    """`$name` and the steps behind it; an absent value is null, whose text is empty."""

    name: str
    steps: Sequence[TemplateMember | TemplateElement | MethodCall]

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        scope.budget.spend()
        value = scope.names.get(self.name)
        for step in self.steps:
            value = step.of(scope, value)
        return value

    def write(self, scope: TemplateScope) -> None:
        """Write the text of the node into a scope."""
        scope.write(values.text_of(scope.budget, self.value(scope)))

    def put(self, scope: TemplateScope, item: Value) -> None:
        """Put a value in the place that the reference leads to."""
        if not self.steps:
            scope.names[self.name] = item
            return
        value = scope.names.get(self.name)
        for step in self.steps[:-1]:
            value = step.of(scope, value)
        self.steps[-1].put(scope, value, item)


@dataclass(frozen=True, slots=True)
class Negation:
    """`!condition`."""

    operand: Expression

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        return not values.is_true(self.operand.value(scope))


@dataclass(frozen=True, slots=True)
class Negative:
    """`-number`."""

    operand: Expression

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        return values.calculate("-", 0, self.operand.value(scope))


@dataclass(frozen=True, slots=True)
class TemplateOperation:
    """An operator between two values; `&&` and `||` skip the right one if the left one decides."""

    operator: str
    left: Expression
    right: Expression

    def value(self, scope: TemplateScope) -> Value:
        """The value of the expression, by the variables of a scope."""
        scope.budget.spend()
        left = self.left.value(scope)
        if self.operator == "&&":
            return values.is_true(left) and values.is_true(self.right.value(scope))
        if self.operator == "||":
            return values.is_true(left) or values.is_true(self.right.value(scope))
        right = self.right.value(scope)
        match self.operator:
            case "==":
                return values.equal(scope.budget, left, right)
            case "!=":
                return not values.equal(scope.budget, left, right)
            case "+":
                return values.add(scope.budget, left, right)
            case "-" | "*" | "/" | "%":
                return values.calculate(self.operator, left, right)
            case _:
                return values.compare(self.operator, left, right)


class LoopBreak(Exception):  # noqa: N818 - a turn of the way, not an error
    """The end of a loop, by `#break`."""


class TemplateStop(Exception):  # noqa: N818 - a turn of the way, not an error
    """The end of a template, by `#stop`."""


@dataclass(frozen=True, slots=True)
class VerbatimText:
    """Text as it is."""

    text: str

    def write(self, scope: TemplateScope) -> None:
        """Write the text of the node into a scope."""
        scope.budget.spend()
        scope.write(self.text)


@dataclass(frozen=True, slots=True)
class Set:
    """`#set($reference = value)`."""

    reference: Reference
    expression: Expression

    def write(self, scope: TemplateScope) -> None:
        """Set the reference; no text is written."""
        self.reference.put(scope, self.expression.value(scope))


@dataclass(frozen=True, slots=True)
class If:
    """`#if … #elseif … #else … #end`: writes the first branch whose condition is true; `#else` has None for it."""

    branches: Sequence[tuple[Expression | None, Sequence[TemplateNode]]]

    def write(self, scope: TemplateScope) -> None:
        """Write the text of the node into a scope."""
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
        """Write the nodes for each item; afterwards the loop's variables have their values from before."""
        collection = self.items.value(scope)
        items = _loop_items(scope.budget, collection)
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
            except LoopBreak:
                break
        scope.names.update(before)


def _loop_items(budget: Budget, items: Any) -> list[Any]:
    """The items of a list, or the values of a map; none of another value."""
    if not isinstance(items, list | dict):
        return []
    budget.spend(len(items))  # a copy: the loop may change what it goes through
    return list(items.values() if isinstance(items, dict) else items)


@dataclass(frozen=True, slots=True)
class Break:
    """`#break`."""

    def write(self, _: TemplateScope) -> None:
        """Write the text of the node into a scope."""
        raise LoopBreak


@dataclass(frozen=True, slots=True)
class Stop:
    """`#stop`, and `#return`."""

    def write(self, _: TemplateScope) -> None:
        """Write the text of the node into a scope."""
        raise TemplateStop
