"""Filters: which messages a subscription wants, decided for one filter or for ten thousand at once.

`read_policy` compiles a filter policy, `FilterIndex` holds many of them, `Subject` is the message as both see it.
"""

from redrive.model.filtering.index import Filtered, FilterIndex
from redrive.model.filtering.policy import FilterPolicy, Scope, Verdict
from redrive.model.filtering.reader import NestedPolicyRefused, read_policy
from redrive.model.filtering.subject import Attribute, Subject
from redrive.model.filtering.tokens import FilterPolicyInvalid

__all__ = [
    "Attribute",
    "FilterIndex",
    "FilterPolicy",
    "FilterPolicyInvalid",
    "Filtered",
    "NestedPolicyRefused",
    "Scope",
    "Subject",
    "Verdict",
    "read_policy",
]
