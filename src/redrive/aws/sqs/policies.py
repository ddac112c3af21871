"""A queue's policy as a document: its reader and its quotas."""

from collections.abc import Iterator
from typing import Any

import orjson

from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import new_policy
from redrive.aws.kit.json_cursor import as_list

# "Quotas related to policies", SQS developer guide.
BYTES_MAX = 8192
STATEMENTS_MAX = 20
PRINCIPALS_MAX = 50
CONDITIONS_MAX = 10

Document = dict[str, Any]


def read(text: str) -> Document:
    """A policy that is valid and within the quotas, its statements in a list.

    Raises:
        PolicyInvalid: It does not.
    """
    new_policy(text)
    try:
        policy: Document = orjson.loads(text)
    except orjson.JSONDecodeError:  # half a surrogate pair, which other readers let pass
        raise PolicyInvalid("not JSON") from None
    if not isinstance(policy["Statement"], list):
        policy["Statement"] = [policy["Statement"]]
    if not within_quotas(policy, text):
        raise PolicyInvalid("too large")
    return policy


def within_quotas(policy: Document, text: str) -> bool:
    """Returns whether a policy, its statements in a list, keeps to the quotas."""
    statements = policy["Statement"]
    return (
        len(text.encode()) <= BYTES_MAX
        and len(statements) <= STATEMENTS_MAX
        and sum(len(list(_principals(statement))) for statement in statements) <= PRINCIPALS_MAX
        and sum(len(keys) for statement in statements for keys in statement.get("Condition", {}).values())
        <= CONDITIONS_MAX
    )


def _principals(statement: Document) -> Iterator[Any]:
    principals: Any = statement.get("Principal", statement.get("NotPrincipal"))
    for names in principals.values() if isinstance(principals, dict) else [principals]:
        yield from as_list(names)
