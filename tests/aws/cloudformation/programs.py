"""Templates of tests, as programs, with resources that answer by their names."""

from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.cloudformation.template.functions import evaluate
from redrive.aws.cloudformation.template.parameters import ParameterArguments, choose_values, read_parameters
from redrive.aws.cloudformation.template.program import (
    TemplateProgram,
    make_program,
    read_template,
    values_of,
)
from redrive.aws.cloudformation.template.reading import read_body
from redrive.aws.cloudformation.template.scope import pseudo_parameters
from redrive.aws.cloudformation.template.sections import section

KNOWN: Final = ("AWS::SNS::Topic", "AWS::SQS::Queue", "Custom::")
PSEUDO: Final = pseudo_parameters("000000000000", "eu-west-1", "shop", "arn:shop", ["arn:told"])


def program(
    body: str | Mapping[str, Any], given: ParameterArguments = (), previous: Mapping[str, str] | None = None
) -> TemplateProgram:
    """The program of a text, or of what a text says."""
    source = read_body(body) if isinstance(body, str) else body
    declared = read_parameters(section(source, "Parameters"))
    values = PSEUDO | values_of(declared, choose_values(declared, given, previous or {}))
    return make_program(read_template(source, values), values, KNOWN)


def value(expression: Any, **sections: Any) -> Any:
    """A value as a resource would have it: `Q` is a queue beside it, `ref-Q` its reference, `att-Q.Arn` an attribute."""
    resources = {
        "Q": {"Type": "AWS::SQS::Queue"},
        "T": {"Type": "AWS::SNS::Topic", "Properties": {"V": expression}},
    }
    made = program({"Resources": resources, **sections})
    scope = made.scope(
        lambda name: f"ref-{name}", lambda name, att: f"att-{name}.{att}", lambda name: f"export-{name}"
    )
    return evaluate(made.template.resources["T"].properties["V"], scope)


def given(**values: str) -> ParameterArguments:
    """Parameters as callers give them."""
    return [{"ParameterKey": name, "ParameterValue": text} for name, text in values.items()]
