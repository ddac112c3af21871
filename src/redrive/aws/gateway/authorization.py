"""Authorisation by callers' own policies, of operations about which no resource's policy is asked.

A facade asks the policy of a resource that it finds, and the caller's own with it (`Call.may`). All else is asked here,
before the facade is called: whatever stands in no table below needs a policy that allows it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from redrive.access.patterns import Values
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Structure

_ANY: Final = "*"
_NO_KEYS: Final[Mapping[str, Values]] = {}

#: Asked by the facade, of the topic's policy and the caller's; `Publish` to devices and telephones is asked here.
_OF_TOPICS: Final = frozenset(
    {
        *("AddPermission", "ConfirmSubscription", "DeleteTopic", "GetDataProtectionPolicy"),
        *("GetTopicAttributes", "ListSubscriptionsByTopic", "ListTagsForResource", "Publish"),
        *("PublishBatch", "PutDataProtectionPolicy", "RemovePermission", "SetTopicAttributes", "Subscribe"),
        *("TagResource", "UntagResource"),
    }
)
#: Of functions there is nothing yet that could have a policy, or more than one function.
_OF_NO_FUNCTION: Final = frozenset({"CreateFunction", "CreateEventSourceMapping", "ListEventSourceMappings"})
#: Asked by the facade, of the policy of a layer's version and the caller's.
_OF_LAYERS: Final = frozenset(
    {
        *("AddLayerVersionPermission", "GetLayerVersion", "GetLayerVersionByArn", "GetLayerVersionPolicy"),
        "RemoveLayerVersionPermission",
    }
)
_OF_NO_QUEUE: Final = frozenset({"CreateQueue", "ListQueues"})
_OF_NO_BUCKET: Final = {"CreateBucket": "CreateBucket", "ListBuckets": "ListAllMyBuckets"}
_OF_NO_KEY: Final = frozenset(
    {"CreateKey", "GenerateRandom", "ListAliases", "ListKeys", "ListRetirableGrants"}
)
#: What every caller may ask, and what is asked of a role's trust.
_OF_CALLERS: Final = frozenset(
    {"AssumeRole", "DecodeAuthorizationMessage", "GetCallerIdentity", "GetSessionToken"}
)
Resources = Callable[[Call, str, Structure], Iterable[str]]


def check_own_policies(call: Call, service: str, operation: str, params: Structure) -> None:
    """Refuse a user or a role what its own policies do not allow, unless the facade asks about it.

    Args:
        call: The call.
        service: Botocore's name of the service.
        operation: Of it.
        params: Its parameters, checked.

    Raises:
        AwsError: The service's own for a caller without permission.
    """
    if call.principal.permissions is None:
        return
    prefix, name = _action(call, service, operation)
    for arn in _RESOURCES.get(service, _guessed)(call, operation, params):
        check_action(call, service, f"{prefix}:{name}", arn)


def check_action(
    call: Call, service: str, action: str, arn: str, keys: Mapping[str, Values] = _NO_KEYS
) -> None:
    """Refuse a caller whose own policies do not allow an action.

    Args:
        call: The caller's.
        service: Whose error it is.
        action: `iam:PassRole`.
        arn: Of what the action is about, which is the caller's account's.
        keys: The condition keys that the action has of its own.

    Raises:
        AwsError: The service's own for a caller without permission.
    """
    decision = call.decide(action, arn, call.account, keys=keys)
    if not decision.allowed:
        reason = decision.reason(action)
        text = (
            f"User: {call.principal.name} is not authorized to perform: {action} on resource: {arn} {reason}"
        )
        raise denied(service, text)


def denied(service: str, text: str) -> AwsError:
    """A service's own error for a caller without permission."""
    if service == "s3":
        return AwsError("AccessDenied", text, status=403)
    return Service.load(service).error(_CODES.get(service, "AccessDeniedException"), text)


_CODES: Final = {"sns": "AuthorizationError"}
#: The services whose actions are methods of HTTP, and whose resources are paths.
_BY_METHOD: Final = frozenset({"apigateway", "apigatewayv2"})


def _action(call: Call, service: str, operation: str) -> tuple[str, str]:
    if service in _BY_METHOD:
        return "apigateway", call.request.method
    if service == "s3":
        return service, _OF_NO_BUCKET.get(operation, operation)
    return service, operation


# ---- what an operation is about -----------------------------------------------------------------------------------


