"""Functions that a bucket's events are for."""

import json
from typing import Any

from redrive.aws.gateway.rounds import ROUNDS_MAX
from tests.contracts.aws.lambda_.test_events import Counting
from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sqs.client import refused

BUCKET = "wheels"
_WRITING = """
import os
from urllib.request import Request, urlopen

def handler(event, context):
    name = event["Records"][0]["s3"]["object"]["key"]
    scope = "Credential=000000000000/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    headers = {"Authorization": "AWS4-HMAC-SHA256 " + scope, "X-Amzn-Trace-Id": os.environ["_X_AMZN_TRACE_ID"]}
    url = os.environ["URL"] + "/wheels/" + name + "x"
    urlopen(Request(url, b"", headers, method="PUT")).close()
"""


def _notify(s3: Any, arn: str) -> None:
    rule = {"Id": "r", "LambdaFunctionArn": arn, "Events": ["s3:ObjectCreated:*"]}
    configuration = {"LambdaFunctionConfigurations": [rule]}
    s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration=configuration)


def test_a_function_is_invoked_as_its_policy_lets_and_its_dead_letters_are_kept(workshop: Workshop) -> None:
    s3, dead = workshop.of("s3"), workshop.sqs.queue()
    s3.create_bucket(Bucket=BUCKET)
    function = Counting(workshop, DeadLetterConfig={"TargetArn": dead.arn})
    arn = workshop.arn(function.name)

    def permit(statement: str, account: str) -> None:
        workshop.client.add_permission(
            FunctionName=function.name,
            StatementId=statement,
            Action="lambda:InvokeFunction",
            Principal="s3.amazonaws.com",
            SourceArn=f"arn:aws:s3:::{BUCKET}",
            SourceAccount=account,
        )

    permit("other", "111111111111")
    for denied in (arn, f"{arn}x"):
        with refused(
            "InvalidArgument", "Unable to validate the following destination configurations"
        ) as error:
            _notify(s3, denied)
        fault = f"Not authorized to invoke function [{denied}]"
        assert (error["ArgumentName1"], error["ArgumentValue1"]) == (denied, fault)
    permit("own", workshop.account)
    _notify(s3, arn)
    assert function.calls == []  # functions get no test message
    s3.put_object(Bucket=BUCKET, Key="a", Body=b"")
    workshop.server.advance(1)
    assert len(function.calls) == 1
    workshop.client.update_function_configuration(FunctionName=function.name, Handler="index.absent")
    s3.put_object(Bucket=BUCKET, Key="b", Body=b"")
    workshop.server.advance(600)
    letter = dead.one()
    dead.delete(letter)
    (record,) = json.loads(letter["Body"])["Records"]
    assert (record["s3"]["configurationId"], record["s3"]["object"]["key"]) == ("r", "b")
    workshop.client.remove_permission(FunctionName=function.name, StatementId="own")
    s3.put_object(Bucket=BUCKET, Key="c", Body=b"")
    workshop.server.advance(600)
    assert dead.bodies() == []


def test_a_function_that_writes_to_the_bucket_that_invokes_it_comes_to_an_end(workshop: Workshop) -> None:
    s3 = workshop.of("s3")
    s3.create_bucket(Bucket=BUCKET)
    name = workshop.function(_WRITING, Environment={"Variables": {"URL": workshop.server.url}})
    _notify(s3, workshop.arn(name))
    s3.put_object(Bucket=BUCKET, Key="a", Body=b"")
    for _ in range(ROUNDS_MAX + 4):
        workshop.server.advance(1)
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 1 + ROUNDS_MAX
