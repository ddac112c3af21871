"""Names of queues, and their ARNs."""

from redrive.aws.sqs.errors import error
from redrive.aws.wire.arn import read_arn
from redrive.model.names import ResourceName

FIFO_SUFFIX = ".fifo"
NAME_CHARS_MAX = 80
_NAME_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def arn_of(name: ResourceName) -> str:
    """The queue's ARN."""
    return f"arn:aws:sqs:{name.region}:{name.account}:{name.name}"


def name_in_arn(arn: str) -> ResourceName | None:
    """The queue an ARN means, or None if it is not a queue's."""
    parsed = read_arn(arn)
    if parsed is None or parsed.service != "sqs" or "/" in parsed.resource:
        return None
    return ResourceName(parsed.account, parsed.region, parsed.resource)


def check_name(name: str, *, fifo: bool) -> None:
    """Refuse a name that no queue of its kind may have; raises AwsError."""
    stem = name.removesuffix(FIFO_SUFFIX) if fifo else name
    fits = 1 <= len(name) <= NAME_CHARS_MAX and stem and _NAME_ALPHABET.issuperset(stem)
    if fits and (not fifo or name.endswith(FIFO_SUFFIX)):
        return
    if fifo:
        raise error(
            "InvalidParameterValueException",
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores,"
            " must end with .fifo suffix and be 1 to 80 in length.",
        )
    raise error(
        "InvalidParameterValueException",
        "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
    )
