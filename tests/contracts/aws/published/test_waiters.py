"""Every published waiter of what a server offers ends, and one that waits for what does not come says so."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from botocore.exceptions import WaiterError

from redrive.aws.services import FOLDERS
from tests.contracts.aws.lambda_.workshop import ECHO, archive
from tests.contracts.aws.published.conftest import ROLE, Published
from tests.contracts.aws.published.worlds import ALLOW, TRUST

_HANDLES: Final = {"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}}
_TEMPLATE: Final = json.dumps(_HANDLES)
_QUICKLY: Final = {"Delay": 0, "MaxAttempts": 500}
Waiters = Mapping[str, Mapping[str, Any]]


def _cloudwatch(published: Published) -> Waiters:
    watch = published.of("cloudwatch")
    watch.put_metric_alarm(
        AlarmName="plain",
        Namespace="test",
        MetricName="m",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    watch.put_composite_alarm(AlarmName="composite", AlarmRule="ALARM(plain)")
    composite = {"AlarmNames": ["composite"], "AlarmTypes": ["CompositeAlarm"]}
    return {"AlarmExists": {"AlarmNames": ["plain"]}, "CompositeAlarmExists": composite}


def _lambda(published: Published) -> Waiters:
    functions, name = published.of("lambda"), {"FunctionName": "waited"}
    functions.create_function(
        **name,
        Runtime="python3.11",
        Handler="code.handler",
        Role=ROLE,
        Code={"ZipFile": archive({"code.py": ECHO})},
    )
    functions.update_function_configuration(**name, Timeout=9)
    functions.publish_version(**name)
    others = ("FunctionActive", "FunctionActiveV2", "FunctionExists", "FunctionUpdated", "FunctionUpdatedV2")
    return {**dict.fromkeys(others, name), "PublishedVersionActive": {**name, "Qualifier": "1"}}


def _iam(published: Published) -> Waiters:
    iam = published.of("iam")
    iam.create_user(UserName="u")
    iam.create_role(RoleName="r", AssumeRolePolicyDocument=TRUST)
    iam.create_instance_profile(InstanceProfileName="p")
    arn = iam.create_policy(PolicyName="p", PolicyDocument=ALLOW)["Policy"]["Arn"]
    return {
        "UserExists": {"UserName": "u"},
        "RoleExists": {"RoleName": "r"},
        "InstanceProfileExists": {"InstanceProfileName": "p"},
        "PolicyExists": {"PolicyArn": arn},
    }


def _s3(published: Published) -> Waiters:
    s3, bucket = published.of("s3"), {"Bucket": "waited"}
    s3.create_bucket(**bucket)
    s3.put_object(**bucket, Key="k", Body=b"")
    return {
        "BucketExists": bucket,
        "BucketNotExists": {"Bucket": "not-there"},
        "ObjectExists": {**bucket, "Key": "k"},
        "ObjectNotExists": {**bucket, "Key": "not-there"},
    }


def _cloudformation(published: Published) -> Waiters:
    stacks = published.of("cloudformation")
    changed = json.dumps({**_HANDLES, "Description": "changed", "Outputs": {"O": {"Value": "v"}}})
    impossible = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 99_999}}
    broken = json.dumps({"Resources": {**_HANDLES["Resources"], "Queue": impossible}})
    for name in ("created", "updated", "deleted", "rolled"):
        stacks.create_stack(StackName=name, TemplateBody=_TEMPLATE)
        stacks.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig=_QUICKLY)
    stacks.update_stack(StackName="updated", TemplateBody=changed)
    stacks.update_stack(StackName="rolled", TemplateBody=broken, DisableRollback=True)
    with pytest.raises(WaiterError):
        stacks.get_waiter("stack_update_complete").wait(StackName="rolled", WaiterConfig=_QUICKLY)
    stacks.rollback_stack(StackName="rolled")
    stacks.delete_stack(StackName="deleted")
    change_set = {"StackName": "created", "ChangeSetName": "set"}
    stacks.create_change_set(**change_set, TemplateBody=changed)
    return {
        "StackExists": {"StackName": "created"},
        "StackCreateComplete": {"StackName": "created"},
        "StackUpdateComplete": {"StackName": "updated"},
        "StackDeleteComplete": {"StackName": "deleted"},
        "StackRollbackComplete": {"StackName": "rolled"},
        "ChangeSetCreateComplete": change_set,
    }


#: They wait for what there is not here: imported resources, and alarms of log queries.
_NOT_HERE: Final = {"StackImportComplete", "LogAlarmExists"}
_WORLDS: Final[Mapping[str, Callable[[Published], Waiters]]] = {
    "cloudwatch": _cloudwatch,
    "lambda": _lambda,
    "iam": _iam,
    "s3": _s3,
    "cloudformation": _cloudformation,
}


@pytest.mark.parametrize("service", FOLDERS)
def test_every_waiter_ends(published: Published, service: str) -> None:
    api = published.of(service)
    offered = {
        waiter.name: name
        for name in api.waiter_names
        if published.offers(service, (waiter := api.get_waiter(name)).config.operation)
    }
    world = _WORLDS.get(service)
    waiters = {} if world is None else world(published)
    assert waiters.keys() == offered.keys() - _NOT_HERE
    for name, params in waiters.items():
        api.get_waiter(offered[name]).wait(**params, WaiterConfig=_QUICKLY)
    published.server.reset()


@pytest.mark.parametrize(
    ("service", "waiter", "params"),
    [
        ("iam", "role_exists", {"RoleName": "not-there"}),
        ("lambda", "function_exists", {"FunctionName": "not-there"}),
        ("s3", "object_exists", {"Bucket": "not-there", "Key": "k"}),
        ("cloudformation", "stack_create_complete", {"StackName": "not-there"}),
        ("cloudwatch", "alarm_exists", {"AlarmNames": ["not-there"]}),
    ],
)
def test_a_waiter_for_what_is_not_there_fails(
    published: Published, service: str, waiter: str, params: Mapping[str, Any]
) -> None:
    with pytest.raises(WaiterError, match=r"Max attempts exceeded|terminal failure"):
        published.of(service).get_waiter(waiter).wait(**params, WaiterConfig={"Delay": 0, "MaxAttempts": 2})
