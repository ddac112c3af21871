"""Functions of templates: their values, and the texts that refuse what cannot be evaluated."""

from typing import Any

import pytest

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.functions import TEXT_CHARS_MAX
from tests.aws.cloudformation.programs import value

MAPPINGS = {"M": {"a": {"text": "one", "list": ["x", "y"], "number": 3}}}
CONDITIONS = {
    "Yes": {"Fn::Equals": ["a", "a"]},
    "No": {"Fn::Not": [{"Condition": "Yes"}]},
    "Both": {"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]},
    "Either": {"Fn::Or": [{"Condition": "Yes"}, {"Condition": "No"}]},
    "Number": {"Fn::Equals": [1, "1"]},
    "Truth": {"Fn::Equals": [True, "true"]},
}
EXTENDED = {"Transform": "AWS::LanguageExtensions"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"Ref": "Q"}, "ref-Q"),
        ({"Ref": "AWS::Region"}, "eu-west-1"),
        ({"Ref": "AWS::URLSuffix"}, "amazonaws.com"),
        ({"Ref": "AWS::NotificationARNs"}, ["arn:told"]),
        ({"Fn::GetAtt": ["Q", "Arn"]}, "att-Q.Arn"),
        ({"Fn::GetAtt": "Q.Outputs.Name"}, "att-Q.Outputs.Name"),
        ({"Fn::GetAtt": ["Q", {"Ref": "AWS::Region"}]}, "att-Q.eu-west-1"),
        ({"Fn::Sub": "${Q}-${Q.Arn}-${!Q}-${AWS::AccountId}"}, "ref-Q-att-Q.Arn-${Q}-000000000000"),
        ({"Fn::Sub": ["${a}${b}", {"a": {"Ref": "Q"}, "b": 7}]}, "ref-Q7"),
        ({"Fn::Join": [":", ["a", 1, True, {"Ref": "Q"}]]}, "a:1:true:ref-Q"),
        ({"Fn::Join": ["", [{"Ref": "AWS::NoValue"}]]}, ""),
        ({"Fn::Join": [",", {"Fn::GetAZs": ""}]}, "eu-west-1a,eu-west-1b,eu-west-1c"),
        ({"Fn::Split": ["|", "a|b|c"]}, ["a", "b", "c"]),
        ({"Fn::Select": ["1", {"Fn::Split": ["|", "a|b|c"]}]}, "b"),
        ({"Fn::Select": [0, ["a", "b"]]}, "a"),
        ({"Fn::Base64": "text"}, "dGV4dA=="),
        ({"Fn::GetAZs": "us-east-1"}, ["us-east-1a", "us-east-1b", "us-east-1c"]),
        ({"Fn::Cidr": ["10.0.0.0/16", 3]}, ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]),
        ({"Fn::Cidr": ["10.0.0.0/24", "2", "4"]}, ["10.0.0.0/28", "10.0.0.16/28"]),
        ({"Fn::FindInMap": ["M", "a", "text"]}, "one"),
        ({"Fn::FindInMap": ["M", {"Fn::Select": [0, ["a"]]}, "list"]}, ["x", "y"]),
        ({"Fn::ImportValue": {"Fn::Sub": "${AWS::StackName}-out"}}, "export-shop-out"),
        ({"Fn::If": ["Yes", "a", {"Ref": "AWS::NoValue"}]}, "a"),
        ({"a": {"Fn::If": ["No", "a", {"Ref": "AWS::NoValue"}]}, "b": 1}, {"b": 1}),
        ([{"Fn::If": ["No", "a", {"Ref": "AWS::NoValue"}]}, "b"], ["b"]),
        ([{"Fn::If": [name, 1, 0]} for name in CONDITIONS], [1, 0, 0, 1, 1, 1]),
        ({"Condition": {"StringEquals": {"a": "b"}}}, {"Condition": {"StringEquals": {"a": "b"}}}),
    ],
)
def test_a_function_has_its_value(expression: Any, expected: Any) -> None:
    assert value(expression, Mappings=MAPPINGS, Conditions=CONDITIONS) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"Fn::Length": {"Fn::Split": [",", "a,b,c"]}}, 3),
        ({"Fn::ToJsonString": {"queue": {"Ref": "Q"}, "gone": {"Ref": "AWS::NoValue"}}}, '{"queue":"ref-Q"}'),
        ({"Fn::FindInMap": ["M", "z", "text", {"DefaultValue": {"Ref": "Q"}}]}, "ref-Q"),
    ],
)
def test_language_extensions_add_functions(expression: Any, expected: Any) -> None:
    assert value(expression, Mappings=MAPPINGS, **EXTENDED) == expected
    with pytest.raises(TemplateInvalid):
        value(expression, Mappings=MAPPINGS)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            {"Fn::GetAtt": ["Q", ""]},
            (
                "Template error: every Fn::GetAtt object requires two non-empty parameters, the resource name and the"
                " resource attribute"
            ),
        ),
        (
            {"Fn::Join": ["a"]},
            (
                "Template error: every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of"
                " strings to be joined or a function that returns a list of strings (such as Fn::GetAZs) to be joined."
            ),
        ),
        (
            {"Fn::Split": [",", ["a"]]},
            (
                "Template error: every Fn::Split object requires two parameters, (1) a string delimiter and (2) a string"
                " to be split or a function that returns a string to be split."
            ),
        ),
        (
            {"Fn::Select": ["a", ["b"]]},
            "Template error: Fn::Select requires a list argument with two elements: an integer index and a list",
        ),
        ({"Fn::Select": [1, ["b"]]}, "Template error: Fn::Select cannot select nonexistent value at index 1"),
        (
            {"Fn::If": [{"Fn::Equals": ["a"]}, 1, 2]},
            "Template error: Fn::If requires a list argument with three elements",
        ),
        ({"Fn::If": ["Nope", 1, 2]}, "Template error: unresolved condition dependency Nope in Fn::If"),
        ({"Fn::FindInMap": ["M", "a", "b"]}, "Template error: Unable to get mapping for M::a::b"),
        (
            {"Ref": "Nobody"},
            "Template format error: Unresolved resource dependencies [Nobody] in the Resources block of the template",
        ),
        (
            {"Fn::Sub": "${Nobody}-${Nothing.Arn}"},
            (
                "Template format error: Unresolved resource dependencies [Nobody, Nothing] in the Resources block of the"
                " template"
            ),
        ),
    ],
)
def test_a_function_that_is_used_wrongly_is_refused_as_recorded(expression: Any, text: str) -> None:
    with pytest.raises(TemplateInvalid) as refused:
        value(expression, Mappings=MAPPINGS)
    assert str(refused.value) == text


def test_an_unknown_function_is_refused_by_its_name_with_those_that_there_are() -> None:
    with pytest.raises(
        TemplateInvalid, match=r"unsupported function: Fn::Upper Supported functions are: .*Fn::Sub"
    ):
        value({"Fn::Upper": "a"})


def test_texts_of_texts_are_bounded() -> None:
    expression: Any = "x" * 1000
    for _ in range(30):
        expression = {"Fn::Sub": ["${a}${a}", {"a": expression}]}
    with pytest.raises(TemplateInvalid, match=f"longer than {TEXT_CHARS_MAX} characters"):
        value(expression)


@pytest.mark.parametrize("block", ["10.0.0.0/30", "nowhere", "10.0.0.0/16/8"])
def test_blocks_that_cannot_be_cut_are_refused(block: str) -> None:
    with pytest.raises(TemplateInvalid, match="Fn::Cidr"):
        value({"Fn::Cidr": [block, 3]})
