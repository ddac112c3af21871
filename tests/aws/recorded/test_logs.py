"""Logs' recorded answers."""

from typing import Any

import orjson
import pytest

from tests.aws.stage import ACCOUNT, OTHER, REGION, Stage, on_stage


def test_a_resource_policy_is_listed_in_its_normal_form() -> None:
    async def play(stage: Stage) -> None:
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": ["delivery.logs.amazonaws.com"]},
            "Action": "logs:PutLogEvents",
            "Resource": "*",
        }
        text = orjson.dumps({"Statement": [statement]}).decode()
        put = await stage.call(stage.root, "logs", "PutResourcePolicy", policyName="p", policyDocument=text)
        assert (put["resourcePolicy"]["policyScope"], put["resourcePolicy"]["policyDocument"]) == (
            "ACCOUNT",
            text,
        )
        (shown,) = (await stage.call(stage.root, "logs", "DescribeResourcePolicies"))["resourcePolicies"]
        document = orjson.loads(shown["policyDocument"])
        assert (shown["policyScope"], document["Version"]) == ("ACCOUNT", "2008-10-17")
        assert document["Statement"][0]["Principal"] == {"Service": "delivery.logs.amazonaws.com"}

    on_stage(play, auth="off")


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("CreateLogGroup", {"logGroupName": "g" * 513}),
        ("CreateLogStream", {"logGroupName": "g", "logStreamName": "s" * 513}),
        ("DeleteMetricFilter", {"logGroupName": "g" * 513, "filterName": "f"}),
    ],
)
def test_a_long_name_is_refused_in_words_of_its_own(operation: str, params: dict[str, str]) -> None:
    async def play(stage: Stage) -> None:
        text = "Invalid LogGroup or LogStream, both must have length less than or equal to 512."
        refusal = await stage.refusal(stage.root, "logs", operation, **params)
        assert refusal == f"InvalidParameterException: {text}"

    on_stage(play, auth="off")


def test_the_namespace_of_a_metric_may_have_colons() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "logs", "CreateLogGroup", logGroupName="g")
        metric = {"metricName": "m", "metricNamespace": "A.B-c_d/1#2:metricNamespace", "metricValue": "1"}
        named = {"logGroupName": "g", "filterName": "f", "filterPattern": ""}
        await stage.call(stage.root, "logs", "PutMetricFilter", **named, metricTransformations=[metric])

    on_stage(play, auth="off")


def test_groups_found_by_a_pattern_have_no_sizes() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "logs", "CreateLogGroup", logGroupName="orders")
        pattern = {"logGroupNamePattern": "rder"}
        answer = await stage.call(stage.root, "logs", "DescribeLogGroups", **pattern)
        (shown,) = answer["logGroups"]
        assert shown["logGroupName"] == "orders"
        assert not {"storedBytes", "deletionProtectionEnabled"} & shown.keys()
        token = {"nextToken": answer["nextToken"]}
        answer = await stage.call(stage.root, "logs", "DescribeLogGroups", **pattern, **token)
        assert (answer["logGroups"], "nextToken" in answer) == ([], False)

    on_stage(play, auth="off")


def test_groups_are_listed_by_expressions_and_destinations_are_none() -> None:
    async def play(stage: Stage) -> None:
        for name in ("/aws/lambda/cars", "orders", "reorders"):
            await stage.call(stage.root, "logs", "CreateLogGroup", logGroupName=name)

        async def names(**params: Any) -> list[str]:
            answer = await stage.call(stage.root, "logs", "ListLogGroups", **params)
            return [group["logGroupName"] for group in answer["logGroups"]]

        assert await names(logGroupNamePattern="absent") == []
        assert await names(logGroupNamePattern="^orders|lambda") == ["/aws/lambda/cars", "orders"]
        assert await names(logGroupClass="DELIVERY") == []
        answer = await stage.call(stage.root, "logs", "ListLogGroups", limit=1)
        arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/cars"
        (group,) = answer["logGroups"]
        assert group == {
            "logGroupName": "/aws/lambda/cars",
            "logGroupArn": arn,
            "logGroupClass": "STANDARD",
        }
        assert await names(nextToken=answer["nextToken"]) == ["orders", "reorders"]
        refusal = await stage.refusal(stage.root, "logs", "ListLogGroups", includeLinkedAccounts=True)
        assert refusal == "InvalidParameterException: includeLinkedAccounts is not available."
        assert (await stage.call(stage.root, "logs", "DescribeDestinations"))["destinations"] == []

    on_stage(play, auth="off")


