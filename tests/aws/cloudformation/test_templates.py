"""Templates: how they are read, and the texts that refuse those that are built otherwise."""

from typing import Any

import pytest

from redrive.aws.cloudformation.stacks.requests import missing_capabilities
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.reading import read_body
from redrive.aws.cloudformation.template.sections import read_sections
from tests.aws.cloudformation.programs import program

QUEUE = {"Type": "AWS::SQS::Queue"}
BILLION = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"{chr(97 + n)}: &{chr(97 + n)} [{','.join([f'*{chr(96 + n)}'] * 9)}]" for n in range(1, 9)
)


def refusal(body: str) -> str:
    with pytest.raises(TemplateInvalid) as refused:
        program(body)
    return str(refused.value)


def refusal_of(**source: Any) -> str:
    with pytest.raises(TemplateInvalid) as refused:
        program(source)
    return str(refused.value)


def test_yaml_has_a_short_form_for_each_function() -> None:
    body = """
    Resources:
      Q:
        Type: AWS::SQS::Queue
        Properties:
          A: !Ref Other
          B: !GetAtt Other.Outputs.Name
          C: !Sub "${AWS::Region}-x"
          D: !Join ["-", [a, !Select [0, !Split [",", "b,c"]]]]
          E: !If [Yes, !FindInMap [M, a, b], !Base64 text]
          F: [!ImportValue x, !GetAZs "", !Cidr [a, 1], !Transform {Name: x}]
        Condition: !Condition Yes
    """
    assert read_body(body)["Resources"]["Q"]["Properties"] == {
        "A": {"Ref": "Other"},
        "B": {"Fn::GetAtt": ["Other", "Outputs.Name"]},
        "C": {"Fn::Sub": "${AWS::Region}-x"},
        "D": {"Fn::Join": ["-", ["a", {"Fn::Select": [0, {"Fn::Split": [",", "b,c"]}]}]]},
        "E": {"Fn::If": [True, {"Fn::FindInMap": ["M", "a", "b"]}, {"Fn::Base64": "text"}]},
        "F": [
            {"Fn::ImportValue": "x"},
            {"Fn::GetAZs": ""},
            {"Fn::Cidr": ["a", 1]},
            {"Fn::Transform": {"Name": "x"}},
        ],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2010-09-09", "2010-09-09"),
        ("012345678901", "012345678901"),
        ("12", 12),
        ("-1.5", -1.5),
        ("true", True),
        ("off", False),
        ("'12'", "12"),
        ("~", None),
        ("!!str 12", "12"),
        ("|\n  two\n  lines", "two\nlines\n"),
    ],
)
def test_plain_values_of_yaml(text: str, expected: Any) -> None:
    assert read_body(f"a: {text}\n")["a"] == expected


def test_anchors_stand_for_their_values() -> None:
    assert read_body("a: &x {b: [1]}\nc: *x\n") == {"a": {"b": [1]}, "c": {"b": [1]}}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"Resources": {"A": "b" "c"}}', "JSON not well-formed. (line 1, column 26)"),
        ("a: b\nb: c: d", "YAML not well-formed. (line 2, column 5)"),
        ("a: !Foo b", "YAML not well-formed. (line 1, column 4)"),
        ("a: *nothing", "YAML not well-formed. (line 1, column 4)"),
        ("a: &a {b: c}\nd:\n  <<: *a", "YAML not well-formed. (line 3, column 3)"),
        ("just a text", "unsupported structure."),
        ("[]", "unsupported structure."),
        ("", "unsupported structure."),
        ("[" * 5000, "unsupported structure."),
        ("a: " + "[" * 200 + "]" * 200, "unsupported structure."),
        ('{"a":' * 5000, "unsupported structure."),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "unsupported structure."),
        (BILLION, "unsupported structure."),
        ('{"a": NaN}', "JSON not well-formed."),
        ("? [a]\n: b", "unsupported structure."),
    ],
    ids=range(15),
)
def test_texts_that_are_no_templates_are_refused(body: str, text: str) -> None:
    assert refusal(body) == f"Template format error: {text}"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({}, "Template format error: At least one Resources member must be defined."),
        ({"Resources": {}}, "Template format error: At least one Resources member must be defined."),
        ({"Resources": {"A": 1}}, "Template format error: Any Resources member must be an object."),
        (
            {"Resources": {"A": {"Properties": {}}}},
            "Template format error: [/Resources/A] Every Resources object must contain a Type member.",
        ),
        ({"Resources": {"A": {**QUEUE, "X": 1}}}, "Invalid template resource property 'X'"),
        ({"Resources": {"A-1": QUEUE}}, "Template format error: Resource name A-1 is non alphanumeric."),
        (
            {"Resources": {"A": QUEUE}, "Parameters": {"A_1": {"Type": "String"}}},
            "Template format error: Parameter name A_1 is non alphanumeric.",
        ),
        (
            {"Resources": {"A": QUEUE}, "Outputs": {"X": {}}},
            "Template format error: Every Outputs member must contain a Value object",
        ),
        (
            {"Resources": {"A": QUEUE}, "Outputs": {"X": {"Value": None}}},
            "[/Outputs/X/Value] 'null' values are not allowed in templates",
        ),
        (
            {"Resources": {"A": QUEUE}, "Outputs": {"X": {"Value": {"Ref": "B"}}}},
            "Unresolved resource dependencies [B] in the Outputs block of the template",
        ),
        (
            {"Resources": {"A": {**QUEUE, "DependsOn": "B"}}},
            "Template format error: Unresolved resource dependencies [B] in the Resources block of the template",
        ),
        (
            {"Resources": {"A": {**QUEUE, "DependsOn": ["B"]}, "B": {**QUEUE, "DependsOn": "A"}, "C": QUEUE}},
            "Circular dependency between resources: [A, B]",
        ),
        (
            {"Resources": {"A": QUEUE}, "Mappings": {"M": {"A": 1}}},
            "Template format error: Every Mappings member A must be a map",
        ),
        (
            {"Resources": {"A": QUEUE}, "Mappings": {"M": {"A": {"b": {}}}}},
            "Template format error: Every Mappings attribute must be a String or a List.",
        ),
        (
            {"Resources": {"A": QUEUE}, "Parameters": {"P": {"Type": "String", "Default": []}}},
            "Template format error: Every Default member must be a string.",
        ),
        (
            {"Resources": {"A": {**QUEUE, "Properties": {"B": [{"C": None}]}}}},
            "[/Resources/A/Properties/B/0/C] 'null' values are not allowed in templates",
        ),
        (
            {"Resources": {f"A{n}": QUEUE for n in range(501)}},
            "Template format error: Number of resources, 501, is greater than maximum allowed, 500",
        ),
    ],
)
def test_a_template_built_otherwise_is_refused_as_recorded(source: dict[str, Any], text: str) -> None:
    assert refusal_of(**source) == text


