"""Transforms: `AWS::Include`, `AWS::LanguageExtensions` and `AWS::Serverless-2016-10-31`.

Included parts come from buckets, loops are written out before the template is read, and serverless resources are
translated by its own process: importing the translator takes 1.5 s of processor time and 50 MB.
"""

import asyncio
import importlib.util
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid, template_error
from redrive.aws.cloudformation.template.functions import (
    EXTENSIONS,
    TEXT_CHARS_MAX,
    evaluate,
    function_name,
    scalar,
)
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.template.references import references
from redrive.aws.cloudformation.template.scope import EvaluationScope
from redrive.aws.cloudformation.template.sections import transforms_of
from redrive.aws.kit.json_cursor import as_list

INCLUDE: Final = "AWS::Include"
TRANSFORM: Final = "Fn::Transform"
_LOCATION: Final = re.compile(r"s3://([^/]+)/(.+)")


def is_including(body: str) -> bool:
    """True if the text of a template may include parts: it has the function, in its long or its short form."""
    return TRANSFORM in body or "!Transform" in body


def locations_in(value: Any, scope: EvaluationScope) -> Iterator[str]:
    """The addresses of the parts that a template includes, some of them twice.

    Raises:
        TemplateInvalid: It asks for another transform, or for an include without an address.
    """
    scope.spend(1)
    if isinstance(value, Mapping):
        for key, child in value.items():
            if key == TRANSFORM:
                yield _location(child, scope)
            else:
                yield from locations_in(child, scope)
    elif isinstance(value, list):
        for child in value:
            yield from locations_in(child, scope)


def with_parts(value: Any, scope: EvaluationScope, parts: Mapping[str, Any]) -> Any:
    """Returns a value with the parts that it includes, each merged into the object that names it.

    - `parts`: by their URLs, as they were read. They include nothing themselves.

    Raises:
        TemplateInvalid: A part cannot be merged into an object, or the whole exceeds the size of a template.
    """
    scope.spend(1)
    if isinstance(value, list):
        return [with_parts(child, scope, parts) for child in value]
    if not isinstance(value, Mapping):
        return value
    members = {key: with_parts(child, scope, parts) for key, child in value.items() if key != TRANSFORM}
    if TRANSFORM not in value:
        return members
    part = parts[_location(value[TRANSFORM], scope)]
    scope.spend_value(part)
    if not members:
        return part
    if not isinstance(part, Mapping):
        raise include_failure("What is included beside other members must be an object.")
    return {**part, **members}


def bucket_and_key_of(location: str) -> tuple[str, str]:
    """The bucket and the key of a part's address; raises TemplateInvalid if it is not an address of an object."""
    match = _LOCATION.fullmatch(location)
    if match is None:
        raise include_failure("The location parameter is not a valid S3 uri.")
    return match[1], match[2]


def include_failure(why: str) -> TemplateInvalid:
    """The refusal of a template whose parts cannot be included."""
    return TemplateInvalid(f"Transform {INCLUDE} failed with: {why}")


def _location(transform: Any, scope: EvaluationScope) -> str:
    """The address that an `AWS::Include` names; raises TemplateInvalid for all other transforms."""
    match transform:
        case {"Name": "AWS::Include", "Parameters": {"Location": location}}:
            return scalar(location, scope, "Location")
        case {"Name": "AWS::Include"}:
            raise include_failure("The location parameter is not a valid S3 uri.")
        case {"Name": str(name)}:
            raise TemplateInvalid(f"No transform named {name} found.")
    raise template_error("every Fn::Transform object requires a Name, and Parameters.")


LANGUAGE_EXTENSIONS: Final = "AWS::LanguageExtensions"
_LOOP: Final = "Fn::ForEach::"
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Za-z0-9]")
SECTIONS: Final = ("Conditions", "Resources", "Outputs")
_LITERAL_FUNCTIONS: Final = ("Fn::Join", "Fn::Sub")
_POLICIES: Final = ("DeletionPolicy", "UpdateReplacePolicy")


def write_out_loops(source: Mapping[str, Any], scope: EvaluationScope) -> dict[str, Any]:
    """Returns a template with its loops written out, and the deletion policies of its resources evaluated.

    Raises:
        TemplateInvalid: A loop is malformed, or produces more than a template may have.
    """
    writer = _LoopWriter(scope)
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


def simplify(value: Any, scope: EvaluationScope, hidden_names: Collection[str]) -> Any:
    """Returns a value with those functions evaluated that need no resource (recorded).

    `Fn::Join` and `Fn::Sub` are evaluated only if they refer to nothing, others unless they refer to a hidden parameter.
    """
    scope.spend(1)
    name = function_name(value)
    if name in EXTENSIONS or name in _LITERAL_FUNCTIONS:
        try:
            names = set(references(value, None))
            may_evaluate = not names if name in _LITERAL_FUNCTIONS else names.isdisjoint(hidden_names)
            if may_evaluate:
                return evaluate(value, scope)
        except (NotYetKnown, TemplateInvalid):  # it needs a resource, and stays
            pass
    if isinstance(value, Mapping):
        return {key: simplify(child, scope, hidden_names) for key, child in value.items()}
    return [simplify(child, scope, hidden_names) for child in value] if isinstance(value, list) else value


