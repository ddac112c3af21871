"""Reading policies: from IAM's JSON to a Policy, or to the reason why not.

What IAM would not understand is refused, not skipped: a `Conditions` that nobody reads is a door left open. A condition
key that nobody here knows keeps the door shut: a statement that denies holds then, and one that allows does not. And what
would cost too much to compile or to ask is refused before it is read: policies are written by whoever has a key.
"""

import enum
import json
import logging
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NoReturn

from redrive.access.condition_keys import is_known
from redrive.access.keys import is_account
from redrive.access.patterns import Patterns, PolicyInvalid, WildcardReach, compile_patterns, variable_keys
from redrive.access.statements import (
    Identity,
    Policy,
    PolicyCondition,
    Principals,
    Statement,
    Undecidable,
    parse_conditions,
)

logger = logging.getLogger(__name__)

CHARS_MAX: Final = 30_720  # of a topic's policy, the longest that a service takes
#: Compiling a wildcard takes up to 0.1 ms, and a text with a variable is put together for each request that asks.
WILDCARDS_MAX: Final = 512
VARIABLES_MAX: Final = 64
_WILDCARDS: Final = re.compile(r"[*?]|\\u00(2[aA]|3[fF])")
_VARIABLES: Final = re.compile(r"\$|\\u0024")

#: A policy takes up to fifty times its text when it is compiled, so few long ones are remembered: 150 MB in all.
_SHORT_CHARS_MAX: Final = 4096
_SHORT_REMEMBERED: Final = 512
_LONG_REMEMBERED: Final = 32

_KEYS_SHOWN: Final = 5  # unknown keys of one policy, in the log
_KEY_CHARS_SHOWN: Final = 64

_VERSION_WITHOUT_VARIABLES: Final = "2008-10-17"  # and what a policy has that names none
_VERSIONS: Final = {_VERSION_WITHOUT_VARIABLES, "2012-10-17"}
_POLICY_ELEMENTS: Final = {"Version", "Id", "Statement"}
_STATEMENT_ELEMENTS: Final = {
    "Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition",
}  # fmt: skip
_PRINCIPAL: Final = {"Principal", "NotPrincipal"}
_RESOURCE: Final = {"Resource", "NotResource"}
_PRINCIPAL_KINDS: Final = {"AWS", "Service", "Federated", "CanonicalUser"}

_ACTION: Final = re.compile(r"\*|[a-z0-9*?-]+:[a-z0-9*?]+", re.IGNORECASE)
_ACCOUNT_ROOT: Final = re.compile(r"arn:[a-z-]+:iam::([0-9]{12}):root")
_PRINCIPAL_ARN: Final = re.compile(r"arn:[a-z-]+:(iam|sts)::[0-9]{12}:[^*?]+")
_UNIQUE_ID: Final = re.compile(r"A[A-Z0-9]{15,127}")  # what IAM leaves of a user that was deleted


class Form(enum.Enum):
    """The elements that a policy's statements have, by what it is attached to."""

    RESOURCE = frozenset[str]()
    IDENTITY = frozenset(_PRINCIPAL)  # those of whom it is attached to
    TRUST = frozenset(_RESOURCE)  # the role that it is attached to


def parse_policy(text: str, form: Form = Form.RESOURCE) -> Policy:
    """Read a policy document; results are cached, so a facade may pass the stored text on each request.

    Raises:
        PolicyInvalid: It is not JSON, not a policy, too large, or contains an element that this server cannot enforce.
    """
    if len(text) <= _SHORT_CHARS_MAX:
        return _parse_short(text, form)
    if len(text) > CHARS_MAX:
        raise PolicyInvalid(f"must have at most {CHARS_MAX} characters")
    return _parse_long(text, form)


def _parse(text: str, form: Form) -> Policy:
    """Read a policy; statements that deny come first."""
    _check_cost(text)
    document = _json_object(text)
    _check_members(document, _POLICY_ELEMENTS)
    version = _optional_text(document, "Version") or _VERSION_WITHOUT_VARIABLES
    if version not in _VERSIONS:
        raise PolicyInvalid(f"Version must be one of {', '.join(sorted(_VERSIONS))}")
    element = document.get("Statement")
    elements = element if isinstance(element, list) else [element]
    if not elements:
        raise PolicyInvalid("Statement must not be empty")
    statements = [
        _read_numbered(number, statement, form, variables=version != _VERSION_WITHOUT_VARIABLES)
        for number, statement in enumerate(elements, start=1)
    ]
    sids = [statement.sid for statement in statements if statement.sid]
    if len(set(sids)) < len(sids):
        raise PolicyInvalid("Sid must be unique within a policy")
    return Policy(
        id=_optional_text(document, "Id"),
        version=version,
        statements=tuple(sorted(statements, key=lambda statement: statement.allows)),
        keys=frozenset().union(*(statement.keys for statement in statements)),
    )


