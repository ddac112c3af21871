"""Requests of every operation, made of the published models and of what the server has answered until now.

A parameter that is called as something was in an earlier answer or in a request that was carried out gets that value as a
rule: so a run finds queues by URL, keys by id and stacks by name, of whichever service, without being told of any.
"""

import io
import json
import random
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from redrive.aws.wire.shapes import Member, Shape

_DEPTH_MAX: Final = 6
_KEPT: Final = 24  # values of a name; a new one takes the place of any
_KNOWN_SHARE: Final = 0.85
_OPTIONAL_SHARES: Final = (0.0, 0.1, 0.4)  # of a request's optional members, one of these
#: The words that an answer's plain `id` and `name` are called by elsewhere: `restApiId`, `ApiId`.
_PLAIN: Final = ("id", "arn", "name")
_POLICY: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}],
    }
)
_TRUST: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
            {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"},
        ],
    }
)
_RIGHTS: Final = _POLICY.replace('"Principal": "*", ', "")
_TEMPLATE: Final = json.dumps(
    {
        "Parameters": {"P": {"Type": "String", "Default": "p", "NoEcho": True}},
        "Resources": {
            "Q": {"Type": "AWS::SQS::Queue"},
            "T": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": {"Ref": "P"}}},
        },
        "Outputs": {"O": {"Value": {"Fn::GetAtt": ["Q", "Arn"]}}},
    }
)
_MOCK: Final = {
    "type": "mock",
    "requestTemplates": {"application/json": '{"statusCode": 200}'},
    "responses": {"default": {"statusCode": "200", "responseTemplates": {"application/json": "$input.body"}}},
}
_ANY: Final = {"responses": {"200": {"description": "d"}}, "x-amazon-apigateway-integration": _MOCK}
_DEFINITION: Final = json.dumps(
    {
        "openapi": "3.0.1",
        "info": {"title": "Cars", "version": "1"},
        "paths": {"/cars": {"get": _ANY, "post": _ANY}, "/{p}": {"x-amazon-apigateway-any-method": _ANY}},
    }
).encode()
_ROLE: Final = "arn:aws:iam::000000000000:role/r"
#: Values by a part of a parameter's name, where nothing is known; the first that fits.
_GUESSES: Final[Sequence[tuple[str, Sequence[Any]]]] = (
    ("assumerolepolicydocument", [_TRUST]),
    ("policydocument", [_RIGHTS]),
    ("aliasname", ["alias/a", "alias/b"]),
    ("functionversion", ["1", "$LATEST"]),
    ("qualifier", ["1", "a1", "$LATEST"]),
    ("visibilitytimeout", ["30"]),
    ("phonenumber", ["+15550100001"]),
    ("dashboardbody", ['{"widgets": []}']),
    ("policyarn", ["arn:aws:iam::aws:policy/ReadOnlyAccess"]),
    ("policyname", ["p1", "p2"]),
    ("policy", [_POLICY]),
    ("templatebody", [_TEMPLATE]),
    ("templateurl", ["http://localhost/b/t.json"]),
    ("rolearn", [_ROLE]),
    ("bucketarn", ["arn:aws:s3:::bucket1"]),
    ("bucket", ["bucket1", "bucket2"]),
    ("role", [_ROLE, "r"]),
    ("targetarn", ["arn:aws:sqs:us-east-1:000000000000:n1"]),
    ("queueurl", ["http://localhost/000000000000/n1"]),
    ("queuename", ["n1", "n2.fifo"]),
    ("topicarn", ["arn:aws:sns:us-east-1:000000000000:n1"]),
    ("functionarn", ["arn:aws:lambda:us-east-1:000000000000:function:f1"]),
    ("runtime", ["python3.11", "nodejs20.x", "provided.al2023"]),
    ("handler", ["index.handler"]),
    ("principal", ["sns.amazonaws.com", "*", "000000000000"]),
    ("action", ["lambda:InvokeFunction", "SendMessage"]),
    ("pathpart", ["cars", "{id}", "{proxy+}"]),
    ("routekey", ["GET /a", "$default", "ANY /{p+}"]),
    ("uri", ["http://127.0.0.1:9/", "arn:aws:apigateway:us-east-1:sqs:path/000000000000/n1"]),
    ("httpmethod", ["GET", "POST", "ANY"]),
    ("statuscode", ["200", "400"]),
    ("protocoltype", ["HTTP"]),
    ("protocol", ["sqs", "lambda", "http", "email", "sms", "firehose"]),
    ("endpoint", ["arn:aws:sqs:us-east-1:000000000000:n1", "http://127.0.0.1:9/", "a@b.example"]),
    ("metricname", ["m1", "NumberOfMessagesSent"]),
    ("namespace", ["ns1", "AWS/SQS"]),
    ("filterpattern", ["", "{ $.a = 1 }", "[a, b=5]", "ERROR"]),
    ("querystring", ["fields @message | filter @message like /a/ | limit 5", "stats count(*) by bin(5m)"]),
    ("expression", ["m1 + 1", "SUM(METRICS())"]),
    ("schedule", ["rate(1 minute)"]),
    ("alarmrule", ['ALARM("a1")']),
    ("messagebody", ["b", '{"a": 1}']),
    ("groupid", ["g1"]),
    ("loggroupname", ["/group/1"]),
    ("loggroupidentifier", ["/group/1"]),
    ("logstreamname", ["s1"]),
    ("nexttoken", [""]),
    ("marker", [""]),
    ("action", ["sqs:SendMessage"]),
    ("path", ["/"]),
    ("name", ["n1", "n2", "n3"]),
    ("arn", ["arn:aws:sqs:us-east-1:000000000000:n1", "arn:aws:sns:us-east-1:000000000000:n1"]),
)


