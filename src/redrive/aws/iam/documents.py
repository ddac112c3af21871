"""Policy documents: their validation by IAM, and their form in answers.

Faults have the sentences of IAM, which was observed to look for them in this order.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from redrive.access.operators import OPERATORS
from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import Form, new_policy
from redrive.aws.iam.errors import malformed, too_many
from redrive.aws.kit.json_cursor import as_list

_SYNTAX: Final = "Syntax errors in policy."
_VERSION: Final = "Policy document must be version 2012-10-17 or greater."
_LEGACY: Final = "The policy failed legacy parsing"
_SIDS: Final = "Statement IDs (SID) in a single policy must be unique."
_NO_ACTIONS: Final = "Policy statement must contain actions."
_NO_RESOURCES: Final = "Policy statement must contain resources."
_NO_VENDOR: Final = "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
_COLONS: Final = "Actions/Condition can contain only one colon."
_BARE_RESOURCE: Final = "Resource vendor must be fully qualified and cannot contain regexes."

_OLD_VERSION: Final = "2008-10-17"
_LATEST_VERSION: Final = "2012-10-17"
_POLICY: Final = frozenset({"Version", "Id", "Statement"})
_STATEMENT: Final = frozenset(
    {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal", "NotPrincipal"}
)  # fmt: skip
_ACTIONS: Final = ("Action", "NotAction")
_RESOURCES: Final = ("Resource", "NotResource")
_ARN_PARTS: Final = 6
_PARTITION: Final = re.compile(r"aws[a-z-]*|\*")
_VENDOR: Final = re.compile(r"[a-zA-Z0-9.*?-]+")
_IAM_PATHS: Final = (
    *("user/", "federated-user/", "role/", "group/", "instance-profile/", "mfa/", "server-certificate/"),
    *("policy/", "sms-mfa/", "saml-provider/", "oidc-provider/", "report/", "access-report/"),
)
#: Services without regions in their ARNs, and the text that refuses one.
_WITHOUT_REGION: Final = {
    "iam": "IAM resource {} cannot contain region information.",
    "s3": "Resource {} can not contain region information.",
}
_SET_OPERATORS: Final = frozenset({"", "foranyvalue", "forallvalues"})
_NULL: Final = "null"
_NUMBER: Final = re.compile(r"[+-]?\d+")
_LONG: Final = range(-(2**63), 2**63)

Document = Mapping[str, Any]
_NO_JSON: Final = {Form.IDENTITY: "Syntax errors in policy.", Form.TRUST: "This policy contains invalid Json"}
_PROHIBITED: Final = {
    Form.IDENTITY: "Policy document should not specify a principal.",
    Form.TRUST: "Has prohibited field Resource",
}


def fault_of(document: object, form: Form, *, is_managed: bool) -> str | None:
    """The sentence for the first fault of a policy document; None: it has none of those that IAM has sentences for.

    A managed policy has to be of the latest version; inline policies need none, as those that SAM writes into roles.
    """
    if not isinstance(document, Mapping) or not _has_syntax(document):
        return _SYNTAX
    statements = as_list(document["Statement"])
    is_trust = form is Form.TRUST
    checks = (
        (_VERSION, is_managed and document.get("Version") != _LATEST_VERSION),
        (_LEGACY, any(_is_legacy(statement, is_trust=is_trust) for statement in statements)),
        (_SIDS, not _has_unique_sids(statements)),
        (_NO_ACTIONS, not all(_has_any(statement, _ACTIONS) for statement in statements)),
    )
    for text, is_violated in checks:
        if is_violated:
            return text
    fault = _first(map(_resource_fault, _texts(statements, _RESOURCES)))
    fault = fault or _first(map(_action_fault, _texts(statements, _ACTIONS)))
    if fault is None and not is_trust and not all(_has_any(each, _RESOURCES) for each in statements):
        return _NO_RESOURCES
    return fault


def _first(faults: Iterable[str | None]) -> str | None:
    return next((fault for fault in faults if fault is not None), None)


def _texts(statements: Iterable[Document], names: tuple[str, str]) -> list[str]:
    return [text for statement in statements for name in names for text in as_list(statement.get(name, []))]


def _has_any(statement: Document, names: tuple[str, str]) -> bool:
    return any(as_list(statement.get(name, [])) for name in names)


# ---- syntax -------------------------------------------------------------------------------------------------


def _has_syntax(document: Document) -> bool:
    statements = as_list(document.get("Statement"))
    return (
        document.keys() <= _POLICY
        and isinstance(document.get("Id", ""), str)
        and document.get("Version", _OLD_VERSION) in (_OLD_VERSION, _LATEST_VERSION)
        and bool(statements)
        and all(map(_is_statement, statements))
    )


def _is_statement(statement: object) -> bool:
    return (
        isinstance(statement, Mapping)
        and statement.keys() <= _STATEMENT
        and isinstance(statement.get("Sid", ""), str)
        and str(statement.get("Effect")).lower() in ("allow", "deny")
        and all(_is_stated_once(statement, names) for names in (_ACTIONS, _RESOURCES))
        and _is_condition(statement.get("Condition", {}))
    )


def _is_stated_once(statement: Document, names: tuple[str, str]) -> bool:
    values = [statement[name] for name in names if name in statement]
    return len(values) < len(names) and all(
        isinstance(text, str) for value in values for text in as_list(value)
    )


def _is_condition(condition: object) -> bool:
    return isinstance(condition, Mapping) and all(
        _is_operator(name)
        and isinstance(keys, Mapping)
        and not any(isinstance(value, Mapping) for value in keys.values())
        for name, keys in condition.items()
    )


def _is_operator(name: str) -> bool:
    quantifier, _, operator = name.lower().rpartition(":")
    return quantifier in _SET_OPERATORS and (_operator(operator) in OPERATORS or operator == _NULL)


def _operator(name: str) -> str:
    return name.lower().rpartition(":")[2].removesuffix("ifexists")


# ---- legacy parsing ---------------------------------------------------------------------------------------


def _is_legacy(statement: Document, *, is_trust: bool) -> bool:
    """True for a statement that an older parser of IAM's would refuse."""
    return (
        (not is_trust and statement["Effect"] not in ("Allow", "Deny"))
        or any(_lacks_parts(resource) for resource in _texts([statement], _RESOURCES))
        or not all(_has_valid_dates(name, keys) for name, keys in statement.get("Condition", {}).items())
    )