def new_policy(text: str, form: Form = Form.RESOURCE) -> Policy:
    """Read a policy that is being set; unknown condition keys are logged.

    Raises:
        PolicyInvalid: See `parse_policy`.
    """
    policy = parse_policy(text, form)
    unknown = sorted(key for key in policy.keys if not is_known(key))
    if unknown:
        logger.warning(
            "policy.unknown_keys %s: Deny statements with them apply, Allow statements do not",
            ", ".join(repr(key[:_KEY_CHARS_SHOWN]) for key in unknown[:_KEYS_SHOWN]),
        )
    return policy


def stored_policy(text: str, form: Form = Form.RESOURCE) -> Policy:
    """The policy of a resource; one that was stored under other limits and cannot be read any more closes the resource.

    Nobody knows whom it let in and whom it kept out. Its owner alone may look at it, replace it and delete the resource.
    """
    try:
        return parse_policy(text, form)
    except PolicyInvalid as invalid:
        return _closed_policy(invalid.reason, hash(text))


@lru_cache(maxsize=_SHORT_REMEMBERED)
def _closed_policy(reason: str, policy_hash: int) -> Policy:  # noqa: ARG001 - the cache's key: one warning for each policy
    logger.warning(
        "policy.unreadable: %s; its resource is closed until its owner replaces the policy", reason
    )
    return _parse(_CLOSED, Form.RESOURCE)


_CLOSED: Final = json.dumps(
    {
        "Statement": {
            "Effect": "Deny",
            "Principal": "*",
            "NotAction": [
                *("sqs:GetQueueAttributes", "sqs:SetQueueAttributes", "sqs:GetQueueUrl", "sqs:DeleteQueue"),
                *("sns:GetTopicAttributes", "sns:SetTopicAttributes", "sns:DeleteTopic"),
                *("lambda:GetPolicy", "lambda:RemovePermission", "lambda:DeleteFunction"),
            ],
            "Resource": "*",
        }
    }
)

_parse_short: Final = lru_cache(maxsize=_SHORT_REMEMBERED)(_parse)
_parse_long: Final = lru_cache(maxsize=_LONG_REMEMBERED)(_parse)


def _check_cost(text: str) -> None:
    """Count in the text as it stands, with what is escaped; a few too many in a `Sid` do no harm."""
    if len(_WILDCARDS.findall(text)) > WILDCARDS_MAX:
        raise PolicyInvalid(f"must have at most {WILDCARDS_MAX} wildcards")
    if len(_VARIABLES.findall(text)) > VARIABLES_MAX:
        raise PolicyInvalid(f"must have at most {VARIABLES_MAX} variables")


def _read_numbered(number: int, statement: object, form: Form, *, variables: bool) -> Statement:
    """Read a statement; a refusal says which it is."""
    try:
        return _statement(statement, form, variables=variables)
    except PolicyInvalid as invalid:
        raise PolicyInvalid(f"Statement {number}: {invalid.reason}") from invalid


def _statement(document: object, form: Form, *, variables: bool) -> Statement:
    """Read a statement; an unknown condition key counts as met in a Deny, and as not met in an Allow."""
    if not isinstance(document, Mapping):
        raise PolicyInvalid("must be an object")
    _check_members(document, _STATEMENT_ELEMENTS - form.value)
    document = {**_IMPLIED[form], **document}
    effect = document.get("Effect")
    if form is Form.TRUST and isinstance(effect, str):
        effect = effect.capitalize()  # IAM takes any case in a trust policy alone (recorded)
    if effect not in ("Allow", "Deny"):
        raise PolicyInvalid("Effect must be Allow or Deny")
    not_principal, principals = _one_of(document, "Principal")
    not_action, action = _one_of(document, "Action")
    actions = _texts(action, "Action")
    not_resource, resource = _one_of(document, "Resource")
    patterns_text = _texts(resource, "Resource")
    variables_used = frozenset().union(*map(variable_keys, patterns_text)) if variables else frozenset()
    denies = effect == "Deny"
    if all(map(is_known, variables_used)):
        resources = compile_patterns(patterns_text, shape=WildcardReach.ARN, variables=variables)
        is_excepted = not_resource
    else:
        resources, is_excepted = _undecidable(patterns_text, denies=denies, excepted=not_resource)
    conditions = parse_conditions(document.get("Condition", {}), variables=variables)
    return Statement(
        sid=_optional_text(document, "Sid"),
        allows=not denies,
        principals=_principals(principals, is_exclusion=not_principal),
        actions=_actions(actions),
        actions_excepted=not_action,
        resources=resources,
        resources_excepted=is_excepted,
        conditions=tuple(_decidable(condition, denies=denies) for condition in conditions),
        keys=variables_used.union(*(condition.keys for condition in conditions)),
        services=_services(actions),
    )


