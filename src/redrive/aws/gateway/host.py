"""The server as its services see it, as far as they need no more of it than this."""

from typing import Protocol

from redrive.access.keys import Keyring
from redrive.access.signing_pair import SigningPair
from redrive.aws.gateway.identities import Sessions
from redrive.engine.engine import Engine
from redrive.engine.ports import NodeStore


class Host(Protocol):
    """The server, to its services (`redrive.composition.core.Core`)."""

    @property
    def engine(self) -> Engine:
        """Keeps everything."""
        ...

    @property
    def store(self) -> NodeStore:
        """The store, open."""
        ...

    @property
    def keyring(self) -> Keyring:
        """The access keys."""
        ...

    @property
    def pair(self) -> SigningPair:
        """The installation's key."""
        ...

    @property
    def sessions(self) -> Sessions:
        """Begins sessions, and knows users and roles."""
        ...
