"""Scope of a template: its parameters and variables, its copy loops, and the functions that depend on the place."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from redrive.azure.arm.template_language import Needed, TemplateBudget, TemplateError, TemplateEvaluator

COPIES_MAX: Final = 800
_TYPES: Final[Mapping[str, type]] = {
    "string": str,
    "securestring": str,
    "int": int,
    "bool": bool,
    "array": list,
    "object": dict,
    "secureobject": dict,
}
Loop = tuple[str, int]
"""A copy loop's name, and the number of one of its rounds."""


class DeploymentScope:
    """The scope in which the expressions of one template are evaluated.

    Attributes:
        parameters: Their values, by names in lower case.
        budget: What expressions may take.
        answers: What resources answered, by their ids in lower case and what they were asked.
    """

    def __init__(
        self, template: Mapping[str, Any], group: str, deployment: str, budget: TemplateBudget
    ) -> None:
        self._template = template
        self._group = group  # The id of the resource group that it is deployed to
        self._deployment = deployment
        self.budget = budget
        self.parameters: dict[str, Any] = {}
        self.answers: dict[tuple[str, str], Any] = {}  # by resource and action
        self._variables: dict[str, Any] = {}  # those evaluated so far
        self._loops: dict[str, int] = {}  # the present round of each
        self._evaluator = TemplateEvaluator(self._functions(), budget)

    def nested(self, template: Mapping[str, Any]) -> "DeploymentScope":
        """The scope of a nested template that is evaluated in the outer one's: with its parameters and variables."""
        inner_template = {
            **template,
            "variables": self._template.get("variables") or {},
            "parameters": self.declarations,
        }
        inner = DeploymentScope(inner_template, self._group, self._deployment, self.budget)
        inner.parameters, inner.answers = self.parameters, self.answers
        return inner

    @property
    def declarations(self) -> Mapping[str, Any]:
        """The parameters as the template declares them."""
        declarations: Mapping[str, Any] = self._template.get("parameters") or {}
        return declarations

    def read_parameters(self, by_name: Any) -> None:
        """Take values for the parameters.

        Raises:
            TemplateError: They are no object of objects, or one is missing, unknown, or not acceptable.
        """
        if not isinstance(by_name, Mapping) or not all(
            isinstance(value or {}, Mapping) for value in by_name.values()
        ):
            raise TemplateError("The deployment's 'parameters' must be an object of objects with a 'value'.")
        spellings = {name.lower(): name for name in self.declarations}
        if unknown := [name for name in by_name if name.lower() not in spellings]:
            raise TemplateError(
                f"The template parameters '{', '.join(unknown)}' in the parameters file are not valid"
            )
        values = {spellings[name.lower()]: (value or {}).get("value") for name, value in by_name.items()}
        for name, declaration in self.declarations.items():
            if name not in values and "defaultValue" not in declaration:
                raise TemplateError(f"The value for the template parameter '{name}' is not provided.")
            value = values[name] if name in values else self.value(declaration["defaultValue"])
            _check_parameter(name, declaration, value)
            self.parameters[name.lower()] = value

    def value(self, document: Any, loop: Loop | None = None) -> Any:
        """A document with its expressions and its copy loops carried out, in a round of a loop.

        Raises:
            TemplateError: It cannot be.
            Needed: A resource has to be there first.
        """
        with self._round(loop):
            value = self._evaluator.value(self._with_copies(document))
        self.budget.spend([value])
        return value

    @contextmanager
    def _round(self, loop: Loop | None) -> Iterator[None]:
        """Evaluate in one round of a copy loop: its number by its name, and by no name for the innermost."""
        before = self._loops
        if loop is not None:
            name, number = loop
            self._loops = {**before, name.lower(): number, "": number}
        try:
            yield
        finally:
            self._loops = before

    def _with_copies(self, document: Any) -> Any:
        """A document whose `copy` properties are lists."""
        if isinstance(document, list):
            return [self._with_copies(each) for each in document]
        if not isinstance(document, Mapping):
            return document
        copies = document.get("copy")
        loops = copies if isinstance(copies, list) else ()
        rest = {
            name: self._with_copies(value)
            for name, value in document.items()
            if name != "copy" or not isinstance(value, list)
        }
        for loop in loops:
            if not isinstance(loop, Mapping) or not {"name", "input"} <= loop.keys():
                raise TemplateError("A copy loop of properties has a name, a count and an input.")
            name = str(loop["name"])
            rest[name] = [
                _escape(self.value(loop["input"], (name, number))) for number in range(self.count(loop))
            ]
        return rest

    def count(self, loop: Mapping[str, Any]) -> int:
        """The number of rounds of a copy loop; raises TemplateError if the count is not a number, or too large."""
        count = self._evaluator.value(loop.get("count"))
        if not isinstance(count, int) or not 0 <= count <= COPIES_MAX:
            raise TemplateError(f"A copy loop has up to {COPIES_MAX} iterations.")
        return count

    # ---- functions -------------------------------------------------------------------------------------------------

    def _functions(self) -> dict[str, Any]:
        """The functions by their names in lower case: those about the deployment, and the template's own."""
        subscription = "/".join(self._group.split("/")[:3])
        group = {"id": self._group, "name": self._group.rpartition("/")[2], "location": "local", "tags": {}}
        deployment = {"name": self._deployment, "properties": {"mode": "Incremental"}}
        functions: dict[str, Any] = {
            "parameters": lambda name: _value_of(self.parameters, name, "parameter"),
            "variables": self._variable,
            "copyindex": self._copy_index,
            "resourceid": self._resource_id,
            "extensionresourceid": lambda scope, kind, *names: f"{scope}{resource_id('', kind, *names)}",
            "subscriptionresourceid": lambda kind, *names: resource_id(subscription, kind, *names),
            "reference": self._reference,
            "resourcegroup": lambda: group,
            "subscription": lambda: {"id": subscription, "subscriptionId": subscription.rpartition("/")[2]},
            "deployment": lambda: deployment,
            "listkeys": lambda resource, *_: self._answer(resource, "listKeys"),
        }
        for namespace in self._template.get("functions") or ():
            for name, member in (namespace.get("members") or {}).items():
                functions[f"{namespace['namespace']}.{name}".lower()] = self._own_function(member)
        return functions

    def _own_function(self, member: Mapping[str, Any]) -> Callable[..., Any]:
        """A function that the template defines; in it only its own parameters are known."""
        names = [str(each["name"]).lower() for each in member.get("parameters") or ()]

        def call(*values: Any) -> Any:
            arguments = dict(zip(names, values, strict=True))
            evaluator = TemplateEvaluator(
                {"parameters": lambda name: _value_of(arguments, name, "parameter")}, self.budget
            )
            return evaluator.value((member.get("output") or {}).get("value"))

        return call

    def _variable(self, name: str) -> Any:
        """The value of a variable, evaluated when it is first asked for."""
        key = name.lower()
        if key not in self._variables:
            variables = self._template.get("variables") or {}
            loops = {str(loop["name"]).lower(): loop for loop in variables.get("copy") or ()}
            if key in loops:
                loop = loops[key]
                self._variables[key] = self.value({"copy": [loop]})[str(loop["name"])]
            else:
                by_key = {each.lower(): expression for each, expression in variables.items()}
                self._variables[key] = self.value(_value_of(by_key, name, "variable"))
        return self._variables[key]

    def _copy_index(self, name: Any = "", offset: int = 0) -> int:
        """`copyIndex([name], [offset])`: the number of the round that a loop is in, or the innermost one."""
        if isinstance(name, int):
            name, offset = "", name
        if name.lower() not in self._loops:
            raise TemplateError("The template function 'copyIndex' is not expected at this location.")
        return self._loops[name.lower()] + offset

    def _resource_id(self, *parts: str) -> str:
        """`resourceId([subscription], [group], type, *names)`; the type is the first that has a dot and a slash."""
        at = next((index for index, part in enumerate(parts) if "." in part and "/" in part), None)
        if at is None:
            raise TemplateError("The function resourceId has no type of a resource.")
        _, _, subscription, _, group = self._group.split("/")
        if at == 1:
            group = parts[0]
        elif at > 1:
            subscription, group, *_ = parts
        kind, *names = parts[at:]
        return resource_id(f"/subscriptions/{subscription}/resourceGroups/{group}", kind, *names)

    def _reference(self, resource: str, _: str = "", full: str = "") -> Any:
        answer = self._answer(resource, "")
        return answer if full.lower() == "full" else answer.get("properties") or {}

    def _answer(self, resource: str, action: str) -> Any:
        answer = self.answers.get((resource.lower(), action))
        if answer is None:
            raise Needed(resource, action)
        return answer


