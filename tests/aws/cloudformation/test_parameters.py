"""Parameters and rules of templates."""

from typing import Any

import pytest

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from tests.aws.cloudformation.programs import given, program

RESOURCES = {"Q": {"Type": "AWS::SQS::Queue"}}


def values(parameter: dict[str, Any], **kept: Any) -> Any:
    return program({"Parameters": {"P": parameter}, "Resources": RESOURCES}, **kept).values["P"]


@pytest.mark.parametrize(
    ("parameter", "text", "expected"),
    [
        ({"Type": "String"}, "a", "a"),
        ({"Type": "Number", "MinValue": 1, "MaxValue": "5"}, "5", "5"),
        ({"Type": "Number"}, "-1.5e3", "-1.5e3"),
        ({"Type": "CommaDelimitedList"}, "a, b,c", ["a", "b", "c"]),
        ({"Type": "List<Number>"}, "1,2", ["1", "2"]),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "abc", "abc"),
        ({"Type": "String", "AllowedValues": ["a", 1, True]}, "true", "true"),
        ({"Type": "AWS::EC2::VPC::Id"}, "vpc-1", "vpc-1"),
        ({"Type": "List<AWS::EC2::Subnet::Id>"}, "s-1,s-2", ["s-1", "s-2"]),
    ],
)
def test_a_parameter_has_its_value(parameter: dict[str, Any], text: str, expected: Any) -> None:
    assert values(parameter, given=given(P=text)) == expected


@pytest.mark.parametrize(
    ("parameter", "text", "refused"),
    [
        ({"Type": "Number"}, "x", "Parameter 'P' must be a number."),
        ({"Type": "List<Number>"}, "1,x", "Parameter 'P' must be a number."),
        ({"Type": "Number", "MinValue": 3}, "2", "Parameter 'P' must be a number not less than 3"),
        ({"Type": "Number", "MaxValue": 3}, "4", "Parameter 'P' must be a number not greater than 3"),
        ({"Type": "String", "AllowedValues": ["a"]}, "b", "Parameter 'P' must be one of AllowedValues"),
        ({"Type": "String", "MinLength": 2}, "b", "Parameter 'P' must contain at least 2 characters"),
        ({"Type": "String", "MaxLength": "2"}, "bcd", "Parameter 'P' must contain at most 2 characters"),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "a1", "Parameter 'P' must match pattern [a-z]+"),
        (
            {"Type": "String", "AllowedPattern": "[a-z]+", "ConstraintDescription": "letters only"},
            "a1",
            "Parameter 'P' failed to satisfy constraint: letters only",
        ),
        ({"Type": "String"}, "x" * 4097, "Parameter 'P' is longer than 4096 bytes"),
        ({"Type": "Strange"}, "x", "Template format error: Unrecognized parameter type: Strange"),
    ],
)
def test_a_value_that_its_parameter_may_not_have_is_refused(
    parameter: dict[str, Any], text: str, refused: str
) -> None:
    with pytest.raises(TemplateInvalid) as refusal:
        values(parameter, given=given(P=text))
    assert str(refusal.value) == refused


@pytest.mark.parametrize(
    ("parameter", "given_values", "refused"),
    [
        ({"Type": "String"}, [], "Parameters: [P] must have values"),
        ({"Type": "String"}, given(P="a", X="b"), "Parameters: [X] do not exist in the template"),
        ({"Type": "String"}, [{"ParameterValue": "a"}], "Parameters: [null] do not exist in the template"),
        (
            {"Type": "AWS::SSM::Parameter::Value<String>"},
            [],
            "Parameter P should either have input value or default value",
        ),
    ],
)
def test_parameters_without_values_and_values_without_parameters(
    parameter: dict[str, Any], given_values: Any, refused: str
) -> None:
    with pytest.raises(TemplateInvalid) as refusal:
        values(parameter, given=given_values)
    assert str(refusal.value) == refused


def test_a_parameter_keeps_its_value_when_that_is_asked_for() -> None:
    previous = [{"ParameterKey": "P", "UsePreviousValue": True}]
    assert values({"Type": "String", "Default": "d"}, given=previous, previous={"P": "kept"}) == "kept"
    with pytest.raises(TemplateInvalid, match="not in the previous template"):
        values({"Type": "String"}, given=previous)


def test_a_default_stands_in() -> None:
    assert values({"Type": "Number", "Default": 3}) == "3"


RULES = {
    "Production": {
        "RuleCondition": {"Fn::Equals": [{"Ref": "P"}, "prod"]},
        "Assertions": [
            {
                "Assert": {"Fn::Contains": [["a", "b"], {"Ref": "Size"}]},
                "AssertDescription": "a or b in production",
            }
        ],
    }
}


@pytest.mark.parametrize(
    ("stage", "size", "allowed"), [("prod", "a", True), ("prod", "c", False), ("test", "c", True)]
)
def test_rules_hold_parameters_against_each_other(stage: str, size: str, allowed: bool) -> None:
    parameters = {"P": {"Type": "String"}, "Size": {"Type": "String"}}
    source = {"Parameters": parameters, "Rules": RULES, "Resources": RESOURCES}
    if allowed:
        program(source, given(P=stage, Size=size))
        return
    with pytest.raises(TemplateInvalid, match="Rule Production: a or b in production"):
        program(source, given(P=stage, Size=size))
