"""The match expressions of a filter policy: `{"prefix":"a"}`, `{"numeric":[">",1]}` and their like.

Each operator has one function that reads what stands behind its name, token by token in the order in which
event-ruler does: which rule is refused first, and at which column, follows from that order. The texts are the
recorded ones, also where they are odd (`cidr` asks for a prefix).
"""

from collections.abc import Callable
from ipaddress import ip_network
from typing import Final

from redrive.model.filtering.condition import (
    AnythingBut,
    Condition,
    EqualsIgnoringCase,
    Exactly,
    InNetwork,
    NumberRange,
    Prefix,
    Present,
    Suffix,
    Wildcard,
)
from redrive.model.filtering.tokens import FilterPolicyInvalid, Kind, Tokens

_ONE_KEY: Final = "Only one key allowed in match expression"
_TOO_MANY: Final = "Too many elements in numeric expression"
_Operator = Callable[[Tokens], Condition | None]


def read_expression(tokens: Tokens) -> Condition | None:
    """Read the match expression whose object has just begun, to its end.

    Returns:
        None for `{"exists":false}`, which is not a condition on a value.
    """
    name = tokens.expect(Kind.NAME, "Match expression name not found").text
    operator = OPERATORS.get(name)
    if operator is None:
        tokens.refuse(f"Unrecognized match type {name}")
    return operator(tokens)


def _text(tokens: Tokens, operator: str) -> str:
    tokens.expect(Kind.STRING, f"{operator} match pattern must be a string")
    return tokens.text()


def _expect_end(tokens: Tokens, otherwise: str = _ONE_KEY) -> None:
    tokens.expect(Kind.OBJECT_END, otherwise)


def _prefix(tokens: Tokens) -> Condition:
    condition = Prefix(_text(tokens, "prefix"))
    _expect_end(tokens)
    return condition


def _suffix(tokens: Tokens) -> Condition:
    condition = Suffix(_text(tokens, "suffix"))
    _expect_end(tokens)
    return condition


def _equals_ignore_case(tokens: Tokens) -> Condition:
    condition = EqualsIgnoringCase(_text(tokens, "equals-ignore-case"))
    _expect_end(tokens)
    return condition


def _wildcard(tokens: Tokens) -> Condition:
    condition = _read_wildcard(tokens)
    _expect_end(tokens)
    return condition


def _cidr(tokens: Tokens) -> Condition:
    condition = _network(_text(tokens, "prefix"))
    _expect_end(tokens)
    return condition


def _exists(tokens: Tokens) -> Condition | None:
    """Read the operand of `exists`: a value, or (None) no value."""
    token = tokens.advance()
    if token.value is not True and token.value is not False:
        tokens.refuse("exists match pattern must be either true or false.")
    _expect_end(tokens)
    return Present() if token.value else None


def _network(text: str) -> InNetwork:
    """An IPv4 or IPv6 network from its CIDR text; the bits behind its mask may be set."""
    address, slash, bits = text.partition("/")
    if not slash or not bits or "/" in bits:
        raise FilterPolicyInvalid("Malformed CIDR, one '/' required")
    if not bits.isascii() or not bits.isdigit():
        raise FilterPolicyInvalid("Malformed CIDR, mask bits must be an integer")
    try:
        host = ip_network(address)
    except ValueError as error:
        raise FilterPolicyInvalid(f"Nonstandard IP address: {address}") from error
    if int(bits) > host.max_prefixlen:
        raise FilterPolicyInvalid(f"IPv{host.version} mask bits must be < {host.max_prefixlen + 1}")
    return InNetwork(ip_network(f"{address}/{int(bits)}", strict=False))


def _read_wildcard(tokens: Tokens) -> Wildcard:
    """Split a wildcard at its stars; a backslash makes a star or a backslash literal, nothing else."""
    pattern = _text(tokens, "wildcard")
    parts, at = [""], 0
    while at < len(pattern):
        if pattern[at] == "\\":
            if pattern[at + 1 : at + 2] not in ("*", "\\"):
                tokens.refuse(f"Invalid escape character at pos {at + 1}")
            at += 1
            parts[-1] += pattern[at]
        elif pattern[at] != "*":
            parts[-1] += pattern[at]
        elif pattern[at + 1 : at + 2] == "*":
            tokens.refuse(f"Consecutive wildcard characters at pos {at + 1}")
        else:
            parts.append("")
        at += 1
    return Wildcard(tuple(parts))


