"""Profiles of services: facts that their published models do not state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from redrive.aws.wire import sqs_names as sqs_query
from redrive.aws.wire.errors import AwsError, ErrorKind
from redrive.aws.wire.shapes import Raw
from redrive.aws.wire.timestamps import FRACTIONAL_SECONDS
from redrive.aws.wire.validation import CoralSpelling, FlattenedSpelling, Spelling
from redrive.aws.wire.violations import Violation, ViolationKind, coral_error, logs_error, s3_error, sqs_error


def _as_published(shapes: Raw) -> Raw:
    return shapes


def _with_unsubscribe_links(shapes: Raw) -> Raw:
    """Links that unsubscribe have a token besides, which is not in the model.

    And SNS words a missing subscription differently from any other required parameter (recorded).
    """
    published = shapes["UnsubscribeInput"]
    members = {**published["members"], "Token": shapes["ConfirmSubscriptionInput"]["members"]["Token"]}
    changed = shapes[
        "SetPlatformApplicationAttributesInput"
    ]  # the ARN is looked at before the attributes (recorded)
    return {
        **shapes,
        "UnsubscribeInput": {**published, "required": [], "members": members},
        "SetPlatformApplicationAttributesInput": {**changed, "required": ["PlatformApplicationArn"]},
    }


def _with_colons(shapes: Raw) -> Raw:
    """Logs takes colons in the namespaces of metrics, which the model refuses (recorded)."""
    return {**shapes, "MetricNamespace": {**shapes["MetricNamespace"], "pattern": "[^*$]*"}}


def _with_any_runtime(shapes: Raw) -> Raw:
    """Lambda words a runtime that it does not know by itself, and new ones come between two models."""
    runtime = {name: value for name, value in shapes["Runtime"].items() if name != "enum"}
    known = {
        name: _with_member(shapes[name], "CompatibleRuntime", "KnownRuntime")
        for name in ("ListLayersRequest", "ListLayerVersionsRequest")
    }
    return {**shapes, **known, "Runtime": runtime, "KnownRuntime": shapes["Runtime"]}


def _with_member(structure: Raw, name: str, shape: str) -> Raw:
    """A structure of which a member has another shape."""
    members = {**structure["members"], name: {**structure["members"][name], "shape": shape}}
    return {**structure, "members": members}


#: Recorded; the models' are older or newer.
_TAGGABLE: Final = (
    r"arn:(aws[a-zA-Z-]*):lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:"
    r"(function:[a-zA-Z0-9-_]+(:(\$LATEST|[a-zA-Z0-9-_]+))?|layer:([a-zA-Z0-9-_]+)"
    r"|code-signing-config:csc-[a-z0-9]{17}"
    r"|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|capacity-provider:[a-zA-Z0-9-_]+)"
)
_LAYER_VERSION: Final = (
    r"(arn:(aws[a-zA-Z-]*)?:lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:"
    r"layer:[a-zA-Z0-9-_]+:[0-9]+)|(arn:[a-zA-Z0-9-]+:lambda:::awslayer:[a-zA-Z0-9-_]+)"
)


def _as_lambda_prints(shapes: Raw) -> Raw:
    """Lambda's patterns, enumerations and rules against null, as its refusals print them (recorded)."""
    nulls = {
        name: {**shapes[name], "namesNull": True}
        for name in ("ArchitecturesList", "LayerList", "AdditionalVersionWeights")
    }
    patterns = {
        "TaggableResource": {**shapes["TaggableResource"], "pattern": _TAGGABLE},
        "LayerVersionArn": {**shapes["LayerVersionArn"], "pattern": _LAYER_VERSION},
    }
    printed = {**shapes, **nulls, **patterns}
    return _with_any_runtime(_in_order(RecursiveLoop=("Terminate", "Allow"))(printed))


def _in_order(**orders: tuple[str, ...]) -> Callable[[Raw], Raw]:
    """The models' enumerations in the order in which refusals print them, a hash table's (recorded)."""

    def amended(shapes: Raw) -> Raw:
        ordered = {
            name: {**shapes[name], "enum": sorted(shapes[name]["enum"], key=order.index)}
            for name, order in orders.items()
        }
        return {**shapes, **ordered}

    return amended