def test_two_transformations_are_printed_as_java_prints_them() -> None:
    async def play(stage: Stage) -> None:
        metrics = [
            {"metricName": f"metric{n}", "metricNamespace": f"namespace{n}", "metricValue": str(n)}
            for n in (1, 2)
        ]
        named = {"logGroupName": "g", "filterName": "f", "filterPattern": ""}
        refusal = await stage.refusal(
            stage.root, "logs", "PutMetricFilter", **named, metricTransformations=metrics
        )
        printed = ", ".join(
            f"MetricTransformation(metricName=metric{n}, metricNamespace=namespace{n}, metricValue={n},"
            " defaultValue=null, unit=null, dimensions=null)"
            for n in (1, 2)
        )
        assert refusal == (
            f"InvalidParameterException: 1 validation error detected: Value '[{printed}]' at 'metricTransformations'"
            " failed to satisfy constraint: Member must have length less than or equal to 1"
        )

    on_stage(play, auth="off")


def test_destinations_are_looked_at_before_the_group() -> None:
    async def play(stage: Stage) -> None:
        named = {"logGroupName": "unknown", "filterName": "f", "filterPattern": ""}
        function = f"arn:aws:lambda:{REGION}:{OTHER}:function:f"
        refusal = await stage.refusal(
            stage.root, "logs", "PutSubscriptionFilter", **named, destinationArn=function
        )
        assert refusal == (
            "AccessDeniedException: Cross-account lambda invocation passing is not allowed. You must use"
            " DestinationPolicies to create cross account lambda triggers."
        )
        stream = f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/s"
        refusal = await stage.refusal(
            stage.root, "logs", "PutSubscriptionFilter", **named, destinationArn=stream
        )
        text = "destinationArn for vendor kinesis cannot be used without roleArn"
        assert refusal == f"InvalidParameterException: {text}"

    on_stage(play, auth="off")


def test_an_identifier_that_ends_in_a_star_is_refused_and_not_printed() -> None:
    async def play(stage: Stage) -> None:
        arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:g:*"
        refusal = await stage.refusal(stage.root, "logs", "DescribeLogStreams", logGroupIdentifier=arn)
        assert refusal == (
            "InvalidParameterException: 1 validation error detected: Value at 'logGroupIdentifier' failed to satisfy"
            " constraint: Member must satisfy regular expression pattern: [\\w#+=/:,.@-]*"
        )

    on_stage(play, auth="off")


def test_queries_are_listed_with_their_source_and_their_span() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "logs", "CreateLogGroup", logGroupName="g")
        span = {"startTime": 1_700_000_000, "endTime": 1_700_000_100}
        await stage.call(stage.root, "logs", "StartQuery", logGroupName="g", queryString="limit 1", **span)
        (shown,) = (await stage.call(stage.root, "logs", "DescribeQueries"))["queries"]
        assert shown["queryString"] == 'SOURCE "g" START=1700000000000 END=1700000100999 | limit 1'
        refusal = await stage.refusal(
            stage.root, "logs", "StartQuery", logGroupName="absent", queryString="limit 1", **span
        )
        assert refusal.startswith(
            f"ResourceNotFoundException: Log group 'absent' does not exist for account ID '{ACCOUNT}' (Service: AWSLogs;"
            " Status Code: 400; Error Code: ResourceNotFoundException; Request ID: "
        )

    on_stage(play, auth="off")
