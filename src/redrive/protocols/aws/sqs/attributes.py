"""Queue attributes: SQS's strings on one side, a queue's fields on the other.

Ranges and defaults are those of the CreateQueue page of the SQS API reference. What the engine acts on are fields
of `Queue`; what only this facade acts on (policies, keys, quotas) stays in `Queue.attributes` as SQS spells it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from redrive.access.errors import PolicyInvalid
from redrive.engine.ports import Counts
from redrive.model.queue import DeadLetterTarget, Queue, ResourceName
from redrive.protocols.aws.sqs import names, policies
from redrive.protocols.aws.sqs.errors import error, invalid

ATTEMPTS_MAX = 1000
ATTEMPTS_DEFAULT = 10
SOURCES_MAX = 10


@dataclass(frozen=True, slots=True)
class _Number:
    """An attribute that is a whole number within a range, kept in a field in its own unit."""

    field: str
    least: int
    most: int
    scale: int = 1000  # seconds here, milliseconds in the engine


_NUMBERS = {
    "DelaySeconds": _Number("delay_ms", 0, 900),
    "MaximumMessageSize": _Number("body_bytes_max", 1024, 1_048_576, scale=1),
    "MessageRetentionPeriod": _Number("retention_ms", 60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": _Number("wait_ms", 0, 20),
    "VisibilityTimeout": _Number("lease_ms", 0, 43_200),
}
_KEY_REUSE = ("KmsDataKeyReusePeriodSeconds", 60, 86_400, "300")
_COUNTED = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_SCOPES = {"queue": False, "messageGroup": True}
_THROUGHPUT_LIMITS = ("perQueue", "perMessageGroupId")
_PERMISSIONS = ("allowAll", "denyAll", "byQueue")

_BOTH_KINDS_OF_SSE = (
    "You can use one type of server-side encryption (SSE) at one time."
    " You can either enable KMS SSE or SQS SSE."
)


def new_queue(name: ResourceName, given: Mapping[str, str], tags: Mapping[str, str]) -> Queue:
    """The queue that CreateQueue asks for, not stored yet.

    Raises:
        AwsError: A name or an attribute is not acceptable.
    """
    fifo = _boolean("FifoQueue", given["FifoQueue"]) if "FifoQueue" in given else False
    if "FifoQueue" in given and not fifo:
        raise error("InvalidAttributeName", "Unknown Attribute FifoQueue.")
    names.check_name(name.name, fifo=fifo)
    others = {key: value for key, value in given.items() if key != "FifoQueue"}
    return changed(Queue(0, name, ordered=fifo, tags=dict(tags)), others)


def changed(queue: Queue, given: Mapping[str, str]) -> Queue:
    """The queue with these attributes changed.

    Raises:
        AwsError: An attribute is unknown, of the other kind of queue, or out of its range; nothing changes.
    """
    _check_encryption(given)
    for name, value in given.items():
        queue = _change(queue, name, value)
    return queue


def _change(queue: Queue, name: str, value: str) -> Queue:
    if number := _NUMBERS.get(name):
        seconds = _whole_number(name, value, number.least, number.most)
        fields: dict[str, Any] = {number.field: seconds * number.scale}
        return replace(queue, **fields)
    change = _CHANGES.get(name)
    if change is None:
        raise error("InvalidAttributeName", f"Unknown Attribute {name}.")
    return change(queue, value)


# ---- reading values ------------------------------------------------------------------------------------------


def _refused(name: str) -> Exception:
    return error("InvalidAttributeValue", f"Invalid value for the parameter {name}.")


def _whole_number(name: str, value: str, least: int, most: int) -> int:
    if not (value.isascii() and value.isdigit() and least <= int(value[:12]) <= most):
        raise _refused(name)
    return int(value)


def _boolean(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise _refused(name)
    return value.lower() == "true"


def _keep(queue: Queue, name: str, value: str | None) -> Queue:
    attributes = {key: kept for key, kept in queue.attributes.items() if key != name}
    if value is not None:
        attributes[name] = value
    return replace(queue, attributes=attributes)


def _document(name: str, value: str) -> dict[str, Any]:
    try:
        document = orjson.loads(value)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise invalid(name, value, f"{name} is not valid JSON.")
    return document


# ---- one function an attribute -------------------------------------------------------------------------------


def _change_fifo(queue: Queue, value: str) -> Queue:
    if not queue.ordered:
        raise error("InvalidAttributeName", "Unknown Attribute FifoQueue.")
    if _boolean("FifoQueue", value):
        return queue
    raise error(
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
    )


def _change_content_deduplication(queue: Queue, value: str) -> Queue:
    if not queue.ordered:
        raise error("InvalidAttributeName", "Unknown Attribute ContentBasedDeduplication.")
    return replace(queue, deduplicates_content=_boolean("ContentBasedDeduplication", value))


def _only_fifo(queue: Queue, name: str) -> None:
    if not queue.ordered:
        raise error("InvalidAttributeName", f"You can specify the {name} only when FifoQueue is set to true.")


def _change_scope(queue: Queue, value: str) -> Queue:
    _only_fifo(queue, "DeduplicationScope")
    if value not in _SCOPES:
        raise _refused("DeduplicationScope")
    return replace(queue, deduplicates_per_group=_SCOPES[value])


def _change_throughput(queue: Queue, value: str) -> Queue:
    _only_fifo(queue, "FifoThroughputLimit")
    if value not in _THROUGHPUT_LIMITS:
        raise _refused("FifoThroughputLimit")
    return _keep(queue, "FifoThroughputLimit", value)


def _change_policy(queue: Queue, value: str) -> Queue:
    if not value:
        return _keep(queue, "Policy", None)
    try:
        policies.read(value)
    except PolicyInvalid:
        raise _refused("Policy") from None
    return _keep(queue, "Policy", value)


def _change_redrive(queue: Queue, value: str) -> Queue:
    if not value:
        return replace(queue, dead_letter=None)
    document = _document("RedrivePolicy", value)
    arn = document.get("deadLetterTargetArn")
    target = names.name_in_arn(arn) if isinstance(arn, str) else None
    if arn is None:
        raise invalid(
            "RedrivePolicy",
            value,
            "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
        )
    if target is None:
        raise invalid("RedrivePolicy", value, "Invalid value for deadLetterTargetArn.")
    if (target.account, target.region) != (queue.name.account, queue.name.region):
        raise invalid(
            "RedrivePolicy",
            value,
            "Dead-letter target owner should be same as the source, and in its region.",
        )
    return replace(
        queue, dead_letter=DeadLetterTarget(target, _attempts(value, document.get("maxReceiveCount")))
    )


def _attempts(policy: str, count: object) -> int:
    if count is None:
        return ATTEMPTS_DEFAULT
    text = count if isinstance(count, str) else orjson.dumps(count).decode()
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= ATTEMPTS_MAX):
        raise invalid(
            "RedrivePolicy",
            policy,
            f"Invalid value for maxReceiveCount: {text}, valid values are from 1 to {ATTEMPTS_MAX} both inclusive.",
        )
    return int(text)


def _change_redrive_allow(queue: Queue, value: str) -> Queue:
    if not value:
        return _keep(queue, "RedriveAllowPolicy", None)
    document = _document("RedriveAllowPolicy", value)
    sources = document.get("sourceQueueArns")
    if document.get("redrivePermission") not in _PERMISSIONS:
        raise invalid("RedriveAllowPolicy", value, "Invalid value for redrivePermission.")
    if (document["redrivePermission"] == "byQueue") != isinstance(sources, list):
        raise invalid(
            "RedriveAllowPolicy", value, "sourceQueueArns goes with redrivePermission byQueue alone."
        )
    if isinstance(sources, list) and not (1 <= len(sources) <= SOURCES_MAX and all(map(_is_queue, sources))):
        raise invalid(
            "RedriveAllowPolicy", value, f"sourceQueueArns holds 1 to {SOURCES_MAX} ARNs of queues."
        )
    return _keep(queue, "RedriveAllowPolicy", value)


def _is_queue(arn: object) -> bool:
    return isinstance(arn, str) and names.name_in_arn(arn) is not None


def allows_redrive_from(target: Queue, source_arn: str) -> bool:
    """Whether a queue agrees to be the dead-letter queue of another, by its RedriveAllowPolicy."""
    text = target.attributes.get("RedriveAllowPolicy")
    if text is None:
        return True
    document = orjson.loads(text)
    if document["redrivePermission"] == "byQueue":
        return source_arn in document["sourceQueueArns"]
    return bool(document["redrivePermission"] == "allowAll")


# ---- encryption: recorded, and acted on where keys are ---------------------------------------------------------


def _check_encryption(given: Mapping[str, str]) -> None:
    wants_sqs_sse = given.get("SqsManagedSseEnabled", "").lower() == "true"
    if given.get("KmsMasterKeyId") and wants_sqs_sse:
        raise error("InvalidAttributeName", _BOTH_KINDS_OF_SSE)


def _change_key(queue: Queue, value: str) -> Queue:
    queue = _keep(queue, "SqsManagedSseEnabled", "false")
    return _keep(queue, "KmsMasterKeyId", value or None)


def _change_key_reuse(queue: Queue, value: str) -> Queue:
    name, least, most, default = _KEY_REUSE
    _whole_number(name, value, least, most)
    return _keep(queue, name, None if value == default else value)


def _change_sqs_sse(queue: Queue, value: str) -> Queue:
    enabled = _boolean("SqsManagedSseEnabled", value)
    if enabled:
        queue = _keep(queue, "KmsMasterKeyId", None)
    return _keep(queue, "SqsManagedSseEnabled", None if enabled else "false")


_CHANGES: Mapping[str, Callable[[Queue, str], Queue]] = {
    "ContentBasedDeduplication": _change_content_deduplication,
    "DeduplicationScope": _change_scope,
    "FifoQueue": _change_fifo,
    "FifoThroughputLimit": _change_throughput,
    "KmsDataKeyReusePeriodSeconds": _change_key_reuse,
    "KmsMasterKeyId": _change_key,
    "Policy": _change_policy,
    "RedriveAllowPolicy": _change_redrive_allow,
    "RedrivePolicy": _change_redrive,
    "SqsManagedSseEnabled": _change_sqs_sse,
}

# ---- writing ---------------------------------------------------------------------------------------------------


def shown(queue: Queue, wanted: Iterable[str], counts: Counts | None) -> dict[str, str]:
    """The attributes that GetQueueAttributes answers.

    Args:
        queue: Whose.
        wanted: Attribute names; `All` stands for every one.
        counts: How many messages there are, where `wanted` needs them.

    Raises:
        AwsError: An attribute is unknown.
    """
    everything = _everything(queue, counts or Counts(0, 0, 0))
    shown_names: dict[str, str] = {}
    for name in wanted:
        if name == "All":
            return everything
        if name in everything:
            shown_names[name] = everything[name]
        elif name not in _CHANGES:
            raise error("InvalidAttributeName", f"Unknown Attribute {name}.")
    return shown_names


def needs_counts(wanted: Iterable[str]) -> bool:
    """Whether `shown` needs to know how many messages there are."""
    return any(name == "All" or name in _COUNTED for name in wanted)


def _everything(queue: Queue, counts: Counts) -> dict[str, str]:
    shown = {
        "QueueArn": names.arn_of(queue.name),
        "ApproximateNumberOfMessages": str(counts.available),
        "ApproximateNumberOfMessagesNotVisible": str(counts.claimed),
        "ApproximateNumberOfMessagesDelayed": str(counts.delayed),
        "CreatedTimestamp": str(queue.created_at // 1000),
        "LastModifiedTimestamp": str(queue.modified_at // 1000),
        "SqsManagedSseEnabled": "true",
    }
    for name, number in _NUMBERS.items():
        shown[name] = str(getattr(queue, number.field) // number.scale)
    if queue.dead_letter is not None:
        shown["RedrivePolicy"] = orjson.dumps(
            {
                "deadLetterTargetArn": names.arn_of(queue.dead_letter.queue),
                "maxReceiveCount": queue.dead_letter.attempts_max,
            }
        ).decode()
    if queue.ordered:
        shown["FifoQueue"] = "true"
        shown["ContentBasedDeduplication"] = str(queue.deduplicates_content).lower()
        shown["DeduplicationScope"] = "messageGroup" if queue.deduplicates_per_group else "queue"
        shown["FifoThroughputLimit"] = "perQueue"
    if "KmsMasterKeyId" in queue.attributes:
        shown["KmsDataKeyReusePeriodSeconds"] = _KEY_REUSE[3]
    return {**shown, **queue.attributes}


def difference(existing: Queue, wanted: Queue, given: Iterable[str]) -> str | None:
    """The first attribute given at a repeated creation that differs from what stands."""
    stands, asked = _everything(existing, Counts(0, 0, 0)), _everything(wanted, Counts(0, 0, 0))
    return next((name for name in given if stands.get(name) != asked.get(name)), None)
