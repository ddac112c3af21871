"""Makes `access/aws_managed.json` of Amazon's managed policies as `aws iam get-policy-version` answers them.

`python -m tests.aws.iam.make_managed_policies FOLDER`: the folder has such an answer a policy, named as the policy. Their
paths are those that SAM's translator knows. Taken are the policies of service roles and those of services that templates
of queues, topics and functions name; left out is what `parse_policy` finds too long.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from samtranslator.internal import managed_policies

from redrive.access.identities import POLICIES_FILE
from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import Form, parse_policy

_PATHS: Final = Path(managed_policies.__file__).with_name("data") / "aws_managed_policies.json"
_SERVICE_ROLE: Final = "/service-role/"
_NAMES: Final = re.compile(
    r"AdministratorAccess|PowerUserAccess|ReadOnlyAccess|IAM(Full|ReadOnly)Access|AWSLambda.*|AWSX[Rr]ay.*"
    r"|AmazonS(QS|NS|3|SM)(Full|ReadOnly)Access|AmazonAPIGateway.*|AWSCloudFormation.*|CloudWatchLambda.*"
    r"|CloudWatch(Logs|Events)?(Full|ReadOnly)Access(V2)?|CloudWatchAgentServerPolicy"
    r"|AmazonKinesis(Firehose)?(Full|ReadOnly)Access|AmazonDynamoDB(Full|ReadOnly)Access(_v2)?"
    r"|AmazonEventBridge(Full|ReadOnly)Access|AWSStepFunctions.*|AWSKeyManagementServicePowerUser|SecretsManagerReadWrite"
)
# Of everything that can be read at Amazon, 83,000 characters: what is offered here.
_OFFERED: Final = re.compile(
    r"(apigateway|cloudformation|cloudwatch|execute-api|firehose|iam|kms|lambda|logs|s3|sns|sqs|ssm|sts):.*"
)


def row(path: str, answer: dict[str, Any]) -> dict[str, Any] | None:
    """A policy of the file; None: it is too long to be attached here."""
    document = answer["Document"]
    if path == "/ReadOnlyAccess":
        for statement in document["Statement"]:
            statement["Action"] = [action for action in statement["Action"] if _OFFERED.fullmatch(action)]
    try:
        parse_policy(json.dumps(document), Form.IDENTITY)
    except PolicyInvalid:
        return None
    return {"version": int(answer["VersionId"][1:]), "date": answer["CreateDate"], "document": document}


def main(folder: Path) -> None:
    """Write the file, a policy a line."""
    paths = (arn.partition(":policy")[2] for arn in json.loads(_PATHS.read_text())["aws"].values())
    taken = sorted(
        path for path in paths if path.startswith(_SERVICE_ROLE) or _NAMES.fullmatch(path.removeprefix("/"))
    )
    answers = {path: json.loads((folder / Path(path).name).read_text())["PolicyVersion"] for path in taken}
    rows = {path: found for path, answer in answers.items() if (found := row(path, answer)) is not None}
    lines = ",\n".join(
        f"{json.dumps(path)}: {json.dumps(row, separators=(',', ':'))}" for path, row in rows.items()
    )
    POLICIES_FILE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