def _with_fractions(shapes: Raw) -> Raw:
    """CloudWatch prints moments in JSON as numbers with a fraction, also where that is nothing (recorded)."""
    moments = {
        name: {**shape, "timestampFormat": FRACTIONAL_SECONDS}
        for name, shape in shapes.items()
        if shape["type"] == "timestamp"
    }
    return _in_order(StateValue=("INSUFFICIENT_DATA", "ALARM", "OK"))({**shapes, **moments})


_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Profile:
    """One service on the wire.

    Attributes:
        name: Botocore's name of the service and of its model.
        endpoint_prefix: The service's name in host names and in a signature's credential scope.
        api_version: What query requests give as `Version`, where they give it.
        protocols: Those of its protocols that Redrive recognises: `json`, `query`, `rest-json`, `rest-xml`,
            `smithy-rpc-v2-cbor`.
        target_prefix: What stands before the operation in `X-Amz-Target`.
        json_namespace: The Smithy namespace of its errors in `__type`; services that speak JSON 1.1 print none.
        xml_namespace: Of its query answers, where the model gives none.
        xml_declaration: What its query answers begin with.
        error_detail: Whether its query errors end in an empty `Detail`.
        checks: The kinds of constraint its model decides; the facade answers the others.
        spelling: How it spells the path to a value.
        names_input: Whether paths begin with the name of the operation's input: `updateRestApiInput`.
        violated: Makes its error of what was violated, of which there is at least one.
        errors: Errors its model does not list, or lists without their codes.
        bad_requests_alone: Whether JSON and CBOR answer every fault of the caller by 400, unless it asks for the statuses
            of Query (`x-amzn-query-mode: true`).
        amended: Returns the model's shapes with what was taken out of them put back, or left to the facade.
        answer_names: Members the JSON form of a query answer calls otherwise.
        path_member: The parameter a query request may leave to its URL.
        unknown_action: The query text for an `{action}` it does not have in this `{version}`.
        unsigned: Operations that may be called without a signature.
        body_bytes_max: The largest body of its requests, compressed or not.
        values_max: How many objects, lists and elements a JSON body may hold.
        fields_max: How many fields a form may have.
        takes_gzip: Whether its clients compress.
        keeps_coding: Whether a content coding belongs to what is sent, and is no matter of the wire.
        large_answers: Operations whose answers may take 0.3 s to write: they are written beside the event loop.
    """

    name: str
    endpoint_prefix: str
    api_version: str
    protocols: frozenset[str]
    target_prefix: str = ""
    json_namespace: str = ""
    xml_namespace: str = ""
    xml_declaration: str = ""
    error_detail: bool = False
    checks: frozenset[ViolationKind] = frozenset(ViolationKind)
    spelling: Spelling = field(default_factory=CoralSpelling)
    names_input: bool = False
    violated: Callable[[Sequence[Violation]], AwsError] = coral_error
    errors: tuple[ErrorKind, ...] = ()
    amended: Callable[[Raw], Raw] = _as_published
    answer_names: Mapping[str, str] = field(default_factory=dict)
    path_member: str = ""
    unknown_action: str = "Could not find operation {action} for version {version}"
    bad_requests_alone: bool = False
    unsigned: frozenset[str] = frozenset()
    body_bytes_max: int = _MIB
    values_max: int = 4096
    fields_max: int = 4096
    takes_gzip: bool = False
    keeps_coding: bool = False
    large_answers: frozenset[str] = frozenset()


_JSON: Final = frozenset({"json"})
_QUERY: Final = frozenset({"query"})
_REST_JSON: Final = frozenset({"rest-json"})

_SQS: Final = Profile(
    name="sqs",
    endpoint_prefix="sqs",
    api_version="2012-11-05",
    protocols=_JSON | _QUERY,
    target_prefix="AmazonSQS",
    json_namespace="com.amazonaws.sqs",
    xml_namespace="http://queue.amazonaws.com/doc/2012-11-05/",
    xml_declaration='<?xml version="1.0"?>',
    error_detail=True,
    checks=frozenset({ViolationKind.REQUIRED}),  # SQS words every other violation by itself
    spelling=FlattenedSpelling(),
    violated=sqs_error,
    errors=sqs_query.ERRORS,
    amended=sqs_query.with_query_names,
    answer_names=sqs_query.ANSWER_NAMES,
    path_member="QueueUrl",
    unknown_action="The action {action} is not valid for this endpoint.",
    # A mebibyte of messages, of which escapes in JSON and in forms make three at most, and what is around them.
    body_bytes_max=3 * _MIB + _MIB // 4,
)

