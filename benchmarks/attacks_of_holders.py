"""Attacks of key holders by texts that are small programs: templates, models, queries, filters, expressions, policies."""

import itertools
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from benchmarks.attacks import Attack, Holder

_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_METRICS: Final = "GraniteServiceVersion20100801"
_numbers: Final = itertools.count()


def _form(holder: Holder, service: str, version: str, **fields: str) -> bytes:
    return holder.signed(service, urlencode({"Version": version, **fields}).encode(), _FORM)


def _json(holder: Holder, service: str, target: str, document: Any) -> bytes:
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target}
    return holder.signed(service, json.dumps(document).encode(), headers)


def _name() -> str:
    return f"hostile-{next(_numbers)}"


# ---- templates of stacks ---------------------------------------------------------------------------------------------


def _sub(text: str, **variables: Any) -> Any:
    return {"Fn::Sub": [text, variables]}


_FAR: Final = {"Fn::FindInMap": ["M", "a", "b"]}
_MAPPING: Final = {"M": {"a": {"b": "x" * 40_000}}}
_LOOP: Final = {
    "Fn::ForEach::A": [
        "A",
        [str(number) for number in range(60)],
        {
            "Fn::ForEach::B": [
                "B",
                [str(number) for number in range(60)],
                {"Q${A}x${B}": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "${A}${B}" * 3_000}}},
            ]
        },
    ]
}


def _template(value: Any, **sections: Any) -> str:
    resources = {
        "Q": {"Type": "AWS::SQS::Queue"},
        "P": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}},
    }
    return json.dumps({"Resources": resources, **sections})


def _aliases(count: int, text: str) -> str:
    items = "\n".join("        - *t" for _ in range(count))
    return (
        f"Transform: AWS::LanguageExtensions\nMetadata:\n  t: &t '{text}'\nResources:\n  Q:\n    Type: AWS::SQS::Queue\n"
        f"    Properties:\n      V:\n{items}"
    )


TEMPLATES: Final[Mapping[str, str]] = {
    "Fn::Sub of a long text": _template(_sub("${A}" * 2_000, A=_FAR), Mappings=_MAPPING),
    "Fn::Join of a long text": _template({"Fn::Join": ["", [_FAR] * 300]}, Mappings=_MAPPING),
    "aliases of a long text": _aliases(2_000, "x" * 20_000),
    "Fn::ForEach within Fn::ForEach": json.dumps(
        {"Transform": "AWS::LanguageExtensions", "Resources": _LOOP}
    ),
}
#: Its text is made when the queue is there.
LATE_TEMPLATE: Final = _template(
    _sub("${A}" * 6_000, A=_sub("${A}" * 70, A=_sub("${A}" * 300, A={"Fn::GetAtt": ["Q", "Arn"]})))
)


def _stack(holder: Holder, template: str) -> bytes:
    return _form(
        holder, "cloudformation", "2010-05-15", Action="CreateStack", StackName=_name(), TemplateBody=template
    )


def _templates(holder: Holder) -> Attack:
    return Attack([_stack(holder, template) for template in (*TEMPLATES.values(), LATE_TEMPLATE)])


# ---- policies --------------------------------------------------------------------------------------------------------

_POLICY: Final = '{"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'


def simulation(holder: Holder, names: int, policy: str = _POLICY) -> bytes:
    """A simulation of so many actions on as many resources."""
    actions = {f"ActionNames.member.{n}": f"s3:Get{n}" for n in range(1, names + 1)}
    resources = {f"ResourceArns.member.{n}": f"arn:{n}" for n in range(1, names + 1)}
    policies = {"PolicyInputList.member.1": policy}
    return _form(
        holder, "iam", "2010-05-08", Action="SimulateCustomPolicy", **actions, **resources, **policies
    )


def _simulations(holder: Holder) -> Attack:
    resources = [f"arn:aws:s3:::{'a' * 50}*{n}" for n in range(400)]
    policy = json.dumps({"Statement": [{"Effect": "Allow", "Action": "*", "Resource": resources}]})
    return Attack([simulation(holder, 140), simulation(holder, 2_000), simulation(holder, 900, policy)])


# ---- APIs ------------------------------------------------------------------------------------------------------------


def api(holder: Holder, *, schema: Any = None, template: str = "{}") -> str:
    """The path of a method that anybody may call, which checks bodies against a schema, or renders a template."""
    client = holder.client("apigateway")
    made = client.create_rest_api(name=_name())
    where = {"restApiId": made["id"], "resourceId": made["rootResourceId"], "httpMethod": "POST"}
    method: dict[str, Any] = {"authorizationType": "NONE"}
    if schema is not None:
        client.create_model(
            restApiId=made["id"], name="Body", contentType="application/json", schema=json.dumps(schema)
        )
        validator = client.create_request_validator(
            restApiId=made["id"], name="body", validateRequestBody=True
        )["id"]
        method |= {"requestValidatorId": validator, "requestModels": {"application/json": "Body"}}
    client.put_method(**where, **method)
    answers = '{"statusCode": 200}'
    integration = {
        "type": "MOCK",
        "requestTemplates": {"application/json": template if schema is None else answers},
    }
    client.put_integration(**where, **integration)
    client.put_method_response(**where, statusCode="200")
    client.put_integration_response(**where, statusCode="200")
    client.create_deployment(restApiId=made["id"], stageName="s")
    return f"/restapis/{made['id']}/s/_user_request_/"


def posted(holder: Holder, path: str, body: bytes) -> bytes:
    """A request to an API, with a credential of anybody's own making, which lets large bodies in."""
    headers = {"Content-Type": "application/json", "Authorization": "any"}
    return holder.plain(body, headers, path=path)