class Learner:
    """Makes parameters, and learns from answers."""

    def __init__(self, rng: random.Random, now: datetime) -> None:
        """Know nothing yet; timestamps are around this moment."""
        self._rng = rng
        self._now = now
        self._known: dict[str, list[Any]] = defaultdict(list)
        self._share = 0.0

    # ---- learning ----------------------------------------------------------------------------------------

    def learn(self, operation: str, params: Any, answer: Any) -> None:
        """A request was carried out."""
        self._take(params, "")
        self._take(answer, "")
        if isinstance(answer, dict):
            of = operation.removeprefix("Create").removeprefix("Put").lower()
            for plain in _PLAIN:
                if isinstance(answer.get(plain), str):
                    self._keep(f"{of}{plain}", answer[plain])

    def _take(self, value: Any, name: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key != "ResponseMetadata":
                    self._take(inner, str(key))
        elif isinstance(value, list):
            for inner in value[:4]:
                self._take(inner, name)
        elif isinstance(value, str) and name and 0 < len(value) <= 2048:
            self._keep(name.lower(), value)

    def _keep(self, name: str, value: Any) -> None:
        values = self._known[name]
        if value in values:
            return
        if len(values) < _KEPT:
            values.append(value)
        else:
            values[self._rng.randrange(_KEPT)] = value

    def known(self, name: str) -> Any:
        """A value that was met under that name; None: there is none."""
        values = self._known.get(name.lower().rstrip("s")) or self._known.get(name.lower())
        return self._rng.choice(values) if values else None

    # ---- making ------------------------------------------------------------------------------------------

    def params(self, shape: Shape) -> dict[str, Any]:
        """Parameters as a client that read the model would send them."""
        self._share = self._rng.choice(_OPTIONAL_SHARES)
        return self._structure(shape, 0)

    def _structure(self, shape: Shape, depth: int) -> dict[str, Any]:
        rng = self._rng
        return {
            name: self._value(member, depth + 1)
            for name, member in shape.members.items()
            if name in shape.required or (depth < _DEPTH_MAX and rng.random() < self._share)
        }

    def _value(self, member: Member, depth: int, name: str = "") -> Any:
        shape, rng = member.shape, self._rng
        name = name or member.name
        match shape.type:
            case "structure":
                return self._structure(shape, depth)
            case "list":
                number = max(int(shape.least or 0), rng.randrange(3) if depth < _DEPTH_MAX else 0)
                return [self._value(shape.element, depth + 1, name) for _ in range(min(number, 5))]
            case "map":
                keys = list(shape.key.shape.enum) or [self.known(f"{name}.key") or "k", "k2"]
                return {
                    rng.choice(keys): self._value(shape.value, depth + 1, name)
                    for _ in range(rng.randrange(3))
                }
            case "timestamp":
                return self._now + timedelta(seconds=rng.randrange(-7200, 600))
            case "boolean":
                return rng.random() < 0.5
            case "integer" | "long":
                least, most = int(shape.least or 0), int(min(shape.most or 10_000, 10_000))
                return rng.choice([least, most, rng.randint(min(least, most), max(least, most)), 60, 1])
            case "float" | "double":
                return rng.choice([0.0, 1.0, 1.5, 100.0])
            case "blob":
                return rng.choice([_ARCHIVE, b"{}", b"bytes", self.known(name) or b"x"])
            case _:
                return self._text(shape, name)

    def _text(self, shape: Shape, name: str) -> str:
        rng = self._rng
        if shape.enum:
            return rng.choice(shape.enum)
        known = self.known(name) if rng.random() < _KNOWN_SHARE else None
        if known is not None:
            return str(known)
        low = name.lower()
        for part, values in _GUESSES:
            if part in low:
                return str(rng.choice(values))
        return rng.choice(["a", "b1", "true", "1", "x" * max(1, int(shape.least or 1))])


def _archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr(zipfile.ZipInfo("index.py"), "def handler(event, context):\n    return event\n")
    return packed.getvalue()


_ARCHIVE: Final = _archive()
START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def first_steps() -> list[tuple[str, str, Mapping[str, Any]]]:
    """Calls that make something of most services: the beginning of a run."""
    queue = "arn:aws:sqs:us-east-1:000000000000:n1"
    stream = {"RoleARN": _ROLE, "BucketARN": "arn:aws:s3:::bucket1"}
    function = {"Runtime": "python3.11", "Handler": "index.handler", "Role": _ROLE}
    alarm = {
        "MetricName": "m1",
        "Namespace": "ns1",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": 1.0,
    }
    return [
        ("sqs", "CreateQueue", {"QueueName": "n1"}),
        ("sqs", "CreateQueue", {"QueueName": "n2.fifo", "Attributes": {"FifoQueue": "true"}}),
        ("sqs", "SendMessage", {"QueueUrl": "http://localhost/000000000000/n1", "MessageBody": "b"}),
        ("sqs", "ReceiveMessage", {"QueueUrl": "http://localhost/000000000000/n1"}),
        ("sns", "CreateTopic", {"Name": "n1"}),
        ("sns", "Subscribe", {"TopicArn": "arn:aws:sns:us-east-1:000000000000:n1", "Protocol": "sqs", "Endpoint": queue}),
        ("sns", "CreatePlatformApplication", {"Name": "p", "Platform": "GCM", "Attributes": {"PlatformCredential": "k"}}),
        ("sns", "Publish", {"TopicArn": "arn:aws:sns:us-east-1:000000000000:n1", "Message": "m"}),
        ("kms", "CreateKey", {}),
        ("kms", "CreateKey", {"KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY"}),
        ("kms", "GenerateRandom", {"NumberOfBytes": 8}),
        ("kms", "CreateAlias", {"AliasName": "alias/a"}),
        ("iam", "CreateUser", {"UserName": "u1"}),
        ("iam", "CreateRole", {"RoleName": "r", "AssumeRolePolicyDocument": _TRUST}),
        ("iam", "CreateGroup", {"GroupName": "g1"}),
        ("iam", "CreatePolicy", {"PolicyName": "p1", "PolicyDocument": _RIGHTS}),
        ("s3", "CreateBucket", {"Bucket": "bucket1"}),
        ("s3", "PutObject", {"Bucket": "bucket1", "Key": "k1", "Body": b"object"}),
        ("lambda", "CreateFunction", {"FunctionName": "f1", "Code": {"ZipFile": _ARCHIVE}, **function}),
        ("lambda", "PublishVersion", {"FunctionName": "f1"}),
        ("lambda", "CreateAlias", {"FunctionName": "f1", "Name": "a1", "FunctionVersion": "1"}),
        ("lambda", "CreateEventSourceMapping", {"FunctionName": "f1", "EventSourceArn": queue}),
        ("lambda", "PublishLayerVersion", {"LayerName": "l1", "Content": {"ZipFile": _ARCHIVE}}),
        ("logs", "CreateLogGroup", {"logGroupName": "/group/1"}),
        ("logs", "CreateLogStream", {"logGroupName": "/group/1", "logStreamName": "s1"}),
        ("cloudwatch", "PutMetricAlarm", {"AlarmName": "a1", **alarm}),
        ("firehose", "CreateDeliveryStream", {"DeliveryStreamName": "d1", "ExtendedS3DestinationConfiguration": stream}),
        ("ssm", "PutParameter", {"Name": "/p/1", "Value": "v", "Type": "SecureString"}),
        ("cloudformation", "CreateStack", {"StackName": "stack1", "TemplateBody": _TEMPLATE}),
        ("cloudformation", "CreateChangeSet", {"StackName": "stack1", "ChangeSetName": "c1", "TemplateBody": _TEMPLATE}),
        ("apigateway", "CreateRestApi", {"name": "rest", "tags": {"_custom_id_": "rental"}}),
        ("apigateway", "PutRestApi", {"restApiId": "rental", "mode": "overwrite", "body": _DEFINITION}),
        ("apigateway", "CreateDeployment", {"restApiId": "rental", "stageName": "prod"}),
        ("apigateway", "GetResources", {"restApiId": "rental"}),
        ("apigateway", "GetRestApis", {}),
        ("apigateway", "CreateApiKey", {"name": "key"}),
        ("apigateway", "CreateUsagePlan", {"name": "plan"}),
        ("apigatewayv2", "CreateApi", {"Name": "http", "ProtocolType": "HTTP", "Target": "http://127.0.0.1:9/"}),
    ]  # fmt: skip