#: Every service Redrive recognises, by botocore's name.
PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        _SQS,
        Profile(
            name="sns",
            endpoint_prefix="sns",
            api_version="2010-03-31",
            protocols=_QUERY,
            amended=_with_unsubscribe_links,
            unsigned=frozenset({"ConfirmSubscription", "Unsubscribe"}),  # links in its messages
            body_bytes_max=_MIB,  # 256 KiB of messages, escaped
        ),
        Profile(
            name="cloudwatch",
            endpoint_prefix="monitoring",
            api_version="2010-08-01",
            protocols=_JSON | _QUERY | {"smithy-rpc-v2-cbor"},
            target_prefix="GraniteServiceVersion20100801",
            json_namespace="com.amazonaws.cloudwatch.v2010_08_01",
            amended=_with_fractions,
            bad_requests_alone=True,
            body_bytes_max=_MIB + _MIB // 16,  # PutMetricData takes 1 MB, of it 1,000 metrics of 300 numbers
            values_max=400_000,
            fields_max=32_768,  # a megabyte of PutMetricData's shortest
            large_answers=frozenset({"GetMetricData"}),
            takes_gzip=True,
        ),
        Profile(
            name="logs",
            endpoint_prefix="logs",
            api_version="2014-03-28",
            protocols=_JSON,
            target_prefix="Logs_20140328",
            violated=logs_error,
            amended=_with_colons,
            # PutLogEvents takes 10,000 events of a mebibyte, escaped, with names around them.
            body_bytes_max=4 * _MIB,
            values_max=50_000,
        ),
        Profile(
            "kms",
            "kms",
            "2014-11-01",
            _JSON,
            "TrentService",
            amended=_in_order(
                MacAlgorithmSpec=("HMAC_SHA_384", "HMAC_SHA_256", "HMAC_SHA_224", "HMAC_SHA_512")
            ),
        ),
        Profile(
            name="firehose",
            endpoint_prefix="firehose",
            api_version="2015-08-04",
            protocols=_JSON,
            target_prefix="Firehose_20150804",
            body_bytes_max=6 * _MIB,  # PutRecordBatch takes 4 MiB in 500 records, in base 64
        ),
        # A function's code comes in the body; the front's own bound is lower than Lambda's.
        Profile(
            name="lambda",
            endpoint_prefix="lambda",
            api_version="2015-03-31",
            protocols=_REST_JSON,
            amended=_as_lambda_prints,
            body_bytes_max=16 * _MIB,
        ),
        # A definition in OpenAPI comes in the body.
        Profile(
            name="apigateway",
            endpoint_prefix="apigateway",
            api_version="2015-07-09",
            protocols=_REST_JSON,
            names_input=True,
            amended=_in_order(
                Op=("add", "remove", "move", "test", "replace", "copy"),
                IntegrationType=("HTTP", "MOCK", "AWS_PROXY", "HTTP_PROXY", "AWS"),
                EndpointType=("PRIVATE", "EDGE", "REGIONAL"),
            ),
            body_bytes_max=6 * _MIB,
        ),
        Profile(
            name="apigatewayv2",
            endpoint_prefix="apigateway",
            api_version="2018-11-29",
            protocols=_REST_JSON,
            body_bytes_max=6 * _MIB,
        ),
        Profile("ssm", "ssm", "2014-11-06", _JSON, "AmazonSSM"),
        Profile("cloudformation", "cloudformation", "2010-05-15", _QUERY),
        Profile(
            name="s3",
            endpoint_prefix="s3",
            api_version="2006-03-01",
            protocols=frozenset({"rest-xml"}),
            xml_namespace="http://s3.amazonaws.com/doc/2006-03-01/",
            checks=frozenset({ViolationKind.REQUIRED}),  # S3 words every other violation by itself
            violated=s3_error,
            body_bytes_max=16 * _MIB,  # as the front's own bound
            keeps_coding=True,
        ),
        Profile(
            "iam",
            "iam",
            "2010-05-08",
            _QUERY,
            large_answers=frozenset({"SimulateCustomPolicy", "SimulatePrincipalPolicy"}),
        ),
        Profile("sts", "sts", "2011-06-15", _QUERY),
    )
}