def _lacks_parts(resource: str) -> bool:
    """True for an ARN of a known partition without a service, or with too few parts."""
    parts = resource.split(":", _ARN_PARTS - 1)
    if parts[0] != "arn" or len(parts) <= len(("arn", "aws")) or not _PARTITION.fullmatch(parts[1]):
        return False
    return len(parts) < _ARN_PARTS or not parts[2]


def _has_valid_dates(operator: str, keys: Document) -> bool:
    if not _operator(operator).startswith("date"):
        return True
    return all(_is_date(str(value)) for values in keys.values() for value in as_list(values))


def _is_date(text: str) -> bool:
    """True if IAM reads the text as a date: as ISO 8601, or as seconds of 64 bits."""
    if _NUMBER.fullmatch(text):
        return len(text) <= len(str(_LONG.start)) and int(text) in _LONG
    try:
        OPERATORS["dateequals"].build([text], False)  # noqa: FBT003 - a Builder's own shape
    except PolicyInvalid:
        return False
    return True


def _has_unique_sids(statements: Iterable[Document]) -> bool:
    sids = [statement["Sid"] for statement in statements if statement.get("Sid")]
    return len(set(sids)) == len(sids)


# ---- resources and actions ----------------------------------------------------------------------------------


def _resource_fault(resource: str) -> str | None:
    """The sentence for a resource that is not acceptable; None: it is."""
    if resource == "*":
        return None
    if ":" not in resource:
        return f'Resource {resource} must be in ARN format or "*".'
    _, partition, *rest = resource.split(":", _ARN_PARTS - 1)
    if not _PARTITION.fullmatch(partition):
        absent_parts = ["*"] * (_ARN_PARTS - 2 - len(rest))
        padded_rest = ":".join([*rest, *absent_parts])
        return f'Partition "{partition}" is not valid for resource "arn:{partition}:{padded_rest}".'
    if not rest:
        return _BARE_RESOURCE
    service, *others = rest
    region, _, path = others if len(rest) == _ARN_PARTS - 2 else ("", "", "")
    if region and service in _WITHOUT_REGION:
        return _WITHOUT_REGION[service].format(resource)
    if service == "iam" and not path.startswith(("*", *_IAM_PATHS)):
        return f'IAM resource path must either be "*" or start with {", ".join(_IAM_PATHS)}.'
    return None


def _action_fault(action: str) -> str | None:
    """The sentence for an action that is not acceptable; None: it is."""
    if action == "*":
        return None
    vendor, *names = action.split(":")
    if not names:
        return _NO_VENDOR
    if len(names) > 1:
        return _COLONS
    return None if _VENDOR.fullmatch(vendor) else f"Vendor {vendor} is not valid"


def check_document(text: str, form: Form, chars_max: int, quota: str, *, is_managed: bool = False) -> None:
    """Refuse a policy document that IAM would refuse; `quota`: the text if it has too many characters, besides blanks.

    Raises:
        AwsError: `MalformedPolicyDocument` or `LimitExceeded`.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise malformed(_NO_JSON[form]) from None
    prohibited = form.value
    if isinstance(document, dict) and any(prohibited & each.keys() for each in _statements(document)):
        raise malformed(_PROHIBITED[form])
    if fault := fault_of(document, form, is_managed=is_managed):
        raise malformed(fault)
    if len("".join(text.split())) > chars_max:
        raise too_many(f"{quota}: {chars_max}")
    try:
        new_policy(text, form)
    except PolicyInvalid as problem:
        raise malformed(f"Syntax errors in policy. {problem}") from None


def _statements(document: dict[str, object]) -> list[dict[str, object]]:
    return [each for each in as_list(document.get("Statement")) if isinstance(each, dict)]


def url_encoded(text: str) -> str:
    """A policy document in the form of answers."""
    return quote(text, safe="")
