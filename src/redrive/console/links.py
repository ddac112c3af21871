"""Links to the pages of things: from the ARNs that name them, and from a row to its trace."""

from typing import Final, NamedTuple

from redrive.console.visit import Visit
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName
from redrive.model.search import published_id

_ARN_PARTS: Final = 6
#: The rooms of resources that stacks know by their names.
_ROOMS: Final = {"AWS::SQS::Queue": "queues", "AWS::Lambda::Function": "functions", "AWS::KMS::Key": "kms"}


class Target(NamedTuple):
    """A thing that an ARN names."""

    arn: str  # As it was given
    name: str  # The last part of it, which people know it by
    service: str  # `sqs`, `sns`, …; empty: the text is no ARN
    link: str  # Its page; empty if there is none, or not for this visitor


def target(visit: Visit, arn: str) -> Target:
    """The thing that an ARN names, with a link where the console has a page for it."""
    parts = arn.split(":", _ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS or parts[0] != "arn":
        return Target(arn, arn, "", "")
    _, _, service, region, account, resource = parts
    path, name, query = _page(service, resource)
    if not path or not account or not region or not visit.session.sees(account):
        return Target(arn, name, service, "")
    return Target(arn, name, service, visit.link_in(ResourceName(account, region), *path, **query))


def trace(visit: Visit, queue: str, delivery: Delivery) -> str:
    """The trace of a message's publication; the link names its row too: a trace looks not through all of a long queue."""
    return visit.link("messages", published_id(delivery), **{"in": queue, "seq": delivery.seq})


def dead_letters(visit: Visit, arn: str) -> str:
    """The workbench of the queue that an ARN names; empty: it names something else."""
    queue = target(visit, arn)
    if queue.service != "sqs" or not queue.link:
        return ""
    _, _, _, region, account, name = arn.split(":", _ARN_PARTS - 1)
    return visit.link_in(ResourceName(account, region), "dead-letters", name)


def of_resource(visit: Visit, type_: str, physical_id: str) -> Target:
    """The thing behind a stack's resource, by its type and what it is called here."""
    if physical_id.startswith("arn:"):
        return target(visit, physical_id)._replace(service="")
    is_queue = type_ == "AWS::SQS::Queue"
    name = physical_id.rpartition("/")[2] if is_queue else physical_id
    room = _ROOMS.get(type_)
    return Target(
        physical_id, name, "", visit.link(room, name) if room and name else _by_query(visit, type_, name)
    )


def _by_query(visit: Visit, type_: str, name: str) -> str:
    """The page of a resource whose name may have slashes."""
    if type_ == "AWS::Logs::LogGroup":
        return visit.link("logs", "group", name=name)
    if type_ in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"):
        return visit.link("alarms", "alarm", name=name)
    return ""


def _page(service: str, resource: str) -> tuple[tuple[str, ...], str, dict[str, str]]:
    """The path below the scope, the name, and the query of the page of a resource; no path: it has no page."""
    kind, _, rest = resource.partition("/" if service in ("kms", "cloudformation") else ":")
    match service, kind:
        case "sqs", _:
            return ("queues", resource), resource, {}
        case "sns", _:
            return ("topics", kind, *([rest] if rest else [])), resource, {}
        case "lambda", "function":
            return ("functions", rest.partition(":")[0]), rest, {}
        case "logs", "log-group":
            group = rest.removesuffix(":*").partition(":log-stream:")[0]
            return ("logs", "group"), group, {"name": group}
        case "cloudwatch", "alarm":
            return ("alarms", "alarm"), rest, {"name": rest}
        case "kms", "key":
            return ("kms", rest), rest, {}
        case "cloudformation", "stack":
            return ("stacks", rest.partition("/")[0]), rest.partition("/")[0], {}
    return (), rest or resource, {}
