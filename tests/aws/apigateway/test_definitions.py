"""Definitions of APIs in YAML, which says more than JSON."""

from typing import Final

import pytest

from redrive.aws.apigateway.rest.definitions import read_definition
from redrive.aws.wire.errors import AwsError

API: Final = "openapi: 3.0.0\npaths: {}\ninfo: {title: 2024-01-01, version: 1.5}\n"
POLICY: Final = "x-amazon-apigateway-policy"


def test_dates_are_texts() -> None:
    settings = read_definition(f"{API}{POLICY}: {{Version: 2012-10-17}}".encode()).settings
    assert settings == {"name": "2024-01-01", "version": "1.5", "policy": '{"Version": "2012-10-17"}'}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("1:" * 250_000 + "1", id="13 s of the server's time"),
        pytest.param("1:" * 1000 + "1.5", id="more than a float holds"),
        *("123456789012345678901234567890", "!!set {a, b}", "!!binary YQ==", "!!timestamp x", "!!int x"),
    ],
)
def test_a_value_that_json_has_not_is_refused(value: str) -> None:
    with pytest.raises(AwsError, match="Invalid OpenAPI input"):
        read_definition(f"{API}{POLICY}: {{a: {value}}}".encode())


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-0x1F", -31), ("1.5e+3", 1500.0), ("1:30", 90), ("yes", True), ("~", None), ("'1'", "1")],
)
def test_other_values_are_those_of_yaml(text: str, value: object) -> None:
    assert repr(read_definition(f"{API}a: {text}".encode()).document["a"]) == repr(value)
