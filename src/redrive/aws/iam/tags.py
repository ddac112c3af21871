"""Tags of users, roles, policies and instance profiles."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.aws.iam.errors import bad_input, too_many
from redrive.aws.wire.shapes import Structure

TAGS_MAX: Final = 50
_RESERVED: Final = "aws:"


def read(params: Structure) -> dict[str, str]:
    """The tags of a call.

    Raises:
        AwsError: Two keys are the same but for their case, or one is Amazon's.
    """
    given: list[Any] = params.get("Tags") or []
    tags = {tag["Key"]: tag["Value"] for tag in given}
    if len({key.lower() for key in tags}) < len(given):
        raise bad_input("Duplicate tag keys found. Please note that Tag keys are case insensitive.")
    if any(key.lower().startswith(_RESERVED) for key in tags):
        raise bad_input("Tag keys that begin with aws: are reserved for system use.")
    return tags


def added(before: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Tags with others over them; keys are the same in any case.

    Raises:
        AwsError: That is more than may be.
    """
    again = {key.lower() for key in more}
    tags = {key: value for key, value in before.items() if key.lower() not in again} | dict(more)
    if len(tags) > TAGS_MAX:
        raise too_many(f"Cannot exceed quota for TagsPerResource: {TAGS_MAX}")
    return tags


def without(before: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """Tags without those of some keys."""
    removed_keys = {key.lower() for key in keys}
    return {key: value for key, value in before.items() if key.lower() not in removed_keys}


def shown(tags: Mapping[str, str]) -> list[Structure]:
    """Tags, as answers have them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]
