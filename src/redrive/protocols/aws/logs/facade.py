"""Amazon CloudWatch Logs: the operations on groups, streams and events."""

from collections.abc import Mapping
from typing import Any

from redrive.engine.ports import DocumentKind, NodeStore
from redrive.engine.resources import Documents
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.logs.errors import translated
from redrive.protocols.aws.logs.groups import Groups
from redrive.protocols.aws.logs.places import GROUP, STREAM, Places, Settle
from redrive.protocols.aws.logs.putting import Putting
from redrive.protocols.aws.logs.reading import Reading
from redrive.protocols.aws.logs.streams import Streams
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError


class Logs:
    """CloudWatch Logs on a store of events."""

    def __init__(self, store: NodeStore, documents: Documents, settle: Settle) -> None:
        """Speak for this store.

        Args:
            store: Where events are.
            documents: Where groups and streams are.
            settle: Lets what this node has logged arrive in the store, so that whoever reads sees it.
        """
        places = Places(documents)
        self.operations: Mapping[str, Verb] = operations_of(
            "logs",
            Groups(store, places, settle),
            Streams(store, places, settle),
            Putting(store, places),
            Reading(store, places, settle),
        )

    kinds: tuple[DocumentKind[Any], ...] = (STREAM, GROUP)
    """All that callers make through this service, besides events."""

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