def _models(holder: Holder) -> Attack:
    numbers = api(holder, schema={"items": {"enum": list(range(15_000))}})
    patterns: dict[str, Any] = {"patternProperties": {f"^n{number}[a-z]*x": {} for number in range(300)}}
    names = json.dumps({f"name{number}": 1 for number in range(18_000)}).encode()
    required = {"items": {"not": {"required": [f"n{number}" for number in range(5_000)]}}}
    return Attack(
        [
            posted(holder, numbers, json.dumps([14_999] * 60_000).encode()),
            posted(holder, api(holder, schema=patterns), names),
            posted(holder, api(holder, schema=required), b"[" + b",".join([b"{}"] * 5_000) + b"]"),
        ]
    )


def _mapping_templates(holder: Holder) -> Attack:
    body = "a" * 400_000
    part = "$input.body.lastIndexOf($input.body.substring(0, 200000).replaceFirst('a', 'b'))"
    copies = "#set($l = [])#foreach($i in [1..3000])#set($x = $l.add($input.body))#end$l"
    return Attack(
        [
            posted(holder, api(holder, template=text), body.encode())
            for text in (part, copies, "$input.body.matches('(a|b){500}')")
        ]
    )


def _definitions(holder: Holder) -> Attack:
    number_of_base_60 = "1:" * 250_000 + "1"
    text = f"openapi: 3.0.0\ninfo: {{title: a}}\npaths: {{}}\na: {number_of_base_60}"
    headers = {"Content-Type": "application/yaml"}
    return Attack([holder.signed("apigateway", text.encode(), headers, "/restapis?mode=import")])


# ---- keys ------------------------------------------------------------------------------------------------------------


def _rsa(holder: Holder) -> Attack:
    key = holder.client("kms").create_key(KeySpec="RSA_4096", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
    sign = {"KeyId": key, "Message": "bQ==", "SigningAlgorithm": "RSASSA_PSS_SHA_256"}
    wrapping = holder.client("kms").create_key()["KeyMetadata"]["KeyId"]
    pair = {"KeyId": wrapping, "KeyPairSpec": "RSA_4096"}
    return Attack(
        [
            _json(holder, "kms", "TrentService.Sign", sign),
            _json(holder, "kms", "TrentService.GenerateDataKeyPair", pair),
        ]
    )


# ---- logs and metrics ------------------------------------------------------------------------------------------------


def log_group(holder: Holder, events: int, filters: int = 0) -> tuple[str, bytes]:
    """A group with so many events and filters, and a request that puts 5,500 events into it."""
    client, name = holder.client("logs"), _name()
    client.create_log_group(logGroupName=name)
    client.create_log_stream(logGroupName=name, logStreamName="s")
    now = int(time.time() * 1000)
    words = " ".join(f"w{number}" for number in range(40))
    made = [{"timestamp": now, "message": words} for _ in range(5_500)]
    for _ in range(0, events, len(made)):
        client.put_log_events(logGroupName=name, logStreamName="s", logEvents=made)
    for number in range(filters):
        metric = {"metricName": f"m{number}", "metricNamespace": "n", "metricValue": "1"}
        client.put_metric_filter(
            logGroupName=name, filterName=f"f{number}", filterPattern=words, metricTransformations=[metric]
        )
    document = {"logGroupName": name, "logStreamName": "s", "logEvents": made}
    return name, _json(holder, "logs", "Logs_20140328.PutLogEvents", document)


def query(holder: Holder, group: str, text: str) -> bytes:
    """A query of Insights on the last hour."""
    now = int(time.time())
    document = {"logGroupName": group, "startTime": now - 3600, "endTime": now + 60, "queryString": text}
    return _json(holder, "logs", "Logs_20140328.StartQuery", document)


def _queries(holder: Holder) -> Attack:
    group, _ = log_group(holder, 36_000)
    sums = "fields " + "+".join(["a"] * 3_000)
    doubling = "fields concat(@message, @message) as a0"
    doubling += "".join(f" | fields concat(a{n}, a{n}) as a{n + 1}" for n in range(30))
    return Attack([query(holder, group, sums), query(holder, group, doubling)])


def _log_filters(holder: Holder) -> Attack:
    _, put = log_group(holder, 0, filters=60)
    return Attack([put])


def _metric_math(holder: Holder) -> Attack:
    end = int(time.time())
    metrics = [
        {
            "Id": f"m{number}",
            "MetricStat": {
                "Metric": {"Namespace": "AWS/SQS", "MetricName": "NumberOfMessagesSent", "Dimensions": []},
                "Period": 60,
                "Stat": "Sum",
            },
            "ReturnData": False,
        }
        for number in range(200)
    ]
    fills = [{"Id": f"e{number}", "Expression": f"FILL(m{number}, 0)"} for number in range(200)]
    document = {"StartTime": end - 14 * 86_400, "EndTime": end, "MetricDataQueries": metrics + fills}
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"{_METRICS}.GetMetricData",
    }
    return Attack([holder.signed("monitoring", json.dumps(document).encode(), headers)])


ATTACKS_OF_HOLDERS: Final[dict[str, Callable[[Holder], Attack]]] = {
    f"costly {name}": make
    for name, make in (
        ("templates of stacks", _templates),
        ("simulations of policies", _simulations),
        ("models of APIs", _models),
        ("mapping templates", _mapping_templates),
        ("definitions of APIs", _definitions),
        ("RSA keys", _rsa),
        ("queries of logs", _queries),
        ("filters of logs", _log_filters),
        ("expressions on metrics", _metric_math),
    )
}
"""By name, what makes the attack ready on an empty server."""
