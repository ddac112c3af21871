import pytest

from redrive.azure.arm.paging import name_filter
from redrive.azure.wire.answers import AzureError

NAMES = ["orders", "orders-eu", "billing", "it's"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", NAMES),
        ("name eq 'ORDERS'", ["orders"]),
        ("name ne 'orders'", ["orders-eu", "billing", "it's"]),
        ("contains(name, 'ord')", ["orders", "orders-eu"]),
        ("CONTAINS( name ,'ord' ) AND name ne 'orders'", ["orders-eu"]),
        ("name eq 'it''s'", ["it's"]),
        ("not contains(name, 'ord')", ["billing", "it's"]),
        ("not not name eq 'billing'", ["billing"]),
        # `and` binds more tightly than `or`.
        ("name eq 'billing' or contains(name, 'orders') and name ne 'orders'", ["orders-eu", "billing"]),
        ("(name eq 'billing' or contains(name, 'orders')) and name ne 'billing'", ["orders", "orders-eu"]),
    ],
)
def test_a_name_filter_selects_the_matching_names(text: str, wanted: list[str]) -> None:
    assert [name for name in NAMES if name_filter(text)(name)] == wanted


@pytest.mark.parametrize(
    "text",
    [
        "location eq 'x'",
        "name gt 'x'",
        "name eq x",
        "name eq 'x",
        "name eq 'x' name",
        "(name eq 'x'",
        "contains(name)",
        "and",
        "name eq 'x' or",
        "%",
        "not " * 30 + "name eq 'x'",
        "(" * 30 + "name eq 'x'" + ")" * 30,
    ],
)
def test_unsupported_name_filters_are_refused(text: str) -> None:
    with pytest.raises(AzureError, match="is not supported"):
        name_filter(text)


def test_a_long_filter_is_no_deep_one() -> None:
    text = " or ".join(f"name eq '{number}'" for number in range(5000))
    assert name_filter(text)("4999")