@dataclass(slots=True)
class _LoopWriter:
    scope: EvaluationScope
    chars: int = 0

    def write(self, value: Any, variables: Mapping[str, str]) -> Any:
        """Returns a value with its loops written out; `variables`: the values of the variables of loops around it."""
        self.scope.spend(1 + len(variables))
        match value:
            case {"Ref": str(name)} if name in variables:
                return variables[name]
            case Mapping():
                expanded: dict[str, Any] = {}
                for key, child in value.items():
                    if key.startswith(_LOOP):
                        expanded |= self._loop(key, child, variables)
                    else:
                        expanded[self._replace_variables(key, variables)] = self.write(child, variables)
                return expanded
            case list():
                return [self.write(child, variables) for child in value]
            case str():
                return self._replace_variables(value, variables)
        return value

    def _replace_variables(self, text: str, variables: Mapping[str, str]) -> str:
        """A text with the values of variables in it, whose length is checked before it is built."""
        for name, value in variables.items():
            plain, stripped = f"${{{name}}}", f"&{{{name}}}"
            letters = _NOT_ALPHANUMERIC.sub("", value) if stripped in text else ""
            self._check(len(text) + text.count(plain) * len(value) + text.count(stripped) * len(letters))
            text = text.replace(plain, value).replace(stripped, letters)
        self._check(len(text))
        self.chars += len(text)
        return text

    def _check(self, more: int) -> None:
        if self.chars + more > TEXT_CHARS_MAX:
            raise template_error(f"Fn::ForEach makes more than {TEXT_CHARS_MAX} characters.")

    def _loop(self, key: str, loop: Any, variables: Mapping[str, str]) -> dict[str, Any]:
        """The members that a loop writes, one body for each item of its collection."""
        match loop:
            case [str(variable), collection, Mapping() as body] if body:
                pass
            case _:
                raise template_error(f"{key} requires a variable, a collection and an object.")
        expanded: dict[str, Any] = {}
        for item in self._collection(key, collection, variables):
            for name, child in self.write(body, {**variables, variable: item}).items():
                if name in expanded:
                    raise TemplateInvalid(f"Template error: {key} makes {name} more than once.")
                expanded[name] = child
        return expanded

    def _collection(self, key: str, collection: Any, variables: Mapping[str, str]) -> list[str]:
        """The items of a loop's collection as texts; lists in it are flattened."""
        elements = evaluate(self.write(collection, variables), self.scope)
        if not isinstance(elements, list):
            raise template_error(f"{key}: its collection must be a list.")
        items: list[str] = []
        for item in elements:
            items += [text_of(part) for part in as_list(item)]
        return items


SERVERLESS: Final = "AWS::Serverless-2016-10-31"
TYPES: Final = "AWS::Serverless::"
"""The beginning of the types of resources that the transform replaces."""
_LIBRARY: Final = "samtranslator"
_PROCESS: Final = "redrive.aws.cloudformation.template.serverless_process"
_SECONDS_MAX: Final = 60
_ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "HOME")


def is_serverless(source: Mapping[str, Any]) -> bool:
    """True if a template asks for the transform."""
    return SERVERLESS in transforms_of(source)


class Translator:
    """Translates templates one after the other, so that many at once take a single processor."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def translate(
        self, source: Mapping[str, Any], parameters: Mapping[str, str], region: str
    ) -> dict[str, Any]:
        """Returns a template, its loops written out, with its serverless resources translated.

        Raises:
            TemplateInvalid: The translator refuses it, is not installed, or takes longer than a minute.
        """
        if importlib.util.find_spec(_LIBRARY) is None:
            raise _failure("this server lacks the package aws-sam-translator: pip install aws-sam-translator")
        task = {"template": dict(source), "parameters": dict(parameters)}
        async with self._turn:
            answer = json.loads(await _run_translator(json.dumps(task).encode(), region))
        if "refusal" in answer:
            raise _failure(answer["refusal"])
        return {**answer["template"], "Transform": source["Transform"]}


async def _run_translator(task: bytes, region: str) -> bytes:
    variables = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _PROCESS),
        env=variables | {"AWS_DEFAULT_REGION": region},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        out, errors = await asyncio.wait_for(process.communicate(task), _SECONDS_MAX)
    except TimeoutError:
        raise _failure(f"the translator took longer than {_SECONDS_MAX} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = errors.decode(errors="replace").rstrip().rpartition("\n")[2]
        raise _failure(f"the translator gave up: {last or process.returncode}")
    return out


def _failure(why: str) -> TemplateInvalid:
    return TemplateInvalid(f"Transform {SERVERLESS} failed with: {why}")
