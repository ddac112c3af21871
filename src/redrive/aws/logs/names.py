"""Names of groups and streams, and their ARNs."""

from redrive.aws.kit.call import Call
from redrive.aws.logs.errors import error, invalid
from redrive.aws.wire.arn import read_arn
from redrive.aws.wire.shapes import Structure
from redrive.model.log import LogGroup, LogStream
from redrive.model.names import ResourceName

_GROUP = "log-group:"


def arn_of(name: ResourceName) -> str:
    """A group's ARN, as policies and tags have it: without `:*`."""
    return f"arn:aws:logs:{name.region}:{name.account}:{_GROUP}{name.name}"


def stream_arn(group: LogGroup, stream: LogStream) -> str:
    """A stream's ARN."""
    return f"{arn_of(group.name)}:log-stream:{stream.name}"


def group_name(call: Call, name: str) -> ResourceName:
    """The caller's group of that name."""
    return ResourceName(call.account, call.region, name)


def named_group(call: Call, params: Structure) -> ResourceName:
    """The group that a request names by `logGroupName`, or by name or ARN in `logGroupIdentifier`.

    Raises:
        AwsError: Neither is given, or both, or an ARN of something else.
    """
    name, identifier = params.get("logGroupName"), params.get("logGroupIdentifier")
    if name and identifier:
        raise error(
            "ValidationException", "LogGroup name and LogGroup ARN are mutually exclusive parameters."
        )
    if identifier:
        return (
            name_in_arn(call, identifier) if identifier.startswith("arn:") else group_name(call, identifier)
        )
    if not name:
        raise invalid("Either logGroupName or logGroupIdentifier must be specified.")
    return group_name(call, name)


def name_in_arn(call: Call, arn: str) -> ResourceName:
    """The caller's group that an ARN means; the model refuses the form that ends in `:*`.

    Raises:
        AwsError: The text is not the ARN of a group of the caller's.
    """
    parsed = read_arn(arn)
    if parsed is None or (parsed.service, parsed.account) != ("logs", call.account):
        raise invalid(f"Invalid ARN: {arn}")
    if parsed.region != call.region or not parsed.resource.startswith(_GROUP):
        raise invalid(f"Invalid ARN: {arn}")
    return group_name(call, parsed.resource.removeprefix(_GROUP))
