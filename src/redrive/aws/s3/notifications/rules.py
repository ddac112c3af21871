"""Rules of a bucket's notifications: the destinations of its events, and the rules that exclude each other.

Source: "Event notification types and destinations" and "Configuring event notifications using object key name
filtering", user guide; texts of refusals recorded of S3.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redrive.aws.s3.documents.errors import error, invalid, not_offered
from redrive.aws.wire.arn import read_arn
from redrive.aws.wire.rest.xml_input import malformed
from redrive.aws.wire.shapes import Structure

CREATED: Final = "s3:ObjectCreated"
REMOVED: Final = "s3:ObjectRemoved:Delete"
TAGGED: Final = "s3:ObjectTagging"
RULES_MAX: Final = 100  # "Amazon S3 quotas": event notification configurations of a bucket
_ID_CHARS_MAX: Final = 255
_VALUE_BYTES_MAX: Final = 1024
# For each list of rules, the member of a rule that is the ARN of its destination, and the destination's service.
_LISTS: Final = {
    "TopicConfigurations": ("TopicArn", "sns"),
    "QueueConfigurations": ("QueueArn", "sqs"),
    "LambdaFunctionConfigurations": ("LambdaFunctionArn", "lambda"),
}
_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "ObjectCreated": ("Put", "Post", "Copy", "CompleteMultipartUpload"),
    "ObjectRemoved": ("Delete", "DeleteMarkerCreated"),
    "ObjectTagging": ("Put", "Delete"),
    "ObjectRestore": ("Post", "Completed", "Delete"),
    "Replication": (
        "OperationFailedReplication",
        "OperationNotTracked",
        "OperationMissedThreshold",
        "OperationReplicatedAfterThreshold",
    ),
    "LifecycleExpiration": ("Delete", "DeleteMarkerCreated"),
}
_EVENTS: Final = frozenset(
    {f"s3:{kind}:{name}" for kind, names in _KINDS.items() for name in (*names, "*")}
    | {
        "s3:ReducedRedundancyLostObject",
        "s3:LifecycleTransition",
        "s3:IntelligentTiering",
        "s3:ObjectAcl:Put",
    }
)


@dataclass(frozen=True, slots=True)
class NotificationRule:
    """A rule: the destination of some events."""

    id: str  # Unique among the bucket's
    arn: str  # ARN of the queue, the topic or the function
    events: Sequence[str]  # Matching events; a final `*` matches all of a kind
    prefix: str  # Prefix of matching keys
    suffix: str  # Suffix of matching keys

    @property
    def has_filter(self) -> bool:
        """True if it does not match all keys."""
        return bool(self.prefix or self.suffix)

    def is_for(self, event: str, key: str) -> bool:
        """True if it matches an event of the object of a key."""
        matches = any(_matches(each, event) for each in self.events)
        return matches and key.startswith(self.prefix) and key.endswith(self.suffix)

    def shared_with(self, other: "NotificationRule") -> tuple[str, str] | None:
        """An event of its own and one of the other's that an object could match both; None: there are none."""
        if not _overlap(str.startswith, self.prefix, other.prefix):
            return None
        if not _overlap(str.endswith, self.suffix, other.suffix):
            return None
        pairs = itertools.product(self.events, other.events)
        return next(((one, two) for one, two in pairs if _matches(one, two) or _matches(two, one)), None)


def _matches(pattern: str, event: str) -> bool:
    return pattern == event or (pattern.endswith("*") and event.startswith(pattern[:-1]))


def _overlap(begins: Callable[[str, str], bool], one: str, two: str) -> bool:
    return begins(one, two) or begins(two, one)


def rules_of(configuration: Mapping[str, Any]) -> Iterator[NotificationRule]:
    """The rules of a bucket's configuration, as `normalized` returned it."""
    for list_name, (member, _) in _LISTS.items():
        for each in configuration.get(list_name) or ():
            filters = {rule["Name"]: rule["Value"] for rule in _filter_rules(each)}
            prefix, suffix = filters.get("Prefix", ""), filters.get("Suffix", "")
            yield NotificationRule(each["Id"], each[member], each["Events"], prefix, suffix)


