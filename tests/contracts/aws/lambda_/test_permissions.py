"""Policies of functions, tags, and what an account may have."""

import orjson
import pytest

from tests.contracts.aws.lambda_.workshop import Workshop, archive
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, refused

OTHER = "210987654321"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:orders"


def _allowed(workshop: Workshop, name: str, sid: str = "s", **given: str) -> dict[str, object]:
    answer = workshop.client.add_permission(
        FunctionName=name, StatementId=sid, Action="lambda:InvokeFunction", **given
    )
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 201
    statement: dict[str, object] = orjson.loads(answer["Statement"])
    return statement


@pytest.mark.parametrize(
    ("given", "principal", "condition"),
    [
        (
            {"Principal": "sns.amazonaws.com", "SourceArn": TOPIC},
            {"Service": "sns.amazonaws.com"},
            {"ArnLike": {"AWS:SourceArn": TOPIC}},
        ),
        ({"Principal": OTHER}, {"AWS": f"arn:aws:iam::{OTHER}:root"}, None),
        ({"Principal": "*", "SourceAccount": OTHER}, "*", {"StringEquals": {"AWS:SourceAccount": OTHER}}),
    ],
)
def test_a_statement_is_made_as_recorded(
    workshop: Workshop, given: dict[str, str], principal: object, condition: object
) -> None:
    name = workshop.function()
    statement = _allowed(workshop, name, **given)
    expected = {
        "Sid": "s",
        "Effect": "Allow",
        "Principal": principal,
        "Action": "lambda:InvokeFunction",
        "Resource": workshop.arn(name),
    }
    assert statement == (expected if condition is None else {**expected, "Condition": condition})
    policy = orjson.loads(workshop.client.get_policy(FunctionName=name)["Policy"])
    assert policy == {"Version": "2012-10-17", "Id": "default", "Statement": [statement]}


def test_another_account_may_invoke_what_a_policy_lets_it(workshop: Workshop) -> None:
    name = workshop.function()
    other = Workshop(workshop.server, account=OTHER)
    with refused("AccessDeniedException", status=403) as error:
        other.call(workshop.arn(name), 1)
    assert "is not authorized to perform: lambda:InvokeFunction on resource" in error["Message"]
    _allowed(workshop, name, Principal=OTHER)
    assert other.call(workshop.arn(name), 1).payload == 1
    with refused("AccessDeniedException", status=403):
        other.client.delete_function(FunctionName=workshop.arn(name))
    workshop.client.remove_permission(FunctionName=name, StatementId="s")
    with refused("AccessDeniedException", status=403):
        other.call(workshop.arn(name), 1)


def test_policies_belong_to_what_was_named(workshop: Workshop) -> None:
    name = workshop.function(Publish=True)
    _allowed(workshop, name, Principal=OTHER)
    with refused("ResourceNotFoundException", "The resource you requested does not exist.", 404):
        workshop.client.get_policy(FunctionName=name, Qualifier="1")
    with refused(
        "InvalidParameterValueException", "We currently do not support adding policies for $LATEST."
    ):
        _allowed(workshop, f"{name}:$LATEST", Principal=OTHER)


def test_refused_policy_statements_name_the_error(workshop: Workshop) -> None:
    name = workshop.function()
    with refused("ResourceNotFoundException", "No policy is associated with the given resource.", 404):
        workshop.client.remove_permission(FunctionName=name, StatementId="s")
    _allowed(workshop, name, Principal=OTHER)
    text = (
        "The statement id (s) provided already exists. Please provide a new statement id, or remove the existing"
        " statement."
    )
    with refused("ResourceConflictException", text, 409):
        _allowed(workshop, name, Principal=OTHER)
    with refused("ResourceNotFoundException", "Statement t is not found in resource policy.", 404):
        workshop.client.remove_permission(FunctionName=name, StatementId="t")
    text = "The provided principal was invalid. Please check the principal and try again."
    with refused("InvalidParameterValueException", text):
        _allowed(workshop, name, "t", Principal="somebody")


def test_tags_are_added_listed_and_removed(workshop: Workshop) -> None:
    arn = workshop.arn(workshop.function(Tags={"a": "1"}))
    workshop.client.tag_resource(Resource=arn, Tags={"b": "2", "c": "3"})
    workshop.client.untag_resource(Resource=arn, TagKeys=["a", "c"])
    assert workshop.client.list_tags(Resource=arn)["Tags"] == {"b": "2"}


def test_reservations_leave_something_for_others(workshop: Workshop) -> None:
    name = workshop.function()
    put = workshop.client.put_function_concurrency
    text = (
        "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below"
        " its minimum value of [100]."
    )
    with refused("InvalidParameterValueException", text):
        put(FunctionName=name, ReservedConcurrentExecutions=901)
    assert put(FunctionName=name, ReservedConcurrentExecutions=7)["ReservedConcurrentExecutions"] == 7
    get = workshop.client.get_function_concurrency
    assert get(FunctionName=name)["ReservedConcurrentExecutions"] == 7
    settings = workshop.client.get_account_settings()
    limit, usage = settings["AccountLimit"], settings["AccountUsage"]
    assert (limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]) == (1000, 993)
    workshop.client.publish_version(FunctionName=name)
    content = {"ZipFile": archive({"a": "b"})}
    layer = workshop.client.publish_layer_version(LayerName="counted", Content=content)
    code = workshop.client.get_function_configuration(FunctionName=name)["CodeSize"]
    after = workshop.client.get_account_settings()["AccountUsage"]
    assert after["FunctionCount"] == usage["FunctionCount"]
    assert after["TotalCodeSize"] - usage["TotalCodeSize"] == code + layer["Content"]["CodeSize"]
    assert workshop.client.get_function(FunctionName=name)["Concurrency"] == {
        "ReservedConcurrentExecutions": 7
    }
    workshop.client.delete_function_concurrency(FunctionName=name)
    assert "ReservedConcurrentExecutions" not in get(FunctionName=name)
