"""The condition operators of policies: from an operator's name to the test it makes of a request's value.

A builder reads the policy's values once, when the policy is read, and answers a test that is true where any of
them fits. `StringNotEquals` and its like are the same test, negated.
"""

import base64
import ipaddress
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from redrive.access.patterns import Lookup, PolicyInvalid, WildcardReach, compile_patterns

Test = Callable[[str, Lookup], bool]
# From the policy's values, and whether they may hold variables.
Builder = Callable[[Sequence[str], bool], Test]

_Value = TypeVar("_Value")
_Ordered = TypeVar("_Ordered", Decimal, float)

# Forty digits on either side: more than any key has, and too few to make arithmetic slow.
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_EPOCH_SECONDS: Final = re.compile(r"-?[0-9]{1,15}")


class _Range(NamedTuple):
    """IP addresses from the first to the last, as numbers, of one version."""

    version: int
    first: int
    last: int


class Operator(NamedTuple):
    """One operator."""

    build: Builder  # Makes the test of the values that stand in the policy
    negated: bool  # The condition holds where the test does not


def _texts(
    *, wildcards: bool = False, folded: bool = False, shape: WildcardReach = WildcardReach.TEXT
) -> Builder:
    """A builder for texts: `folded`, without regard to case; with wildcards that reach as far as `shape` says."""

    def build(values: Sequence[str], variables: bool) -> Test:  # noqa: FBT001 - a Builder's own shape
        return compile_patterns(
            values, shape=shape, wildcards=wildcards, variables=variables, folded=folded
        ).match

    return build


def _values(what: str, read: Callable[[str], _Value], fits: Callable[[_Value, _Value], bool]) -> Builder:
    """A builder for values that are read before they are compared; what cannot be read fits nothing."""

    def build(values: Sequence[str], _variables: bool) -> Test:  # noqa: FBT001 - a Builder's own shape
        try:
            operands = [read(text) for text in values]
        except ValueError:
            raise PolicyInvalid(f"{', '.join(map(repr, values))} must be {what}") from None

        def test(text: str, _lookup: Lookup) -> bool:
            try:
                value = read(text)
            except ValueError:
                return False
            return any(fits(value, each) for each in operands)

        return test

    return build


# ---- reading values: each raises ValueError for what is none ----------------------------------------------


def _number(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return Decimal(text)


def _moment(text: str) -> float:
    """Seconds since the epoch, of such a number or of an ISO 8601 date; without a zone it is UTC."""
    if _EPOCH_SECONDS.fullmatch(text):
        return float(text)
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()


def truth(text: str) -> bool:
    """Read `true` or `false`, in any case."""
    folded = text.lower()
    if folded not in {"true", "false"}:
        raise ValueError(text)
    return folded == "true"


def _octets(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


# A request's address is asked about by every statement that has a range, and reading one takes 3 us.
@lru_cache(maxsize=1024)
def _range(text: str) -> _Range:
    """A range of addresses from its CIDR text, or from a single address; raises ValueError for other texts."""
    network = ipaddress.ip_network(text, strict=False)
    # A listener on both families reports IPv4 peers as ::ffff:192.0.2.1; policies name them as IPv4.
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped is not None and network.num_addresses == 1:
        return _Range(mapped.version, int(mapped), int(mapped))
    return _Range(network.version, int(network.network_address), int(network.broadcast_address))


def _within(address: _Range, network: _Range) -> bool:
    return (
        address.version == network.version and network.first <= address.first and address.last <= network.last
    )


# ---- the operators ----------------------------------------------------------------------------------------

_EQUALS: Final = _texts()
_EQUALS_IGNORING_CASE: Final = _texts(folded=True)
_LIKE: Final = _texts(wildcards=True)
# ArnEquals too: AWS lets both have wildcards.
_ARN_LIKE: Final = _texts(wildcards=True, shape=WildcardReach.ARN)
_IN_NETWORK: Final = _values("an IP address or range", _range, _within)


def _comparisons(
    prefix: str, what: str, read: Callable[[str], _Ordered]
) -> Mapping[str, tuple[Builder, bool]]:
    """The six comparisons of a type, by operator: the builder of each, and whether the test is negated."""
    equals = _values(what, read, operator.eq)
    return {
        f"{prefix}Equals": (equals, False),
        f"{prefix}NotEquals": (equals, True),
        f"{prefix}LessThan": (_values(what, read, operator.lt), False),
        f"{prefix}LessThanEquals": (_values(what, read, operator.le), False),
        f"{prefix}GreaterThan": (_values(what, read, operator.gt), False),
        f"{prefix}GreaterThanEquals": (_values(what, read, operator.ge), False),
    }


# By name in lower case: IAM tells operators apart without regard to case.
OPERATORS: Final[Mapping[str, Operator]] = {
    name.lower(): Operator(build, negated)
    for name, (build, negated) in {
        "StringEquals": (_EQUALS, False),
        "StringNotEquals": (_EQUALS, True),
        "StringEqualsIgnoreCase": (_EQUALS_IGNORING_CASE, False),
        "StringNotEqualsIgnoreCase": (_EQUALS_IGNORING_CASE, True),
        "StringLike": (_LIKE, False),
        "StringNotLike": (_LIKE, True),
        "ArnEquals": (_ARN_LIKE, False),
        "ArnNotEquals": (_ARN_LIKE, True),
        "ArnLike": (_ARN_LIKE, False),
        "ArnNotLike": (_ARN_LIKE, True),
        "IpAddress": (_IN_NETWORK, False),
        "NotIpAddress": (_IN_NETWORK, True),
        "Bool": (_values("true or false", truth, operator.eq), False),
        "BinaryEquals": (_values("base 64", _octets, operator.eq), False),
        **_comparisons("Numeric", "a number", _number),
        **_comparisons("Date", "a date", _moment),
    }.items()
}
