"""Amazon Resource Names: how AWS clients name what the engine knows by account, region and name."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from typing_extensions import override

CHARS_MAX: Final = 2048  # IAM's bound, which no service's own names come near
_ELEMENTS: Final = 6


@dataclass(frozen=True, slots=True)
class Arn:
    """`arn:partition:service:region:account:resource`."""

    partition: str  # `aws`, `aws-cn`, …
    service: str  # `sns`, `sqs`, …
    region: str  # Empty for global services, such as IAM
    account: str  # Twelve digits; empty if the service leaves it out
    resource: str  # All the rest, colons included

    @override
    def __str__(self) -> str:
        return f"arn:{self.partition}:{self.service}:{self.region}:{self.account}:{self.resource}"


# Clients repeat few ARNs in many requests: 4,096 cover a busy node, and a repeat costs a dictionary look-up. What is
# refused is never remembered, so this is at most 64 MB, whoever asks.
@lru_cache(maxsize=4096)
def parse_arn(text: str) -> Arn:
    """Read an ARN.

    Raises:
        ValueError: Not an ARN, or longer than `CHARS_MAX`; the message names what is wrong. With too few elements it
            is, word for word, what SNS answers after `Invalid parameter: TopicArn Reason: `.
    """
    if len(text) > CHARS_MAX:
        raise ValueError(f"An ARN must have at most {CHARS_MAX} characters, not {len(text)}")
    elements = text.split(":", _ELEMENTS - 1)
    if len(elements) < _ELEMENTS:
        raise ValueError(f"An ARN must have at least {_ELEMENTS} elements, not {len(elements)}")
    prefix, partition, service, region, account, resource = elements
    if prefix != "arn":
        raise ValueError(f"An ARN must begin with 'arn', not {prefix!r}")
    for name, element in (("partition", partition), ("service", service), ("resource", resource)):
        if not element:
            raise ValueError(f"An ARN must name a {name}")
    return Arn(partition, service, region, account, resource)


def read_arn(text: str) -> Arn | None:
    """The ARN that a text is; None if it is not an ARN."""
    try:
        return parse_arn(text)
    except ValueError:
        return None
