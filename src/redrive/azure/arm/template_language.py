"""The language of ARM templates: expressions in brackets within a JSON document.

    "[concat(parameters('name'), '-', variables('suffix')[0].text)]"      "[[a text that begins with a bracket]"

An expression is read and carried out in one pass, within a budget of values and characters that is spent before anything
is put together of them. `reference` and the like ask for resources that may not be there yet: `Needed` says which, and
whoever evaluates makes them and evaluates again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from redrive.azure.arm.template_functions import FUNCTIONS
from redrive.model.language import LanguageReader

_TOKEN: Final = re.compile(
    r"\s*(?:'(?P<text>(?:[^']|'')*)'|(?P<number>-?\d+)|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>[()\[\],.]))"
)
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
        to_visit: list[Any] = [*values]
        self._steps -= 1
        while to_visit:
            value = to_visit.pop()
            self._steps -= 1
            if isinstance(value, str):
                self._chars -= len(value)
            elif isinstance(value, Mapping):
                to_visit += [*value, *value.values()]
            elif isinstance(value, list):
                to_visit += value
            if self._steps < len(to_visit) or self._chars < 0:
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
        """A text: its value if it is an expression in brackets; `[[` begins a text that is not one."""
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
        """The value of a function; of `if`, only the branch that is taken is evaluated."""
        lower = name.lower()
        if lower == "if":
            condition, then, otherwise = arguments
            return then() if condition() else otherwise()
        values = [argument() for argument in arguments]
        self._budget.spend(values)
        function = self._functions.get(lower) or FUNCTIONS.get(lower)
        if function is None:
            raise TemplateError(f"The template function '{name}' is not valid.")
        return _in_64_bits(function(*values))


class _ExpressionReader(LanguageReader):
    """Reads one expression into thunks, so that `if` carries out one of its branches alone."""

    depth_max = _DEPTH_MAX
    end = "end of the expression"

    def __init__(self, text: str, call: Callable[[str, Sequence[Callable[[], Any]]], Any]) -> None:
        super().__init__(self.tokens(text, _TOKEN))
        self._call = call

    @classmethod
    @override
    def refusal(cls, reason: str) -> TemplateError:
        return TemplateError(f"The expression cannot be read: {reason}.")

    def whole(self) -> Any:
        read = self._expression()
        self.finish()
        return read()

    def _expression(self) -> Callable[[], Any]:
        """A value and the members that are taken of it, to be evaluated by a call."""
        with self.nested():
            read = self._value()
            while sign := self.take(".", "["):
                read = self._member(sign, read)
            return read

    def _value(self) -> Callable[[], Any]:
        """A text, a number, or a function with its arguments, to be evaluated by a call."""
        token = self.expect("text", "number", "name")
        if token.kind == "name":
            self.need("(")
            arguments = self.until(")", self._expression)
            return lambda: self._call(token.text, arguments)
        value = token.text.replace("''", "'") if token.kind == "text" else _in_64_bits(int(token.text))
        return lambda: value

    def _member(self, sign: str, read_value: Callable[[], Any]) -> Callable[[], Any]:
        """A member (`.name`) or an element (`[…]`) of a value, to be evaluated by a call."""
        if sign == ".":
            name = self.advance().text
            return lambda: _element_of(read_value(), name)
        index = self._expression()
        self.need("]")
        return lambda: _element_of(read_value(), index())


def _in_64_bits(value: Any) -> Any:
    """The value; raises ValueError for a whole number that no signed one of 64 bits is, so that no store takes it."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a whole number has 64 bits at most")
    return value


def _element_of(value: Any, name: Any) -> Any:
    """A member of an object, whatever its case, or an element of a list."""
    if isinstance(name, str):
        for step in name.split("."):
            member = next((key for key in value if key.lower() == step.lower()), None)
            if member is None:
                raise TemplateError(f"The language expression property '{step}' doesn't exist.")
            value = value[member]
        return value
    return value[name]
