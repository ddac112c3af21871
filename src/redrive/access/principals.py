"""Principals: an account's root, one of its users, another service, or nobody in particular."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple


class Identity(NamedTuple):
    """One of the names a policy may know a principal by.

    Attributes:
        kind: The key in a policy's Principal element: `AWS`, `Service`, `Federated` or `CanonicalUser`.
        name: The value there; an account stands as its twelve digits, however the policy spelled it.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller.

    Attributes:
        name: For people: an ARN, a service's host name, or `anonymous`.
        account: Twelve digits; empty for a service and for anonymous callers, whom no account vouches for.
        identities: Everything a policy may know it by.
        keys: The condition keys that follow from who it is, names in lower case.
    """

    name: str
    account: str
    identities: frozenset[Identity]
    keys: Mapping[str, str] = field(compare=False, repr=False)


# Every request needs its caller's principal; 1,024 accounts at one node make the cache a dictionary look-up.
@lru_cache(maxsize=1024)
def account_root(account: str) -> Principal:
    """The account itself, which is whose an access key is."""
    keys = {"aws:principaltype": "Account", "aws:userid": account}
    return _of_account(f"arn:aws:iam::{account}:root", account, keys)


@lru_cache(maxsize=1024)
def account_user(account: str, name: str) -> Principal:
    """A user of an account; a policy reaches it by its own ARN or by its account's."""
    return _of_account(
        f"arn:aws:iam::{account}:user/{name}", account, {"aws:principaltype": "User", "aws:username": name}
    )


@lru_cache(maxsize=1024)
def service_principal(service: str, region: str) -> Principal:
    """Another service acting for somebody, such as SNS delivering to a queue.

    Args:
        service: Its name in host names: `sns`, `cloudwatch`, `events`, …
        region: Where it acts from; opt-in regions' policies name `sns.<region>.amazonaws.com`.
    """
    name = f"{service}.amazonaws.com"
    return Principal(
        name=name,
        account="",
        identities=frozenset(
            {Identity("Service", name), Identity("Service", f"{service}.{region}.amazonaws.com")}
        ),
        keys={"aws:principalisawsservice": "true", "aws:principalservicename": name},
    )


ANONYMOUS: Final = Principal(
    name="anonymous",
    account="",
    identities=frozenset(),
    keys={"aws:principalisawsservice": "false", "aws:principaltype": "Anonymous"},
)


def _of_account(arn: str, account: str, keys: Mapping[str, str]) -> Principal:
    return Principal(
        name=arn,
        account=account,
        identities=frozenset({Identity("AWS", arn), Identity("AWS", account)}),
        keys={
            "aws:principalarn": arn,
            "aws:principalaccount": account,
            "aws:principalisawsservice": "false",
            # SNS's own key, in every topic's default policy: "calls by the owning account".
            "aws:sourceowner": account,
            **keys,
        },
    )
