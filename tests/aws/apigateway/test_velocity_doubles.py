"""Doubles in mapping templates are written as Java's `Double.toString` writes them."""

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.aws.apigateway.mapping.velocity.template import render_within
from redrive.aws.kit.java import java_double
from redrive.model.budget import Budget

_FORM = re.compile(r"-?(\d{1,7}\.(\d*[1-9]|0)|[1-9]\.(\d*[1-9]|0)E-?[1-9]\d{0,2})")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-249.99, "-249.99"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0009999, "9.999E-4"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1234567.875, "1234567.875"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1e21, "-1.0E21"),
        (2e23, "2.0E23"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_written_as_java_does(number: float, text: str) -> None:
    assert java_double(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e-3)
@example(9999999.999999998)
@example(1e-323)
def test_a_text_has_javas_form_and_reads_back_as_the_same_double(number: float) -> None:
    text = java_double(number)
    assert _FORM.fullmatch(text)
    assert ("E" not in text) == (number == 0 or 1e-3 <= abs(number) < 1e7)
    assert float(text) == number
    assert math.copysign(1, float(text)) == math.copysign(1, number)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("$number", "1.0E7"),
        ("#set($x = $number + 1)$x", "1.0000001E7"),
        ("#set($x = 'n' + $number)$x", "n1.0E7"),
        ("#set($x = 0.0001)$x $x.intValue()", "1.0E-4 0"),
        ("[$whole]", "[[10000000,1.0E-4]]"),
        ("$whole[0] $whole[0].doubleValue()", "10000000 1.0E7"),
        ("#if($number == '1.0E7')equal#end", "equal"),
        ("#set($m = {})#set($m[$number] = 1)$m", "{1.0E7=1}"),
    ],
)
def test_templates_write_doubles_so_and_leave_whole_numbers_whole(template: str, text: str) -> None:
    names = {"number": 1e7, "whole": [10_000_000, 0.0001]}
    assert render_within(template, names, Budget()) == text