def normalized(configuration: Structure, region: str, new_id: Callable[[], str]) -> Structure:
    """A valid configuration as it is stored: each rule has an id, and the names in its filter are capitalized.

    Raises:
        AwsError: `InvalidArgument` or `MalformedXML`.
    """
    if configuration.get("EventBridgeConfiguration") is not None:
        raise not_offered("EventBridgeConfiguration")
    stored: Structure = {}
    for list_name, (member, service) in _LISTS.items():
        rules = configuration.get(list_name) or []
        if rules:
            stored[list_name] = [_normalized_rule(each, member, service, region, new_id) for each in rules]
    _check_together(list(rules_of(stored)))
    return stored


def _normalized_rule(
    rule: Structure, member: str, service: str, region: str, new_id: Callable[[], str]
) -> Structure:
    """A rule as it is stored, with an id; raises AwsError if it is not acceptable."""
    if not rule.get("Events"):
        raise malformed()
    _check_arn(rule[member], member, service, region)
    for event in rule["Events"]:
        if event not in _EVENTS:
            text = f"The event '{event}' is not supported for notifications"
            raise invalid(text, ArgumentName="Event", ArgumentValue=event)
    identity = rule.get("Id") or new_id()
    if len(identity) > _ID_CHARS_MAX:
        raise invalid("The ID is too long", ArgumentName="Id", ArgumentValue=identity)
    # Each once: two rules are compared event by event, and 1 MB has room for 28,000.
    stored_rule = {"Id": identity, member: rule[member], "Events": list(dict.fromkeys(rule["Events"]))}
    if "Filter" in rule:
        stored_rule["Filter"] = {"Key": {"FilterRules": _normalized_filter(_filter_rules(rule))}}
    return stored_rule


def _check_arn(arn: str, member: str, service: str, region: str) -> None:
    parsed = read_arn(arn)
    if parsed is None or parsed.service != service:
        raise invalid("The ARN could not be parsed", ArgumentName=member, ArgumentValue=arn)
    if parsed.region != region:
        text = "The notification destination service region is not valid for the bucket location constraint"
        raise invalid(text, ArgumentName=member, ArgumentValue=arn)


def _filter_rules(rule: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    rules: Sequence[Mapping[str, str]] = ((rule.get("Filter") or {}).get("Key") or {}).get(
        "FilterRules"
    ) or ()
    return rules


def _normalized_filter(rules: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """A filter's rules as they are stored; raises AwsError if one is not acceptable."""
    filter_rules: dict[str, str] = {}
    for rule in rules:
        if "Name" not in rule or "Value" not in rule:
            raise malformed()
        name, value = rule["Name"].capitalize(), rule["Value"]
        if name not in ("Prefix", "Suffix"):
            text = "filter rule name must be either prefix or suffix"
            raise invalid(text, ArgumentName="FilterRule.Name", ArgumentValue=rule["Name"])
        if name in filter_rules:
            text = f"Cannot specify more than one {name.lower()} rule in a filter."
            raise invalid(text, ArgumentName="FilterRule.Name", ArgumentValue=rule["Name"])
        if len(value.encode()) > _VALUE_BYTES_MAX:
            text = f"Size of filter rule value cannot exceed {_VALUE_BYTES_MAX} bytes in UTF-8 representation"
            raise invalid(text, ArgumentName="FilterRule.Value", ArgumentValue=value)
        filter_rules[name] = value
    return [{"Name": name, "Value": value} for name, value in filter_rules.items()]


def _check_together(rules: Sequence[NotificationRule]) -> None:
    """Refuse too many rules, two of one id, or two that the same object and event would match."""
    if len(rules) > RULES_MAX:
        text = (
            "You are attempting to create a new configuration but have already reached the"
            f" {RULES_MAX}-configuration limit."
        )
        raise error("TooManyConfigurations", text)
    if len({rule.id for rule in rules}) < len(rules):
        raise invalid("Same ID used for multiple configurations. IDs must be unique")
    for one, two in itertools.combinations(rules, 2):
        shared = one.shared_with(two)
        if shared is None:
            continue
        if one.has_filter or two.has_filter:
            text = (
                "Configuration is ambiguously defined. Cannot have overlapping suffixes in two rules if the prefixes are"
                " overlapping for the same event type."
            )
            raise invalid(text)
        text = "Configurations overlap. Configurations on the same bucket cannot share a common event type."
        raise invalid(text, ArgumentName="Event", ArgumentValue=", ".join(shared))
