"""Parts of SNS that it could do without: mobile push, text messages, data protection. Each registers by one value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redrive.aws.sns.notification_renderer import Render
from redrive.aws.sns.protection.screening import Screening
from redrive.engine.ports import DocumentKind
from redrive.engine.ports.facts import Listener


@dataclass(frozen=True, slots=True)
class SnsPart:
    """A part that adds to SNS.

    Attributes:
        operations: Objects with a method for each operation that the part carries out.
        renderers: By protocol, what makes requests of its deliveries.
        logs: By protocol, told of its attempts and of what is published to one destination alone.
        kinds: The part's documents; a reset removes them.
        screening: Looks at what is published to topics with a data-protection policy.
    """

    operations: Sequence[object] = ()
    renderers: Mapping[str, Render] = field(default_factory=dict)
    logs: Mapping[str, Listener] = field(default_factory=dict)
    kinds: Sequence[DocumentKind[Any]] = ()
    screening: Screening | None = None
