"""Models of APIs: what they refuse, and what a check of a body may take."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from redrive.aws.apigateway.control.schemas import BodyInvalid, check_body, check_schema
from redrive.aws.wire.errors import AwsError
from redrive.model.budget import STEPS_MAX, Budget, OverBudgetError


def fits(
    schema: Any, body: Any, models: Mapping[str, str] | None = None, budget: Budget | None = None
) -> bool:
    try:
        check_body(json.dumps(schema), json.dumps(body).encode(), models or {}, budget or Budget())
    except BodyInvalid:
        return False
    return True


INVALID = [
    5, [], "a", True, None,
    {"type": 5}, {"type": "text"}, {"type": []}, {"type": ["string", 1]},
    {"minLength": "a"}, {"minLength": -1}, {"maxItems": 1.5}, {"minProperties": None}, {"maxLength": True},
    {"minimum": "1"}, {"maximum": []}, {"exclusiveMinimum": 1}, {"multipleOf": 0}, {"multipleOf": "2"},
    {"allOf": 5}, {"anyOf": []}, {"oneOf": {}}, {"not": []}, {"allOf": [1]},
    {"properties": []}, {"properties": {"a": 1}}, {"definitions": [1]}, {"patternProperties": 1},
    {"additionalProperties": "no"}, {"additionalItems": 1}, {"items": 1}, {"items": [1]},
    {"enum": 1}, {"enum": []}, {"required": "a"}, {"required": []}, {"required": [1]}, {"required": ["a", "a"]},
    {"pattern": 1}, {"$ref": 1}, {"uniqueItems": 1},
]  # fmt: skip


@pytest.mark.parametrize("schema", INVALID, ids=json.dumps)
def test_an_invalid_schema_is_refused_at_creation_and_fits_no_body(schema: Any) -> None:
    with pytest.raises(AwsError) as refusal:
        check_schema(json.dumps(schema))
    assert refusal.value.code == "BadRequestException"
    assert refusal.value.message.endswith("errors : [Invalid model schema specified]")
    for body in (1, "a", [1], {"a": 1}):
        assert not fits(schema, body), "a schema of an older version, kept in a deployment"


def test_a_schema_that_is_no_json_is_refused() -> None:
    with pytest.raises(AwsError, match="Invalid model schema specified"):
        check_schema("{")


def without_truths(value: Any) -> bool:
    """To Python a truth is a number, in an enumeration and in a set of unique elements."""
    if isinstance(value, bool | float):
        return False
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(without_truths(child) for child in children)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab"]) | st.just(1.0),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
SCHEMAS = st.recursive(
    st.just({})
    | st.builds(
        lambda kind: {"type": kind},
        st.sampled_from(["object", "array", "string", "integer", "number", "null"]),
    )
    | st.builds(
        lambda values: {"enum": values},
        st.lists(VALUES.filter(without_truths), min_size=1, max_size=3),
    )
    | st.builds(lambda low: {"minimum": low, "exclusiveMinimum": True}, st.integers(-2, 2))
    | st.builds(
        lambda length: {"minLength": length, "maxItems": length, "pattern": "a|^$"}, st.integers(0, 2)
    )
    | st.just({"uniqueItems": True})
    | st.builds(lambda names: {"required": sorted(names)}, st.sets(st.sampled_from("ab"), min_size=1)),
    lambda inner: (
        st.builds(
            lambda one, other: {"properties": {"a": one}, "additionalProperties": other},
            inner,
            inner | st.booleans(),
        )
        | st.builds(lambda one: {"patternProperties": {"^a": one}, "items": one}, inner)
        | st.builds(
            lambda word, each: {word: each},
            st.sampled_from(["allOf", "anyOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=3),
        )
        | st.builds(lambda one: {"not": one}, inner)
    ),
    max_leaves=5,
)


@given(SCHEMAS, VALUES.filter(without_truths))
def test_a_body_is_decided_as_by_the_usual_implementation(schema: Any, body: Any) -> None:
    assert fits(schema, body) is Draft4Validator(schema).is_valid(body)


def test_a_reference_leads_to_a_definition_or_to_another_model() -> None:
    models = {"Car": json.dumps({"required": ["id"]})}
    own = {"definitions": {"Id": {"type": "integer"}}, "properties": {"id": {"$ref": "#/definitions/Id"}}}
    assert fits(own, {"id": 1})
    assert not fits(own, {"id": "a"})
    for reference in ("https://apigateway.amazonaws.com/restapis/a/models/Car", "#/definitions/Car"):
        assert fits({"$ref": reference}, {"id": 1}, models)
        assert not fits({"$ref": reference}, {}, models)


COSTLY = {
    "required names of many objects": (
        {"items": {"not": {"required": [f"n{n}" for n in range(5_000)]}}},
        [{}] * 5_000,
    ),
    "patterns of many names": (
        {"patternProperties": {f"^n{n}[a-z]*x": {} for n in range(300)}},
        {f"name{n}": 1 for n in range(18_000)},
    ),
    "a pattern made to be slow": ({"pattern": "[ab]*a[ab]{300}c"}, "ab" * 100_000),
    "choices of choices": (
        {"items": {"anyOf": [*[{"anyOf": [{"type": "null"}] * 100}] * 100, {}]}},
        [1] * 1_000,
    ),
    "elements that are compared as often as they are nested": (
        {"allOf": [{"uniqueItems": True}] * 900},
        ["x" * 30_000, "y" * 30_000],
    ),
    "reasons of long names": (
        {"items": {"anyOf": [{"required": ["x" * 300_000]}] * 100 + [{}]}},
        [{}] * 20_000,
    ),
    "long paths": (
        {"additionalProperties": {"items": {"anyOf": [{"type": "null"}, {}]}}},
        {"n" * 300_000: [1] * 20_000},
    ),
}


@pytest.mark.parametrize(("schema", "body"), COSTLY.values(), ids=COSTLY)
def test_a_check_ends_with_its_budget(schema: Any, body: Any) -> None:
    with pytest.raises(OverBudgetError):
        fits(schema, body)


def test_a_long_enumeration_is_looked_up_and_not_gone_through() -> None:
    """15,000 numbers, against which a body of 60,000 took 6.6 s."""
    budget = Budget()
    assert fits({"items": {"enum": list(range(15_000))}}, [14_999] * 60_000, budget=budget)
    assert STEPS_MAX - budget.left < 300_000
