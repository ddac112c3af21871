"""A second evaluator of policies, written down as the user guide tells it, without a thought for speed.

It reads the policies' JSON each time and shares nothing with `redrive.access`.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

Document = dict[str, Any]
_NEGATED: Final = {"StringNotEquals": "StringEquals", "StringNotLike": "StringLike", "ArnNotLike": "ArnLike"}
#: Keys that nobody knows the values of: what denies by them holds, and what allows by them does not.
UNKNOWN: Final = {"aws:NobodyKnows"}


@dataclass
class Caller:
    """A caller.

    Attributes:
        account: Twelve digits; empty for services and for nobody.
        names: All that a Principal element may name it by, accounts as twelve digits.
        role_names: Those of them that are its role's, not its session's.
        service: A service's name, or nothing.
        keys: The condition keys that follow from it.
        has_policies: Whether it is a user or a role.
    """

    account: str
    names: set[str]
    role_names: set[str] = field(default_factory=set)
    service: str = ""
    keys: dict[str, str] = field(default_factory=dict)
    has_policies: bool = False


@dataclass
class Question:
    """A request, and the statements of the policies in force; None: there is no such policy."""

    caller: Caller
    action: str
    resource: str
    keys: dict[str, list[str]]
    identity: list[Document]
    boundary: list[Document] | None
    session: list[Document] | None
    of_resource: list[Document] | None
    owner: str


def answer(question: Question, *, policy_decides: bool = False) -> bool:
    """True if the request is allowed."""
    caller = question.caller
    mine = [question.identity, question.boundary, question.session] if caller.has_policies else []
    everything = [question.of_resource, *mine]
    for statements in everything:
        if any(each["Effect"] == "Deny" and applies(each, question) for each in statements or []):
            return False
    letting_in = [
        each for each in question.of_resource or [] if each["Effect"] == "Allow" and applies(each, question)
    ]
    same_account = caller.account == question.owner
    if not caller.has_policies:
        return bool(letting_in) or (same_account and not policy_decides)
    by_identity = allows(question.identity, question)
    by_boundary = question.boundary is None or allows(question.boundary, question)
    by_session = question.session is None or allows(question.session, question)
    whole = by_identity and by_boundary and by_session
    if not same_account:
        return bool(letting_in) and whole
    if whole and (letting_in or not policy_decides):
        return True
    for each in letting_in:
        how = named_how(each, caller)
        if how == "directly" or (how == "as its role" and by_boundary and by_session):
            return True
    return False


def allows(statements: list[Document], question: Question) -> bool:
    """True if one of the statements allows the request."""
    return any(each["Effect"] == "Allow" and applies(each, question) for each in statements)


def named_how(statement: Document, caller: Caller) -> str:
    """The way in which a statement of a resource's policy names a caller whom it reaches."""
    if "NotPrincipal" in statement or statement["Principal"] == "*":
        return "directly"
    named = {account(name) for name in listed(statement["Principal"].get("AWS", []))}
    if "*" in named:
        return "directly"
    if named & (caller.names - caller.role_names - {caller.account}):
        return "directly"
    return "as its role" if named & caller.role_names else "as its account"


def applies(statement: Document, question: Question) -> bool:
    """True if all elements of a statement fit."""
    if "Action" in statement:
        fits = any(like(each.lower(), question.action.lower()) for each in listed(statement["Action"]))
    else:
        fits = not any(like(each.lower(), question.action.lower()) for each in listed(statement["NotAction"]))
    if "Resource" in statement:
        fits = fits and any(like_arn(each, question.resource) for each in listed(statement["Resource"]))
    else:
        fits = fits and not any(
            like_arn(each, question.resource) for each in listed(statement["NotResource"])
        )
    if "Principal" in statement:
        fits = fits and reaches(statement["Principal"], question.caller)
    if "NotPrincipal" in statement:
        fits = fits and not reaches(statement["NotPrincipal"], question.caller)
    for operator, comparisons in statement.get("Condition", {}).items():
        for key, values in comparisons.items():
            if key in UNKNOWN:
                fits = fits and statement["Effect"] == "Deny"
            else:
                fits = fits and holds(operator, value_of(key, question), listed(values))
    return fits


def reaches(element: Any, caller: Caller) -> bool:
    """True if a Principal element names a caller."""
    if element == "*" or "*" in listed(element.get("AWS", [])):
        return True
    if any(account(name) in caller.names for name in listed(element.get("AWS", []))):
        return True
    return bool(caller.service) and caller.service in listed(element.get("Service", []))


def value_of(key: str, question: Question) -> list[str]:
    """The values of a condition key; none where the request has none."""
    known = {name.lower(): [value] for name, value in question.caller.keys.items()}
    brought = {name.lower(): values for name, values in question.keys.items()}
    return known.get(key.lower(), brought.get(key.lower(), []))


def holds(operator: str, values: list[str], wanted: list[str]) -> bool:
    """True if a condition holds for a key's values."""
    if operator == "Null":
        return any((not values) is (each == "true") for each in wanted)
    quantifier, _, rest = operator.rpartition(":")
    name = rest.removesuffix("IfExists")
    negated = name in _NEGATED
    base = _NEGATED.get(name, name)
    passing = [any(compare(base, value, each) for each in wanted) is not negated for value in values]
    if quantifier == "ForAllValues":
        return all(passing)
    if quantifier == "ForAnyValue":
        return any(passing)
    if not values:
        return negated or rest.endswith("IfExists")
    return all(passing) if negated else any(passing)


def compare(operator: str, value: str, wanted: str) -> bool:
    """True if one value fits one wanted value."""
    if operator == "StringEquals":
        return value == wanted
    if operator == "StringLike":
        return like(wanted, value)
    if operator in ("ArnLike", "ArnEquals"):
        return like_arn(wanted, value)
    assert operator == "Bool", operator
    return value.lower() == wanted.lower()


def like(pattern: str, text: str) -> bool:
    """True if a pattern with `*` and `?` fits the whole text."""
    expression = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def like_arn(pattern: str, text: str) -> bool:
    """As `like`, segment by segment; those left out at the end may be anything. What is no ARN fits itself."""
    if pattern in ("*", text):
        return True
    patterns, segments = pattern.split(":", 5), text.split(":", 5)
    patterns += ["*"] * (6 - len(patterns))
    return len(segments) == 6 and all(map(like, patterns, segments))


def account(name: str) -> str:
    """A principal's name; of an account its twelve digits."""
    return name.split(":")[4] if name.endswith(":root") else name


def listed(value: Any) -> list[Any]:
    """A value, or the values of a list."""
    return value if isinstance(value, list) else [value]