def _anything_but(tokens: Tokens) -> Condition:
    """Read what must not match: an expression, a list, or a single value."""
    token = tokens.advance()
    if token.kind is Kind.OBJECT:
        condition = _anything_but_expression(tokens)
        _expect_end(tokens)
        return condition
    if token.kind is Kind.ARRAY:
        condition = AnythingBut(_anything_but_list(tokens))
    elif token.kind in (Kind.STRING, Kind.NUMBER):
        condition = AnythingBut((Exactly(token.value),))
    else:
        tokens.refuse("Value of anything-but must be an array or single string/number value.")
    _expect_end(tokens, _TOO_MANY)
    return condition


def _anything_but_list(tokens: Tokens) -> tuple[Condition, ...]:
    """The values of an anything-but list, all texts or all numbers; refuses others."""
    values = []
    while (token := tokens.advance()).kind is not Kind.ARRAY_END:
        if token.kind not in (Kind.STRING, Kind.NUMBER):
            tokens.refuse("Inside anything but list, start|null|boolean is not supported.")
        values.append(token.value)
    if len({isinstance(value, str) for value in values}) != 1:
        tokens.refuse(
            "Inside anything but list, either all values are number or string, mixed type is not supported"
        )
    return tuple(Exactly(value) for value in values)


def _anything_but_expression(tokens: Tokens) -> AnythingBut:
    """The expression within an anything-but: a prefix, as recorded, or a wildcard, which later documentation has.

    A suffix is refused, as recorded, except in a stored policy: an earlier release accepted it.
    """
    name = tokens.expect(Kind.NAME, "Anything-But expression name not found").text
    if name == "wildcard":
        condition: Condition = _read_wildcard(tokens)
    elif name == "prefix" or (name == "suffix" and tokens.stored):
        text = _text(tokens, name)
        if not text:
            tokens.refuse("Null prefix/suffix not allowed")
        condition = Prefix(text) if name == "prefix" else Suffix(text)
    else:
        tokens.refuse(f"Unsupported anything-but pattern: {name}")
    _expect_end(tokens)
    return AnythingBut((condition,))


def _numeric(tokens: Tokens) -> Condition:
    tokens.expect(Kind.ARRAY, "Value of numeric must be an array.")
    condition = _comparison(tokens)
    _expect_end(tokens, _TOO_MANY)
    return condition


def _comparison(tokens: Tokens) -> Condition:
    """One comparison, or a lower bound and then an upper one; the array has begun and is read to its end."""
    first = tokens.advance()
    if first.kind is not Kind.STRING:
        tokens.refuse(f"Invalid member in numeric match: {tokens.text()}")
    operator = tokens.text()
    operand = tokens.advance()
    if operator not in ("=", "<", "<=", ">", ">="):
        tokens.refuse(f"Unrecognized numeric range operator: {operator}")
    if operand.kind is not Kind.NUMBER:
        tokens.refuse(f"Value of {'equals' if operator == '=' else operator} must be numeric")
    next_token = tokens.advance()
    if next_token.kind is Kind.ARRAY_END:
        return _one_sided(operator, operand.value)
    if operator in ("=", "<", "<="):
        tokens.refuse(_TOO_MANY)
    if next_token.kind is not Kind.STRING:
        tokens.refuse(f"Bad value in numeric range: {tokens.text()}")
    return _two_sided(tokens, operand.value, above=operator == ">")


def _one_sided(operator: str, bound: float) -> Condition:
    """The condition of one comparison with a number: `=`, `<`, `<=`, `>` or `>=`."""
    if operator == "=":
        return Exactly(bound)
    if operator[0] == "<":
        return NumberRange(high=bound, below=operator == "<")
    return NumberRange(low=bound, above=operator == ">")


def _two_sided(tokens: Tokens, low: float, *, above: bool) -> Condition:
    """Read the upper bound of a range, whose lower one has been read; `above`: without the lower bound itself."""
    operator = tokens.text()
    if operator not in ("<", "<="):
        tokens.refuse(f"Bad numeric range operator: {operator}")
    high = tokens.expect(Kind.NUMBER, f"Value of {operator} must be numeric").value
    tokens.expect(Kind.ARRAY_END, "Too many terms in numeric range expression")
    if low >= high:
        tokens.refuse("Bottom must be less than top")
    return NumberRange(low, high, above=above, below=operator == "<")


OPERATORS: Final[dict[str, _Operator]] = {
    "anything-but": _anything_but,
    "cidr": _cidr,
    "equals-ignore-case": _equals_ignore_case,
    "exists": _exists,
    "numeric": _numeric,
    "prefix": _prefix,
    "suffix": _suffix,
    "wildcard": _wildcard,
}