def _queues(call: Call, operation: str, params: Structure) -> Iterable[str]:
    if operation in _OF_NO_QUEUE:
        yield f"arn:aws:sqs:{call.region}:{call.account}:{params.get('QueueName', _ANY)}"


def _topics(call: Call, operation: str, params: Structure) -> Iterable[str]:
    own = f"arn:aws:sns:{call.region}:{call.account}"
    if operation == "Publish" and ("PhoneNumber" in params or ":endpoint/" in params.get("TargetArn", "")):
        yield params.get("TargetArn") or _ANY
    elif operation == "CreateTopic":
        yield f"{own}:{params['Name']}"
    elif operation not in _OF_TOPICS:
        yield next(_arns(params), f"{own}:{_ANY}")


def _functions(call: Call, operation: str, params: Structure) -> Iterable[str]:
    own = f"arn:aws:lambda:{call.region}:{call.account}"
    if operation == "CreateFunction":
        name = params["FunctionName"]
        yield name if name.startswith("arn:") else f"{own}:function:{name.rpartition(':')[2]}"
    elif operation in _OF_LAYERS:
        return
    elif "LayerName" in params:
        name, number = params["LayerName"], params.get("VersionNumber")
        layer = name if name.startswith("arn:") else f"{own}:layer:{name}"
        yield layer if number is None else f"{layer}:{number}"
    elif "UUID" in params:
        yield f"{own}:event-source-mapping:{params['UUID']}"
    elif operation in _OF_NO_FUNCTION or not {"FunctionName", "Resource"} & params.keys():
        yield _ANY


def _buckets(_: Call, operation: str, params: Structure) -> Iterable[str]:
    if operation in _OF_NO_BUCKET:
        yield f"arn:aws:s3:::{params.get('Bucket', _ANY)}"


def _keys(call: Call, operation: str, params: Structure) -> Iterable[str]:
    if "AliasName" in params:
        yield f"arn:aws:kms:{call.region}:{call.account}:{params['AliasName']}"
    elif operation in _OF_NO_KEY:
        yield _ANY


def _delivery_streams(call: Call, _: str, params: Structure) -> Iterable[str]:
    name = params.get("DeliveryStreamName", _ANY)
    yield f"arn:aws:firehose:{call.region}:{call.account}:deliverystream/{name}"


def _alarms(call: Call, _: str, params: Structure) -> Iterable[str]:
    names = params.get("AlarmNames") or ([params["AlarmName"]] if params.get("AlarmName") else [])
    own = f"arn:aws:cloudwatch:{call.region}:{call.account}:alarm"
    yield from [f"{own}:{name}" for name in names] or [next(_arns(params), _ANY)]


def _log_groups(call: Call, _: str, params: Structure) -> Iterable[str]:
    own = f"arn:aws:logs:{call.region}:{call.account}:log-group"
    name = params.get("logGroupName")
    if several := params.get("logGroupIdentifiers"):
        yield from (each if each.startswith("arn:") else f"{own}:{each}:log-stream:" for each in several)
    elif name:
        yield f"{own}:{name}:log-stream:{params.get('logStreamName', '')}"
    else:
        yield next(_arns(params), f"{own}:{_ANY}:log-stream:")


def _callers(_: Call, operation: str, __: Structure) -> Iterable[str]:
    if operation not in _OF_CALLERS:
        yield _ANY


def _asked_by_itself(_: Call, __: str, ___: Structure) -> Iterable[str]:
    """Nothing: the facade finds out what an operation is about, and asks."""
    return ()


def _paths(call: Call, _: str, __: Structure) -> Iterable[str]:
    yield f"arn:aws:apigateway:{call.region}::{call.request.path}"


def _guessed(_: Call, __: str, params: Structure) -> Iterable[str]:
    yield next(_arns(params), _ANY)


def _arns(params: Structure) -> Iterator[str]:
    """The parameters that are ARNs."""
    return (value for value in params.values() if isinstance(value, str) and value.startswith("arn:"))


_RESOURCES: Final[Mapping[str, Resources]] = {
    "apigateway": _paths,
    "apigatewayv2": _paths,
    "cloudwatch": _alarms,
    "firehose": _delivery_streams,
    "iam": _asked_by_itself,
    "kms": _keys,
    "lambda": _functions,
    "logs": _log_groups,
    "s3": _buckets,
    "sns": _topics,
    "sqs": _queues,
    "sts": _callers,
}
