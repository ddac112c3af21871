"""The engine's errors; each facade has one table from these to its vendor's codes.

RedriveError
├── NotFound              the queue, topic, task … is not there
├── AlreadyExists         a resource of that name stands, and differs
├── Conflict              the resource changed since it was read, or is there and was to be created: read again
├── KeyUnusable           the key that messages are encrypted with cannot be used now
├── Refused               the request cannot be carried out in the present state
│   ├── InFlightLimit     too many messages of the queue are in flight
│   └── TaskActive        one task of the kind is already running
└── StoreUnavailable      the store did not answer; nothing was acknowledged, try again
"""


class RedriveError(Exception):
    """Anything the engine refuses; the message is for people, the class for programs."""


class NotFound(RedriveError):  # noqa: N818 - these are answers, named as a caller says them
    """The named resource does not exist."""


class AlreadyExists(RedriveError):  # noqa: N818 - see NotFound
    """A resource of that name exists already and is different."""


class Conflict(RedriveError):  # noqa: N818 - see NotFound
    """The resource changed since it was read, or one that was to be created is there.

    Attributes:
        kind: Of the document that changed; empty if it is not said.
        key: Of that document, or the beginning of keys that had to be free.
    """

    def __init__(self, message: str, kind: str = "", key: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.key = key


class KeyUnusable(RedriveError):  # noqa: N818 - see NotFound
    """The key that messages are encrypted with cannot be used, or not by this caller.

    Attributes:
        code: The reason, in the words of the service that has the key; empty if it was not asked.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Refused(RedriveError):  # noqa: N818 - see NotFound
    """The current state does not allow it."""


class InFlightLimit(Refused):
    """The queue has the maximum number of messages in flight."""


class TaskActive(Refused):
    """A task of this kind is already running there."""


class StoreUnavailable(RedriveError):  # noqa: N818 - see NotFound
    """The store did not answer. Nothing was acknowledged; the caller may try again."""