def test_unknown_types_are_refused_with_the_known_ones() -> None:
    text = refusal_of(Resources={"A": {"Type": "AWS::NotAReal::Thing"}})
    assert text.startswith("Template format error: Unrecognized resource types: [AWS::NotAReal::Thing]")
    assert "AWS::SQS::Queue" in text


def test_an_unknown_type_behind_a_false_condition_passes() -> None:
    made = program(
        {
            "Conditions": {"No": {"Fn::Equals": ["a", "b"]}},
            "Resources": {"A": {"Type": "AWS::NotAReal::Thing", "Condition": "No"}, "B": QUEUE},
        }
    )
    assert list(made.resources) == ["B"]


def test_a_reference_to_a_resource_that_is_not_made_counts_in_branches_that_are_taken() -> None:
    properties = {"V": {"Fn::If": ["No", {"Ref": "A"}, "none"]}}
    source: dict[str, Any] = {
        "Conditions": {"No": {"Fn::Equals": ["a", "b"]}},
        "Resources": {
            "A": {**QUEUE, "Condition": "No"},
            "B": {**QUEUE, "Properties": properties, "DependsOn": "A"},
        },
    }
    assert program(source).dependencies == {"B": []}
    source["Resources"]["B"]["Properties"] = {"V": {"Ref": "A"}}
    assert "Unresolved resource dependencies [A]" in refusal_of(**source)


def test_dependencies_are_what_functions_and_depends_on_name() -> None:
    resources = {
        "A": QUEUE,
        "B": {**QUEUE, "DependsOn": "A"},
        "C": {
            **QUEUE,
            "Properties": {"x": {"Fn::Sub": "${A.Arn}${AWS::Region}"}, "y": {"Fn::GetAtt": ["B", "Arn"]}},
        },
    }
    assert program({"Resources": resources}).dependencies == {"A": [], "B": ["A"], "C": ["A", "B"]}


def test_loops_are_written_out() -> None:
    made = program(
        {
            "Transform": "AWS::LanguageExtensions",
            "Parameters": {"Names": {"Type": "CommaDelimitedList", "Default": "one,t-wo"}},
            "Resources": {
                "Fn::ForEach::Queues": [
                    "Name",
                    {"Ref": "Names"},
                    {"Queue&{Name}": {**QUEUE, "Properties": {"QueueName": {"Fn::Sub": "q-${Name}"}}}},
                ]
            },
            "Outputs": {
                "Fn::ForEach::Outs": ["N", ["one", "two"], {"${N}Out": {"Value": {"Ref": "N"}}}],
            },
        }
    )
    assert {name: found.properties for name, found in made.resources.items()} == {
        "Queueone": {"QueueName": {"Fn::Sub": "q-one"}},
        "Queuetwo": {"QueueName": {"Fn::Sub": "q-t-wo"}},
    }
    assert {out.name: out.value for out in made.outputs} == {"oneOut": "one", "twoOut": "two"}


def test_loops_within_loops_are_bounded() -> None:
    body: Any = {"X${a}x${b}x${c}x${d}": QUEUE}
    for variable in "dcba":
        body = {f"Fn::ForEach::{variable}": [variable, [str(n) for n in range(30)], body]}
    assert "its functions make more than 200000 values" in refusal_of(
        Transform="AWS::LanguageExtensions", Resources=body
    )


@pytest.mark.parametrize(
    ("kind", "properties", "agreed", "expected"),
    [
        ("AWS::SQS::Queue", {}, [], []),
        ("AWS::IAM::Role", {}, [], ["CAPABILITY_IAM"]),
        ("AWS::IAM::Role", {}, ["CAPABILITY_NAMED_IAM"], []),
        ("AWS::IAM::Role", {"RoleName": "r"}, ["CAPABILITY_IAM"], ["CAPABILITY_NAMED_IAM"]),
    ],
)
def test_capabilities(kind: str, properties: dict[str, Any], agreed: list[str], expected: list[str]) -> None:
    template = read_sections({"Resources": {"R": {"Type": kind, "Properties": properties}}})
    assert missing_capabilities(template, agreed) == expected
