"""Templates of stacks that put long texts together of short ones: refused before it is done, in memory for two texts.

Each of these took up to 6 GB, or ended the server, and after each restart again.
"""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.functions import evaluate
from redrive.aws.cloudformation.template.program import TemplateProgram
from redrive.aws.cloudformation.template.reading import read_body
from tests.aws.cloudformation.programs import program, value

#: A text of a million characters, which a value may have, takes 1 MB, its pieces as much again.
PEAK_BYTES_MAX = 40 * 1024 * 1024
LONG = "x" * 900_000
LOOPS = {"Transform": "AWS::LanguageExtensions"}


def _sub(text: str, **variables: Any) -> Any:
    return {"Fn::Sub": [text, variables]}


#: A text of 0.9 MB, from a mapping; and the mapping.
FAR = {"Fn::FindInMap": ["M", "a", "b"]}


def _mapping(content: Any = LONG) -> dict[str, Any]:
    return {"M": {"a": {"b": content}}}


def _late() -> object:
    """Of an attribute, which is known when the queue is there."""
    first = _sub("${A}" * 300, A={"Fn::GetAtt": ["Q", "Arn"]})
    return value(_sub("${A}" * 6_000, A=_sub("${A}" * 70, A=first)))


def _several(expression: Any, count: int) -> object:
    """Values of several resources of one stack."""
    made = program({"Resources": {"Q": {"Type": "AWS::SQS::Queue"}}, "Mappings": _mapping()})
    scope = made.scope(lambda _: "", lambda *_: "", lambda _: "")
    return [evaluate(expression, scope) for _ in range(count)]


def _aliases(count: int, text: str) -> str:
    items = "\n".join("        - *t" for _ in range(count))
    return f"Metadata:\n  t: &t '{text}'\nResources:\n  Q:\n    Type: AWS::SQS::Queue\n    Properties:\n      V:\n{items}"


def _loop(depth: int, items: int, chars: int) -> TemplateProgram:
    """Loops whose variables stand in each other's texts."""
    names = "abcdefgh"[:depth]
    all_of_them = "".join(f"${{{name}}}" for name in names)
    body: Any = {f"Q{all_of_them}": {"Type": "AWS::SQS::Queue", "Properties": {"V": all_of_them * 200}}}
    for name in names:
        body = {f"Fn::ForEach::{name}": [name, [f"{n:0{chars}}" for n in range(items)], body]}
    return program({**LOOPS, "Resources": body})


COSTLY: dict[str, Callable[[], object]] = {
    "a long text 700 times": lambda: value(_sub("${A}" * 700, A=FAR), Mappings=_mapping()),
    "a long text 2,000 times": lambda: value(_sub("${A}" * 2_000, A=FAR), Mappings=_mapping()),
    "a long text, joined": lambda: value({"Fn::Join": ["", [FAR] * 2_000]}, Mappings=_mapping()),
    "an attribute, multiplied when it is known": _late,
    "a long delimiter": lambda: value({"Fn::Join": [LONG, ["a"] * 5_000]}),
    "a text split into characters, many times": lambda: _several({"Fn::Split": ["x", FAR]}, 60),
    "many values as long as one may be": lambda: _several(_sub("${A}!", A=FAR), 200),
    "a list of long texts": lambda: value({"Fn::ToJsonString": [FAR] * 500}, Mappings=_mapping(), **LOOPS),
    "a mapping's list, many times": lambda: value([FAR] * 3_000, Mappings=_mapping(["x" * 100_000] * 5)),
    "base64 of base64": lambda: value({"Fn::Base64": {"Fn::Base64": FAR}}, Mappings=_mapping()),
    "2,000 aliases of a text of 7 KB": lambda: read_body(_aliases(2_000, "x" * 7_000)),
    "81,000 aliases of a text of 20 KB": lambda: read_body(_aliases(81_000, "x" * 20_000)),
    "loops within loops": lambda: _loop(2, 20, 60),
    "four loops within each other": lambda: _loop(4, 20, 8),
}


@pytest.mark.parametrize("work", COSTLY.values(), ids=COSTLY)
def test_a_template_that_multiplies_texts_is_refused_before_they_are_there(
    work: Callable[[], object],
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TemplateInvalid):
            work()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < PEAK_BYTES_MAX


def test_a_template_as_large_as_one_may_be_is_read_and_evaluated() -> None:
    """A mebibyte from a bucket: 300 queues with policies, each of which names others."""
    statement = {
        "Effect": "Allow",
        "Action": "sqs:*",
        "Resource": {"Fn::Sub": "arn:${AWS::Region}:${AWS::StackName}"},
    }
    properties = {"Policy": {"Statement": [statement] * 40}}
    resources = {f"Q{n}": {"Type": "AWS::SQS::Queue", "Properties": properties} for n in range(300)}
    body = json.dumps({"Resources": resources})
    assert 1_000_000 < len(body) < 1_400_000
    made = program(body)
    scope = made.scope(lambda _: "", lambda *_: "", lambda _: "")
    for resource in made.resources.values():
        assert (
            evaluate(resource.properties, scope)["Policy"]["Statement"][0]["Resource"] == "arn:eu-west-1:shop"
        )
