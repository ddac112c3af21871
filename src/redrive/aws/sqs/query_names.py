"""The wire names of SQS's query protocol, which its published model dropped when SQS moved to JSON.

Older SDKs, API Gateway and people with curl still speak it. The names are those of API version 2012-11-05: every
list and map is flattened, lists stand under the singular of their name, maps have `Name` and `Value`, tags `Key`
and `Value`. Members that came after the move to JSON follow the same rule.
"""

from typing import Final

from redrive.aws.wire.errors import ErrorKind
from redrive.aws.wire.shapes import Raw

#: What a list's elements are called. Lists not named here are called after their element's shape.
_ELEMENT_NAMES: Final = {
    "AWSAccountIdList": "AWSAccountId",
    "ActionNameList": "ActionName",
    "AttributeNameList": "AttributeName",
    "BinaryList": "BinaryListValue",
    "MessageAttributeNameList": "MessageAttributeName",
    "MessageSystemAttributeList": "MessageSystemAttributeName",
    "QueueUrlList": "QueueUrl",
    "StringList": "StringListValue",
    "TagKeyList": "TagKey",
}

#: What a map's keys are called. Maps not named here say `Name`.
_KEY_NAMES: Final = {"TagMap": "Key"}

#: What a structure's members of these shapes are called. Other members keep their names.
_MEMBER_NAMES: Final = {
    "QueueAttributeMap": "Attribute",
    "MessageSystemAttributeMap": "Attribute",
    "MessageBodyAttributeMap": "MessageAttribute",
    "MessageBodySystemAttributeMap": "MessageSystemAttribute",
    "TagMap": "Tag",
}

#: Members that the JSON form of a query answer calls otherwise (recorded from real answers).
ANSWER_NAMES: Final = {"QueueUrls": "queueUrls", "Messages": "messages"}

_PREFIX: Final = "AWS.SimpleQueueService."

#: Codes, statuses and the errors themselves that the published model no longer states or never did.
ERRORS: Final = (
    ErrorKind("QueueDoesNotExist", f"{_PREFIX}NonExistentQueue"),
    ErrorKind("QueueNameExists", "QueueAlreadyExists"),
    ErrorKind("QueueDeletedRecently", f"{_PREFIX}QueueDeletedRecently"),
    ErrorKind("PurgeQueueInProgress", f"{_PREFIX}PurgeQueueInProgress", 403),
    ErrorKind("TooManyEntriesInBatchRequest", f"{_PREFIX}TooManyEntriesInBatchRequest"),
    ErrorKind("EmptyBatchRequest", f"{_PREFIX}EmptyBatchRequest"),
    ErrorKind("BatchEntryIdsNotDistinct", f"{_PREFIX}BatchEntryIdsNotDistinct"),
    ErrorKind("BatchRequestTooLong", f"{_PREFIX}BatchRequestTooLong"),
    ErrorKind("InvalidBatchEntryId", f"{_PREFIX}InvalidBatchEntryId"),
    ErrorKind("InvalidAddress", "InvalidAddress", 404),
    ErrorKind("MessageNotInflight", f"{_PREFIX}MessageNotInflight"),
    ErrorKind("UnsupportedOperation", f"{_PREFIX}UnsupportedOperation"),
    ErrorKind("OverLimit", "OverLimit", 403),
    ErrorKind("ResourceNotFoundException", "ResourceNotFoundException", 404),
    ErrorKind("InvalidParameterValueException", "InvalidParameterValue"),
    ErrorKind("MissingRequiredParameterException", "MissingParameter"),
    ErrorKind("RequestThrottled", "RequestThrottled", 403),
    ErrorKind("KmsAccessDenied", "KMS.AccessDeniedException"),
    ErrorKind("KmsDisabled", "KMS.DisabledException"),
    ErrorKind("KmsInvalidKeyUsage", "KMS.InvalidKeyUsageException"),
    ErrorKind("KmsInvalidState", "KMS.InvalidStateException"),
    ErrorKind("KmsNotFound", "KMS.NotFoundException"),
    ErrorKind("KmsOptInRequired", "KMS.OptInRequired", 403),
    ErrorKind("KmsThrottled", "KMS.ThrottlingException"),
)


def with_query_names(shapes: Raw) -> Raw:
    """Return the model's shapes with the query names written into their references."""
    return {name: _with_query_names(name, shape) for name, shape in shapes.items()}


def _with_query_names(name: str, shape: Raw) -> Raw:
    """A shape of the model with the names that its elements, keys and members have in the Query protocol."""
    match shape["type"]:
        case "list":
            element = shape["member"]
            return {**shape, "member": _with_query_name(element, _ELEMENT_NAMES.get(name, element["shape"]))}
        case "map":
            key = _with_query_name(shape["key"], _KEY_NAMES.get(name, "Name"))
            return {**shape, "key": key, "value": _with_query_name(shape["value"], "Value")}
        case "structure":
            members = {
                member: _with_query_name(ref, _MEMBER_NAMES.get(ref["shape"], member))
                for member, ref in shape.get("members", {}).items()
            }
            return {**shape, "members": members}
        case _:
            return shape


def _with_query_name(ref: Raw, query_name: str) -> Raw:
    return {**ref, "queryName": query_name}
