"""Dashboards are given back as they were put."""

import orjson
import pytest

from redrive.aws.wire.errors import AwsError
from tests.aws.cloudwatch.stage import ACCOUNT, Stage

BODY = '{"widgets": [{"type": "text", "x": 0, "y": 0, "width": 3, "height": 3, "properties": {"markdown": "ä"}}]}'


async def test_a_dashboard_is_given_back_as_it_was_put(stage: Stage) -> None:
    for name in ("b", "a-1", "a_2"):
        put = await stage.watch("PutDashboard", DashboardName=name, DashboardBody=BODY)
        assert put == {"DashboardValidationMessages": []}
    arn = f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/b"
    assert await stage.watch("GetDashboard", DashboardName="b") == {
        "DashboardArn": arn,
        "DashboardBody": BODY,
        "DashboardName": "b",
    }
    listed = (await stage.watch("ListDashboards"))["DashboardEntries"]
    assert [entry["DashboardName"] for entry in listed] == ["a-1", "a_2", "b"]
    assert listed[2] == {
        "DashboardArn": arn,
        "DashboardName": "b",
        "LastModified": stage.now,
        "Size": len(BODY.encode()),
    }
    listed = (await stage.watch("ListDashboards", DashboardNamePrefix="a"))["DashboardEntries"]
    assert len(listed) == 2


async def test_dashboards_are_deleted_together_or_not_at_all(stage: Stage) -> None:
    await stage.watch("PutDashboard", DashboardName="a", DashboardBody=BODY)
    with pytest.raises(AwsError) as refused:
        await stage.watch("DeleteDashboards", DashboardNames=["a", "x"])
    assert (refused.value.query_code, refused.value.status, refused.value.message) == (
        "ResourceNotFound",
        404,
        "Dashboard x does not exist",
    )
    await stage.watch("DeleteDashboards", DashboardNames=["a", "a"])
    with pytest.raises(AwsError, match="Dashboard a does not exist"):
        await stage.watch("GetDashboard", DashboardName="a")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("{", "The field DashboardBody must be a valid JSON object"),
        ("[]", "The field DashboardBody must be a valid JSON object"),
        ("{}", "there are 1 validation errors"),
        ('{"widgets": {}}', "Should be array"),
        ('{"widgets": [1]}', "/widgets/0.*Should be object"),
        ('{"widgets": [{"properties": {}}]}', "Should have required property 'type'"),
        ('{"widgets": [{"type": 1, "properties": {}}]}', "/widgets/0/type.*Should be string"),
        ('{"widgets": [{"type": "text", "properties": {}, "width": 25}]}', "Should be >= 1 and <= 24"),
        ('{"widgets": [{"type": "text", "properties": {}, "x": "1"}]}', "/widgets/0/x.*Should be integer"),
        (
            orjson.dumps({"widgets": [{"type": "text", "properties": {}}] * 501}).decode(),
            "more than 500 items",
        ),
    ],
)
async def test_bodies_that_are_no_dashboards_are_refused(stage: Stage, body: str, text: str) -> None:
    with pytest.raises(AwsError, match=text) as refused:
        await stage.watch("PutDashboard", DashboardName="a", DashboardBody=body)
    assert refused.value.query_code == "InvalidParameterInput"


async def test_names_have_no_other_characters(stage: Stage) -> None:
    with pytest.raises(AwsError, match="contains invalid characters"):
        await stage.watch("PutDashboard", DashboardName="a b", DashboardBody=BODY)
