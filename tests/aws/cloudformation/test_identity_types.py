"""Types of IAM and CloudWatch: made with the policies that belong to them, changed and removed."""

from typing import Any

from tests.aws.cloudformation.stage import ACCOUNT, Stage, stage

TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


def _allows(action: str) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}


def _template(action: str, **role: Any) -> dict[str, Any]:
    def of(kind: str, **properties: Any) -> dict[str, Any]:
        return {"Type": f"AWS::{kind}", "Properties": properties}

    policies = [{"PolicyName": "own", "PolicyDocument": _allows(action)}]
    resources = {
        "Role": of("IAM::Role", AssumeRolePolicyDocument=TRUST, Policies=policies, **role),
        "Managed": of("IAM::ManagedPolicy", PolicyDocument=_allows(action), Roles=[{"Ref": "Role"}]),
        "Inline": of(
            "IAM::Policy", PolicyName="inline", PolicyDocument=_allows(action), Roles=[{"Ref": "Role"}]
        ),
        "Group": of("IAM::Group"),
        "User": of("IAM::User", Groups=[{"Ref": "Group"}], Policies=policies),
        "Dashboard": of("CloudWatch::Dashboard", DashboardBody='{"widgets":[]}'),
        "Alarm": of(
            "CloudWatch::Alarm",
            Namespace="n",
            MetricName="m",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
        ),
        "Any": of("CloudWatch::CompositeAlarm", AlarmRule={"Fn::Sub": 'ALARM("${Alarm}")'}),
    }
    arn = {"Value": {"Fn::GetAtt": ["Role", "Arn"]}}
    return {"Resources": resources, "Outputs": {"Role": arn}}


async def _left(at: Stage) -> list[int]:
    """The numbers of roles, users, groups, policies, alarms and dashboards."""
    found = [
        (await at.ask("iam", "ListRoles"))["Roles"],
        (await at.ask("iam", "ListUsers"))["Users"],
        (await at.ask("iam", "ListGroups"))["Groups"],
        (await at.ask("iam", "ListPolicies", Scope="Local"))["Policies"],
        (await at.ask("cloudwatch", "DescribeAlarms", AlarmTypes=["MetricAlarm"])).get("MetricAlarms") or (),
        (await at.ask("cloudwatch", "DescribeAlarms", AlarmTypes=["CompositeAlarm"])).get("CompositeAlarms")
        or (),
        (await at.ask("cloudwatch", "ListDashboards")).get("DashboardEntries") or (),
    ]
    return [len(one) for one in found]


async def test_roles_come_and_go_with_their_policies() -> None:
    async with stage() as at:
        managed = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
        stack = await at.create("shop", _template("sqs:SendMessage", ManagedPolicyArns=[managed]))
        assert stack["StackStatus"] == "CREATE_COMPLETE", await at.reasons("shop", "CREATE_FAILED")
        role = (await at.resources("shop"))["Role"]["PhysicalResourceId"]
        assert stack["Outputs"][0]["OutputValue"] == f"arn:aws:iam::{ACCOUNT}:role/{role}"
        attached = await at.ask("iam", "ListAttachedRolePolicies", RoleName=role)
        assert managed in [policy["PolicyArn"] for policy in attached["AttachedPolicies"]]
        assert sorted((await at.ask("iam", "ListRolePolicies", RoleName=role))["PolicyNames"]) == [
            "inline",
            "own",
        ]
        changed = await at.update("shop", _template("sns:Publish", Description="works"))
        assert changed["StackStatus"] == "UPDATE_COMPLETE", await at.reasons("shop", "UPDATE_FAILED")
        found = await at.ask("iam", "GetRolePolicy", RoleName=role, PolicyName="own")
        assert "Publish" in found["PolicyDocument"]
        attached = await at.ask("iam", "ListAttachedRolePolicies", RoleName=role)
        assert managed not in [policy["PolicyArn"] for policy in attached["AttachedPolicies"]]
        assert len(attached["AttachedPolicies"]) == 1
        again = _template("sns:Publish", Description="still works")
        assert (await at.update("shop", again))["StackStatus"] == "UPDATE_COMPLETE"
        attached = await at.ask("iam", "ListAttachedRolePolicies", RoleName=role)
        assert len(attached["AttachedPolicies"]) == 1  # by the managed policy, which did not change
        assert await _left(at) == [1] * 7
        deleted = await at.delete(stack)
        assert deleted["StackStatus"] == "DELETE_COMPLETE", await at.reasons(
            stack["StackId"], "DELETE_FAILED"
        )
        assert await _left(at) == [0] * 7
