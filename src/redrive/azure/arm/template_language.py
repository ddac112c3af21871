"""The language of ARM templates: expressions in brackets within a JSON document.

    "[concat(parameters('name'), '-', variables('suffix')[0].text)]"      "[[a text that begins with a bracket]"

An expression is read and carried out in one pass, within a budget of values and characters that is spent before anything
is put together of them. `reference` and the like ask for resources that may not be there yet: `Needed` says which, and
whoever evaluates makes them and evaluates again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from redrive.azure.arm.template_functions import FUNCTIONS

_TOKEN: Final = re.compile(r"\s*(?:'((?:[^']|'')*)'|(-?\d+)|([A-Za-z_][\w.]*)|([()\[\],.]))")
_STEPS_MAX: Final = 500_000
_CHARS_MAX: Final = 4_000_000
_DEPTH_MAX: Final = 40
RESOURCES_MAX: Final = 800

Own = Callable[..., Any]


class TemplateError(Exception):
    """A template that cannot be carried out; the text is for people."""


class Needed(Exception):  # noqa: N818 - a question, not a failure
    """A resource that an expression is about, of which nothing is known yet.

    Attributes:
        resource: Its id.
        action: What is asked of it: empty for what it is, `listKeys` and the like otherwise.
    """

    def __init__(self, resource: str, action: str = "") -> None:
        super().__init__(resource)
        self.resource = resource
        self.action = action


class TemplateBudget:
    """The steps and characters that a deployment may take, and its resources with those nested in it."""

    def __init__(self) -> None:
        self._steps = _STEPS_MAX
        self._chars = _CHARS_MAX
        self._resources = RESOURCES_MAX

    def take_resource(self) -> None:
        """Count a resource; raises TemplateError if there are more than a deployment may have."""
        self._resources -= 1
        if self._resources < 0:
            raise TemplateError(
                f"A deployment has at most {RESOURCES_MAX} resources, with those nested in it."
            )

    def spend(self, values: Sequence[Any]) -> None:
        """Take a step that puts these values together; raises TemplateError if nothing is left."""
        left: list[Any] = [*values]
        self._steps -= 1
        while left:
            value = left.pop()
            self._steps -= 1
            if isinstance(value, str):
                self._chars -= len(value)
            elif isinstance(value, Mapping):
                left += [*value, *value.values()]
            elif isinstance(value, list):
                left += value
            if self._steps < len(left) or self._chars < 0:
                raise TemplateError(
                    "The template's expressions take more values or characters than they may have."
                )


class TemplateEvaluator:
    """Carries expressions out."""

    def __init__(self, functions: Mapping[str, Own], budget: TemplateBudget) -> None:
        """Know these functions besides the common ones, by their names in lower case."""
        self._functions = functions
        self._budget = budget

    def value(self, document: Any, depth: int = 0) -> Any:
        """A document with its expressions carried out.

        Raises:
            TemplateError: It cannot be.
            Needed: A resource has to be there first.
        """
        if depth > _DEPTH_MAX:
            raise TemplateError("The template is nested too deeply.")
        if isinstance(document, str):
            return self._text(document)
        if isinstance(document, list):
            return [self.value(item, depth + 1) for item in document]
        if isinstance(document, Mapping):
            return {self._text(name): self.value(item, depth + 1) for name, item in document.items()}
        return document

    def _text(self, text: str) -> Any:
        if not (text.startswith("[") and text.endswith("]")):
            return text
        if text.startswith("[["):
            return text[1:]
        try:
            return _ExpressionReader(text[1:-1], self._call).whole()
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError) as fault:
            raise TemplateError(
                f"Unable to process template language expressions in '{text[:200]}': {fault}"
            ) from None

    def _call(self, name: str, arguments: Sequence[Callable[[], Any]]) -> Any:
        lower = name.lower()
        if lower == "if":
            condition, then, otherwise = arguments
            return then() if condition() else otherwise()
        values = [argument() for argument in arguments]
        self._budget.spend(values)
        function = self._functions.get(lower) or FUNCTIONS.get(lower)
        if function is None:
            raise TemplateError(f"The template function '{name}' is not valid.")
        return function(*values)


class _ExpressionReader:
    """Reads one expression into thunks, so that `if` carries out one of its branches alone."""

    def __init__(self, text: str, call: Callable[[str, Sequence[Callable[[], Any]]], Any]) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._call = call
        self._depth = 0

    def whole(self) -> Any:
        read = self._expression()
        if self._at != len(self._tokens):
            raise TemplateError(
                f"The expression has something behind its end: {self._tokens[self._at][1]!r}."
            )
        return read()

    def _next(self, *expected: str) -> tuple[str, Any]:
        if self._at >= len(self._tokens):
            raise TemplateError("The expression ends too early.")
        token = self._tokens[self._at]
        if expected and token[1] not in expected:
            raise TemplateError(f"The expression has {token[1]!r} where {' or '.join(expected)} is expected.")
        self._at += 1
        return token

    def _sees(self, sign: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == ("sign", sign)

    def _expression(self) -> Callable[[], Any]:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise TemplateError("The expression is nested too deeply.")
        kind, value = self._next()
        read: Callable[[], Any] = lambda: value  # noqa: E731 - one of two thunks
        if kind == "name":
            arguments = self._arguments()
            read = lambda: self._call(value, arguments)  # noqa: E731 - the other
        elif kind == "sign":
            raise TemplateError(f"The expression has {value!r} where a value is expected.")
        while self._sees(".") or self._sees("["):
            read = self._member(read)
        self._depth -= 1
        return read

    def _arguments(self) -> list[Callable[[], Any]]:
        self._next("(")
        arguments: list[Callable[[], Any]] = []
        while not self._sees(")"):
            arguments.append(self._expression())
            if not self._sees(")"):
                self._next(",")
        self._next(")")
        return arguments

    def _member(self, of: Callable[[], Any]) -> Callable[[], Any]:
        _, sign = self._next(".", "[")
        if sign == ".":
            _, name = self._next()
            return lambda: _part(of(), name)
        index = self._expression()
        self._next("]")
        return lambda: _part(of(), index())


def _part(value: Any, name: Any) -> Any:
    """A member of an object, whatever its case, or an element of a list."""
    if isinstance(name, str):
        for step in name.split("."):
            key_found = next((key for key in value if key.lower() == step.lower()), None)
            if key_found is None:
                raise TemplateError(f"The language expression property '{step}' doesn't exist.")
            value = value[key_found]
        return value
    return value[name]


def _tokens(text: str) -> list[tuple[str, Any]]:
    tokens: list[tuple[str, Any]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise TemplateError(f"The expression cannot be read at {text[at : at + 20]!r}.")
        at = match.end()
        if match[1] is not None:
            tokens.append(("text", match[1].replace("''", "'")))
        elif match[2] is not None:
            tokens.append(("number", int(match[2][:19])))
        elif match[3] is not None:
            tokens.append(("name", match[3]))
        else:
            tokens.append(("sign", match[4]))
    return tokens