def resource_id(scope: str, kind: str, *names: str) -> str:
    """The id of a resource: its provider, and its types and names in turn.

    Raises:
        TemplateError: There are more of one than of the other.
    """
    provider, *types = kind.split("/")
    parts = [part for name in names for part in str(name).split("/")]
    if len(types) != len(parts):
        raise TemplateError(
            f"The type '{kind}' and the name '{'/'.join(parts)}' have different numbers of segments."
        )
    pairs = "/".join(f"{one}/{name}" for one, name in zip(types, parts, strict=True))
    return f"{scope}/providers/{provider}/{pairs}"


def _value_of(values: Mapping[str, Any], name: str, what: str) -> Any:
    if name.lower() not in values:
        raise TemplateError(f"The template {what} '{name}' is not found.")
    return values[name.lower()]


def _check_parameter(name: str, declaration: Mapping[str, Any], value: Any) -> None:
    """Raise a TemplateError unless a value has its parameter's type and is within its bounds."""
    beginning = f"The provided value for the template parameter '{name}' is not"
    python_type: Any = _TYPES.get(str(declaration.get("type", "")).lower())
    if python_type is None:
        raise TemplateError(f"The template parameter '{name}' has the type '{declaration.get('type')}'.")
    if value is not None and (
        not isinstance(value, python_type) or (python_type is int and isinstance(value, bool))
    ):
        raise TemplateError(f"{beginning} of the type '{declaration['type']}'.")
    if "allowedValues" in declaration and value not in declaration["allowedValues"]:
        allowed = ",".join(json.dumps(each) for each in declaration["allowedValues"])
        raise TemplateError(f"{beginning} valid. It is not part of the allowed value(s): '{allowed}'.")
    if python_type in (int, str, list) and value is not None:
        bound = "Value" if python_type is int else "Length"
        size: int = value if python_type is int else len(value)
        minimum, maximum = declaration.get(f"min{bound}", size), declaration.get(f"max{bound}", size)
        if not minimum <= size <= maximum:
            raise TemplateError(f"{beginning} within its bounds.")


def _escape(value: Any) -> Any:
    """A value whose texts are evaluated once more and come out as they are."""
    if isinstance(value, str):
        return f"[{value}" if value.startswith("[") and value.endswith("]") else value
    if isinstance(value, list):
        return [_escape(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _escape(each) for name, each in value.items()}
    return value
