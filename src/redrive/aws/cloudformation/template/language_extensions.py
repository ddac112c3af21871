"""`AWS::LanguageExtensions`: loops written out before the template is read."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid, template_error
from redrive.aws.cloudformation.template.functions import (
    EXTENSIONS,
    TEXT_CHARS_MAX,
    evaluate,
    function_name,
)
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.template.references import references
from redrive.aws.cloudformation.template.scope import EvaluationScope

LANGUAGE_EXTENSIONS: Final = "AWS::LanguageExtensions"
_LOOP: Final = "Fn::ForEach::"
_STRANGE: Final = re.compile(r"[^A-Za-z0-9]")
SECTIONS: Final = ("Conditions", "Resources", "Outputs")
_OF_LITERALS: Final = ("Fn::Join", "Fn::Sub")
_POLICIES: Final = ("DeletionPolicy", "UpdateReplacePolicy")


def written_out(source: Mapping[str, Any], scope: EvaluationScope) -> dict[str, Any]:
    """Returns a template with its loops written out, and the deletion policies of its resources evaluated.

    Args:
        source: The template.
        scope: Its parameters and mappings.

    Raises:
        TemplateInvalid: A loop is not built as loops are, or makes more than templates may have.
    """
    writer = _Writer(scope)
    expanded = {name: writer.write(part, {}) if name in SECTIONS else part for name, part in source.items()}
    resources = expanded.get("Resources")
    if isinstance(resources, dict):
        expanded["Resources"] = {
            name: _with_policies(resource, scope) for name, resource in resources.items()
        }
    return expanded


def _with_policies(resource: Any, scope: EvaluationScope) -> Any:
    if not isinstance(resource, dict):
        return resource
    return {key: evaluate(value, scope) if key in _POLICIES else value for key, value in resource.items()}


def simplify(value: Any, scope: EvaluationScope, hidden: Collection[str]) -> Any:
    """Returns a value with those functions carried out that need no resource: as the transform leaves it (recorded).

    Args:
        value: Of a template.
        scope: Its parameters and mappings.
        hidden: The parameters that are not to be shown.
    """
    scope.spend(1)
    name = function_name(value)
    if name in EXTENSIONS or name in _OF_LITERALS:
        try:
            names = set(references(value, None))
            if not names if name in _OF_LITERALS else names.isdisjoint(hidden):
                return evaluate(value, scope)
        except (NotYetKnown, TemplateInvalid):
            pass
    if isinstance(value, Mapping):
        return {key: simplify(child, scope, hidden) for key, child in value.items()}
    return [simplify(child, scope, hidden) for child in value] if isinstance(value, list) else value


@dataclass(slots=True)
class _Writer:
    scope: EvaluationScope
    chars: int = 0

    def write(self, value: Any, known: Mapping[str, str]) -> Any:
        """Returns a value with its loops written out, for these values of the loops' variables around it."""
        self.scope.spend(1 + len(known))
        match value:
            case {"Ref": str(name)} if name in known:
                return known[name]
            case Mapping():
                expanded: dict[str, Any] = {}
                for key, child in value.items():
                    if key.startswith(_LOOP):
                        expanded |= self._loop(key, child, known)
                    else:
                        expanded[self._replaced(key, known)] = self.write(child, known)
                return expanded
            case list():
                return [self.write(child, known) for child in value]
            case str():
                return self._replaced(value, known)
        return value

    def _replaced(self, text: str, known: Mapping[str, str]) -> str:
        """A text with the loops' variables in it, counted before it is put together."""
        for name, value in known.items():
            plain, stripped = f"${{{name}}}", f"&{{{name}}}"
            letters = _STRANGE.sub("", value) if stripped in text else ""
            self._check(len(text) + text.count(plain) * len(value) + text.count(stripped) * len(letters))
            text = text.replace(plain, value).replace(stripped, letters)
        self._check(len(text))
        self.chars += len(text)
        return text

    def _check(self, more: int) -> None:
        if self.chars + more > TEXT_CHARS_MAX:
            raise template_error(f"Fn::ForEach makes more than {TEXT_CHARS_MAX} characters.")

    def _loop(self, key: str, loop: Any, known: Mapping[str, str]) -> dict[str, Any]:
        match loop:
            case [str(variable), collection, Mapping() as body] if body:
                pass
            case _:
                raise template_error(f"{key} requires a variable, a collection and an object.")
        expanded: dict[str, Any] = {}
        for item in self._collection(key, collection, known):
            for name, child in self.write(body, {**known, variable: item}).items():
                if name in expanded:
                    raise TemplateInvalid(f"Template error: {key} makes {name} more than once.")
                expanded[name] = child
        return expanded

    def _collection(self, key: str, collection: Any, known: Mapping[str, str]) -> list[str]:
        elements = evaluate(self.write(collection, known), self.scope)
        if not isinstance(elements, list):
            raise template_error(f"{key}: its collection must be a list.")
        items: list[str] = []
        for item in elements:
            items += [text_of(part) for part in (item if isinstance(item, list) else [item])]
        return items
