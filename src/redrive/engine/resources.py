"""Resources: the part of the door through which configuration is read and written."""

from redrive.engine.configuration.directory import Directory as Documents
from redrive.engine.configuration.draft import Draft
from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.subscriptions import Subscriptions
from redrive.engine.configuration.topics import Topics

__all__ = ["Documents", "Draft", "Queues", "Resources", "Subscriptions", "Topics"]


class Resources:
    """Topics, subscriptions, queues, and the documents that facades keep of their own kinds.

    Attributes:
        topics: Of all accounts and regions.
        subscriptions: Of all topics.
        queues: Of all accounts and regions.
        documents: Typed, versioned, remembered by every node that read them.
        write: Carries out a decision over several of them in one transaction (`Directory.transact`): what it reads and
            changes goes through the draft it is given, by verbs that end with `_in`.
    """

    def __init__(
        self, topics: Topics, subscriptions: Subscriptions, queues: Queues, documents: Documents
    ) -> None:
        self.topics = topics
        self.subscriptions = subscriptions
        self.queues = queues
        self.documents = documents
        self.write = documents.transact
