"""`aws cloudformation deploy` and `package`, as they are installed, with the poll intervals that are theirs."""

import json
import os
from pathlib import Path
from typing import Any

from tests.aws.cloudformation.rental_car import TEMPLATE
from tests.contracts.aws.cloudformation.stacks import ACCOUNT, Stacks
from tests.services.clients import AWS

# What of the template needs no functions, keys or alarms: this server is the one that all contracts share.
KINDS = ("AWS::SQS::", "AWS::SNS::", "AWS::Logs::")


def _without_functions() -> dict[str, Any]:
    resources = {
        name: resource
        for name, resource in TEMPLATE["Resources"].items()
        if resource["Type"].startswith(KINDS)
    }
    del resources["ToBilling"]
    return {**TEMPLATE, "Resources": resources}


def aws(stacks: Stacks, directory: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": stacks.server.url,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    done = AWS.run(arguments, environment, directory, timeout=110)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_deploy_a_template_that_they_packed(server_on_sqlite: Any, tmp_path: Path) -> None:
    stacks = Stacks(server_on_sqlite)
    stacks.of("s3").create_bucket(Bucket="deployments")
    (tmp_path / "child.json").write_text(json.dumps(_without_functions()))
    nested = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": "child.json"}}
    topic = {"Topic": {"Value": {"Fn::GetAtt": ["Rental", "Outputs.Topic"]}}}
    (tmp_path / "template.json").write_text(json.dumps({"Resources": {"Rental": nested}, "Outputs": topic}))
    try:
        packed = ("--s3-bucket", "deployments", "--output-template-file", "packed.json", "--use-json")
        aws(stacks, tmp_path, "cloudformation", "package", "--template-file", "template.json", *packed)
        deployed = ("--template-file", "packed.json", "--stack-name", "rental")
        said = aws(stacks, tmp_path, "cloudformation", "deploy", *deployed)
        assert "Successfully created/updated stack - rental" in said
        assert "Rental-Fulfilment-Fanout-DLQ" in stacks.queues()
        again = aws(stacks, tmp_path, "cloudformation", "deploy", *deployed, "--no-fail-on-empty-changeset")
        assert "No changes to deploy. Stack rental is up to date" in again
        stack = stacks.client.describe_stacks(StackName="rental")["Stacks"][0]
        assert stack["Outputs"][0]["OutputValue"].endswith(":Rental-Orders")
        stacks.delete(stack)
        assert (stacks.queues(), stacks.topics()) == (set(), set())
    finally:
        server_on_sqlite.reset()
