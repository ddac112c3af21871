"""Filters: which messages a subscription wants, decided for one filter or for ten thousand at once.

`read_policy` compiles a filter policy, `FilterIndex` holds many of them, `Subject` is the message as both see it.
`read_event_filter` compiles the other kind of filter, which looks at a whole event.
"""

from redrive.model.budget import MessageBudget
from redrive.model.filtering.event_operators import EventFilterInvalid
from redrive.model.filtering.events import Event, EventFilter, read_event_filter
from redrive.model.filtering.index import Filtered, FilterIndex
from redrive.model.filtering.policy import FilterPolicy, Scope
from redrive.model.filtering.reader import NestedPolicyRefused, read_policy
from redrive.model.filtering.subject import FilterVerdict, Subject
from redrive.model.filtering.tokens import FilterPolicyInvalid

__all__ = [
    "Event",
    "EventFilter",
    "EventFilterInvalid",
    "FilterIndex",
    "FilterPolicy",
    "FilterPolicyInvalid",
    "FilterVerdict",
    "Filtered",
    "MessageBudget",
    "NestedPolicyRefused",
    "Scope",
    "Subject",
    "read_event_filter",
    "read_policy",
]
