"""Operations of every service, asked by a user whom nothing allows anything, and then by one who may everything."""

import io
import zipfile
from typing import Any, Final

from redrive.aws.wire.shapes import Shape
from tests.aws.stage import ACCOUNT, HOST, REGION, Key, Refused, Stage, allow, on_stage, policy

QUEUE: Final = f"arn:aws:sqs:{REGION}:{ACCOUNT}:q"
TOPIC: Final = f"arn:aws:sns:{REGION}:{ACCOUNT}:t"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/worker"
#: Values of required parameters, by their names, that are about something of the account.
VALUES: Final[dict[str, Any]] = {
    "QueueUrl": f"http://{HOST}/{ACCOUNT}/q",
    "QueueName": "q",
    "SourceArn": QUEUE,
    "TopicArn": TOPIC,
    "ResourceArn": TOPIC,
    "ResourceARN": TOPIC,
    "Name": "t",
    "Bucket": "bucket",
    "FunctionName": "f",
    "RoleArn": ROLE,
    "Role": ROLE,
    "RoleName": "worker",
    "UserName": "ann",
    "GroupName": "g",
    "PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess",
    "PolicySourceArn": ROLE,
    "PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess",
    "PolicyDocument": policy(allow("*")),
    "AssumeRolePolicyDocument": policy({"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}),
    "Status": "Active",
    "logGroupName": "group",
    "Code": {"ZipFile": b"x"},
    "Runtime": "python3.12",
    "StackName": "stack",
}
#: Everybody may ask these of themselves; or they are refused to everybody, in words of their own.
OPEN: Final = {
    "s3 DeleteObjects",  # refuses each object in its answer
    "sns ConfirmSubscription",  # by a token out of a message
    "sts DecodeAuthorizationMessage",
    "sts GetCallerIdentity",
    "sts GetSessionToken",
}
#: Nobody may change Amazon's own policies.
AMAZONS: Final = {"iam CreatePolicyVersion", "iam DeletePolicy"}
MORE: Final[dict[str, dict[str, Any]]] = {"sns Publish": {"TopicArn": TOPIC}}


def archive() -> bytes:
    """A function's code."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("f.py", "def f(event, context): pass")
    return packed.getvalue()


def required(shape: Shape, name: str = "") -> Any:
    """A value with all that a shape requires."""
    if name in VALUES:
        return VALUES[name]
    match shape.type:
        case "structure":
            return {
                each: required(shape.members[each].shape, each)
                for each in shape.required
                if each in shape.members
            }
        case "list":
            return [required(shape.element.shape)]
        case "map":
            return {"a": required(shape.value.shape)}
        case "integer" | "long" | "double" | "float":
            return 1
        case "boolean":
            return False
        case "blob":
            return b"x"
        case "timestamp":
            return 1_700_000_000
        case _:
            return shape.enum[0] if shape.enum else "x" * 20


async def answers(stage: Stage, key: Key, services: dict[str, Any]) -> dict[str, str]:
    """The outcome of each operation: `` where it was carried out, the refusal where it was not."""
    told = {}
    for service, facade in sorted(services.items()):
        client = stage.client(service)
        for operation in sorted(set(facade.operations) & set(client.operations)):
            params = required(client.service.operation(operation).input)
            params |= MORE.get(f"{service} {operation}", {})
            try:
                await stage.call(key, service, operation, **params)
                told[f"{service} {operation}"] = ""
            except Refused as refused:
                told[f"{service} {operation}"] = str(refused)
    return told


def is_denied(answer: str) -> bool:
    return "is not authorized to perform" in answer or "Access Denied" in answer


def test_users_without_policies_may_nothing() -> None:
    async def play(stage: Stage) -> None:
        await stage.server.parts.open_all()
        services = dict(stage.server.core.services)
        assert len(services) >= 8
        await stage.call(stage.root, "sqs", "CreateQueue", QueueName="q")
        await stage.call(stage.root, "sns", "CreateTopic", Name="t")
        await stage.call(stage.root, "s3", "CreateBucket", Bucket="bucket")
        await stage.call(stage.root, "logs", "CreateLogGroup", logGroupName="group")
        trusted = {"AWS": f"arn:aws:iam::{ACCOUNT}:root", "Service": "lambda.amazonaws.com"}
        await stage.role("worker", trusted)
        code = {"Role": ROLE, "Code": {"ZipFile": archive()}, "Runtime": "python3.12", "Handler": "f.f"}
        await stage.call(stage.root, "lambda", "CreateFunction", FunctionName="f", **code)
        nobody = await stage.user("nobody")
        before = await answers(stage, nobody, services)
        carried_out = {name for name, answer in before.items() if not answer}
        assert carried_out <= OPEN, carried_out - OPEN
        denied = {name for name, answer in before.items() if is_denied(answer)}
        assert len(denied) > 230, len(denied)
        ann = await stage.user("ann", allow("*"))
        after = await answers(stage, ann, services)
        still = {name for name in denied if is_denied(after[name])} - AMAZONS
        assert not still, still
        # Whatever is refused before its caller's policies are asked is refused to everybody.
        others = {name for name in before if name not in denied | OPEN}
        opened = {name: (before[name], after[name]) for name in others if not after[name]}
        assert not opened, opened

    on_stage(play, functions="on")
