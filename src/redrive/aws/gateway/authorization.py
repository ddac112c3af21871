"""Authorisation by callers' own policies, of operations about which no resource's policy is asked.

A facade asks the policy of a resource that it finds, and the caller's own with it (`Call.may`). All else is asked here,
before the facade is called: whatever stands in no table below needs a policy that allows it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from redrive.access.patterns import Values
from redrive.aws.gateway.identities import Identities
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
#: Parameters that pass a role on, by service and operation, and the service that acts as the role.
_PASSED: Final = {
    ("lambda", "CreateFunction"): ("Role", "lambda.amazonaws.com"),
    ("lambda", "UpdateFunctionConfiguration"): ("Role", "lambda.amazonaws.com"),
    ("logs", "PutSubscriptionFilter"): ("roleArn", "logs.amazonaws.com"),
    ("apigateway", "PutIntegration"): ("credentials", "apigateway.amazonaws.com"),
    ("apigatewayv2", "CreateIntegration"): ("CredentialsArn", "apigateway.amazonaws.com"),
    ("apigatewayv2", "UpdateIntegration"): ("CredentialsArn", "apigateway.amazonaws.com"),
    ("cloudformation", "CreateStack"): ("RoleARN", "cloudformation.amazonaws.com"),
    ("cloudformation", "UpdateStack"): ("RoleARN", "cloudformation.amazonaws.com"),
    ("cloudformation", "DeleteStack"): ("RoleARN", "cloudformation.amazonaws.com"),
    ("cloudformation", "CreateChangeSet"): ("RoleARN", "cloudformation.amazonaws.com"),
    ("firehose", "CreateDeliveryStream"): ("RoleARN", "firehose.amazonaws.com"),
    ("firehose", "UpdateDestination"): ("RoleARN", "firehose.amazonaws.com"),
}

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
        _check(call, service, f"{prefix}:{name}", arn)
    passed = _PASSED.get((service, operation))
    if passed is not None:
        for role in _roles(params, passed[0]):
            _check(call, service, "iam:PassRole", role, {"iam:passedtoservice": passed[1]})


def _roles(params: Structure, member: str) -> Iterator[str]:
    """The roles that a parameter passes on, be it one of a structure's: of a destination."""
    for name, value in params.items():
        if name == member and value:
            yield value
        elif isinstance(value, Mapping) and value.get(member):
            yield value[member]


def _check(call: Call, service: str, action: str, arn: str, keys: Mapping[str, Values] = _NO_KEYS) -> None:
    decision = call.decide(action, arn, call.account, keys=keys)
    if not decision.allowed:
        reason = decision.reason(action)
        text = (
            f"User: {call.principal.name} is not authorized to perform: {action} on resource: {arn} {reason}"
        )
        raise _denied(service, text)


def _denied(service: str, text: str) -> AwsError:
    if service == "s3":
        return AwsError("AccessDenied", text, status=403)
    return Service.load(service).error(_CODES.get(service, "AccessDeniedException"), text)


_CODES: Final = {"sns": "AuthorizationError"}
#: The services whose actions are methods of HTTP, and whose resources are paths.
_BY_METHOD: Final = frozenset({"apigateway", "apigatewayv2"})


async def check_given_role(
    call: Call, identities: Identities, service: str, operation: str, params: Structure
) -> None:
    """Refuse a role that Lambda cannot act as: it does not trust Lambda, or is not there though others are.

    Raises:
        AwsError: `InvalidParameterValueException`.
    """
    if service != "lambda" or (service, operation) not in _PASSED or not params.get("Role"):
        return
    arn: str = params["Role"]
    if arn.split(":")[4] != call.account:
        raise Service.load("lambda").error("AccessDeniedException", "Cross-account pass role is not allowed.")
    role = await identities.role(arn)
    if role is None:
        account = arn.split(":")[4]
        trusted = call.principal.permissions is None and not await identities.has_any(account)
    else:
        trusted = identities.trusts(role, "lambda", call.region)
    if not trusted:
        raise Service.load("lambda").error(
            "InvalidParameterValueException",
            "The role defined for the function cannot be assumed by Lambda.",
        )


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