#: What a statement without such elements is about.
_IMPLIED: Final[Mapping[Form, Mapping[str, str]]] = {
    Form.RESOURCE: {},
    Form.IDENTITY: {"Principal": "*"},
    Form.TRUST: {"Resource": "*"},
}


# ---- unknown condition keys ------------------------------------------------------------------------------


def _decidable(condition: PolicyCondition, *, denies: bool) -> PolicyCondition:
    """A condition, or the assumption in its place if its keys are unknown."""
    return condition if all(map(is_known, condition.keys)) else Undecidable(condition.keys, assumed=denies)


def _undecidable(names: Sequence[str], *, denies: bool, excepted: bool) -> tuple[Patterns, bool]:
    """The resources of a statement some of whose names are unknown, and whether they are excepted.

    What it denies may be anything; what it allows is what can be told.
    """
    if denies or excepted:
        return compile_patterns(["*"]), not denies
    decidable = [name for name in names if all(map(is_known, variable_keys(name)))]
    return compile_patterns(decidable, shape=WildcardReach.ARN, variables=True), False


# ---- elements ---------------------------------------------------------------------------------------------


def _principals(element: object, *, is_exclusion: bool) -> Principals:
    """Read a Principal or (`is_exclusion`) a NotPrincipal: everybody, everybody of a kind, or certain identities."""
    if element == "*":
        return Principals(
            everyone=True, whole_kinds=frozenset(), identities=frozenset(), is_exclusion=is_exclusion
        )
    if not isinstance(element, Mapping) or not element:
        raise PolicyInvalid("Principal must be '*' or an object")
    _check_members(element, _PRINCIPAL_KINDS)
    everyone = False
    whole_kinds: set[str] = set()
    identities: set[Identity] = set()
    for kind, names in element.items():
        for name in _texts(names, f"Principal {kind}"):
            if name != "*":
                identities.add(Identity(kind, _account_name(name) if kind == "AWS" else name))
            elif kind == "AWS":
                everyone = True
            else:
                whole_kinds.add(kind)
    return Principals(everyone, frozenset(whole_kinds), frozenset(identities), is_exclusion)


def _account_name(name: str) -> str:
    """An AWS principal under the one name it has here: an account's ARN is its twelve digits."""
    root = _ACCOUNT_ROOT.fullmatch(name)
    if root is not None:
        return root[1]
    if is_account(name) or _PRINCIPAL_ARN.fullmatch(name) or _UNIQUE_ID.fullmatch(name):
        return name
    raise PolicyInvalid(f"{name!r} is not an AWS principal")


def _actions(names: Sequence[str]) -> Patterns:
    for name in names:
        if not _ACTION.fullmatch(name):
            raise PolicyInvalid(f"{name!r} is not an action")
    return compile_patterns([name.lower() for name in names])


def _services(actions: Sequence[str]) -> frozenset[str]:
    prefixes = {action.partition(":")[0].lower() for action in actions}
    return frozenset("*" if "*" in prefix or "?" in prefix else prefix for prefix in prefixes)


# ---- JSON -------------------------------------------------------------------------------------------------


def _json_object(text: str) -> Mapping[str, object]:
    """A JSON object in which no member is named twice."""
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise PolicyInvalid("not JSON") from None
    if not isinstance(document, dict):
        raise PolicyInvalid("must be a JSON object")
    return document


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """JSON keeps the last of two equal names; here the other might have been the one that denies."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise PolicyInvalid("an element occurs twice in one object")
    return document


def _no_constant(name: str) -> NoReturn:
    raise PolicyInvalid(f"{name} is not JSON")


def _check_members(document: Mapping[str, object], known: set[str]) -> None:
    unknown = sorted(document.keys() - known)
    if unknown:
        raise PolicyInvalid(f"unknown element {unknown[0]!r}")


def _optional_text(document: Mapping[str, object], name: str) -> str:
    value = document.get(name, "")
    if not isinstance(value, str):
        raise PolicyInvalid(f"{name} must be a string")
    return value


def _one_of(document: Mapping[str, object], name: str) -> tuple[bool, object]:
    """An element that has a Not-form: whether it is that, and its value."""
    plain, negated = name in document, f"Not{name}" in document
    if plain == negated:
        raise PolicyInvalid(f"needs either {name} or Not{name}")
    return negated, document[f"Not{name}" if negated else name]


def _texts(value: object, name: str) -> list[str]:
    """One text, or a list of them."""
    items = value if isinstance(value, list) else [value]
    texts = [text for text in items if isinstance(text, str)]
    if not texts or len(texts) < len(items):
        raise PolicyInvalid(f"{name} must be a string or a list of strings")
    return texts
