"""Reads data-protection policies; what is not understood, or cannot be carried out here, is refused.

The texts of the refusals are chosen, but for those of DataDirection; the rules are those of "Understanding data
protection policies", "Data protection policy operations" and "Custom data identifier constraints".
"""

import re
from collections.abc import Callable, Mapping, Sequence
from string import ascii_letters, digits
from typing import Any, Final

import orjson

from redrive.model.protection import Finder
from redrive.protocols.aws.sns.protection import identifiers
from redrive.protocols.aws.sns.protection.identifiers.custom import CustomRefused, custom
from redrive.protocols.aws.sns.protection.policy import (
    EVERYBODY,
    INBOUND,
    OUTBOUND,
    Audit,
    Deidentify,
    Deny,
    ProtectionPolicy,
    Statement,
)

BYTES_MAX: Final = 30 * 1024
CUSTOM_MAX: Final = 10
STATEMENTS_MAX: Final = 100  # chosen: as many as an access policy may have
VERSION: Final = "2021-06-01"
MASKS: Final = frozenset("*" + ascii_letters + digits + r" !$%&()+,-./\:;<=>@[]^_`|~#")

_GROUP_BEGINNING: Final = "/aws/vendedlogs/"
_GROUP: Final = re.compile(r"[.\-_/#A-Za-z0-9]{1,512}")
_SAMPLE_RATE: Final = re.compile("[0-9]{1,2}")
_IDENTIFIER: Final = re.compile("arn:aws[a-z-]*:dataprotection::aws:data-identifier/(.+)")
_ACCOUNT: Final = re.compile("[0-9]{12}")
_ROOT: Final = re.compile("arn:aws[a-z-]*:iam::([0-9]{12}):root")
_PRINCIPAL: Final = re.compile("arn:aws[a-z-]*:(?:iam|sts)::[0-9]{12}:.+")

Json = Mapping[str, Any]


class ProtectionPolicyInvalid(ValueError):  # noqa: N818 - an answer, named as a caller says it
    """It cannot be carried out; says why."""


def read_protection_policy(text: str) -> ProtectionPolicy:
    """Read one.

    Raises:
        ProtectionPolicyInvalid: It is not acceptable.
    """
    policy = _policy(text)
    _only(policy, "", "Name", "Description", "Version", "Configuration", "Statement")
    _text(policy, "", "Name")
    if "Description" in policy:
        _text(policy, "", "Description")
    if policy.get("Version") != VERSION:
        raise ProtectionPolicyInvalid(f"Version must be {VERSION}")
    finders = _custom_finders(policy.get("Configuration", {}))
    listed = policy.get("Statement")
    if not isinstance(listed, list) or not listed:
        raise ProtectionPolicyInvalid("Statement must be a list that is not empty")
    if len(listed) > STATEMENTS_MAX:
        raise ProtectionPolicyInvalid(f"Statement must have {STATEMENTS_MAX} elements at most")
    statements = tuple(
        _statement(_object(one, "Statement must be a list of objects"), finders) for one in listed
    )
    if sum(isinstance(one.operation, Audit) for one in statements) > 1:
        raise ProtectionPolicyInvalid("only one Statement can have an Audit operation")
    return ProtectionPolicy(statements, finders)


def _policy(text: str) -> Json:
    refusal = f"must be a JSON object of at most {BYTES_MAX} bytes"
    if len(text.encode()) > BYTES_MAX:
        raise ProtectionPolicyInvalid(refusal)
    try:
        return _object(orjson.loads(text), refusal)
    except orjson.JSONDecodeError:
        raise ProtectionPolicyInvalid(refusal) from None


# ---- identifiers -------------------------------------------------------------------------------------------------


def _custom_finders(configuration: Any) -> dict[str, Finder]:
    where = "Configuration"
    configuration = _object(configuration, f"{where} must be an object")
    _only(configuration, where, "CustomDataIdentifier")
    listed = configuration.get("CustomDataIdentifier", [])
    where = f"{where} CustomDataIdentifier"
    if not isinstance(listed, list) or len(listed) > CUSTOM_MAX:
        raise ProtectionPolicyInvalid(f"{where} must be a list of at most {CUSTOM_MAX} objects")
    finders: dict[str, Finder] = {}
    for one in listed:
        one = _object(one, f"{where} must be a list of at most {CUSTOM_MAX} objects")  # noqa: PLW2901 - the same, of a known type
        _only(one, where, "Name", "Regex")
        name, regex = _text(one, where, "Name"), _text(one, where, "Regex")
        if name in finders or name in identifiers.NAMES or name in identifiers.WITHOUT_PATTERN:
            raise ProtectionPolicyInvalid(f"{where} Name {name} stands for another data identifier")
        try:
            finders[name] = custom(name, regex)
        except CustomRefused as refusal:
            raise ProtectionPolicyInvalid(f"{where} {refusal}") from refusal
    return finders


def _identifier(name: str, finders: dict[str, Finder]) -> str:
    """The identifier's name; its finder is among the others then."""
    if name in finders:
        return name
    managed = _IDENTIFIER.fullmatch(name)
    if managed is None or managed[1] not in identifiers.NAMES | identifiers.WITHOUT_PATTERN:
        raise ProtectionPolicyInvalid(f"Statement DataIdentifier {name} does not exist")
    if managed[1] in identifiers.WITHOUT_PATTERN:
        raise ProtectionPolicyInvalid(
            f"Statement DataIdentifier {name} is not supported by this server, which finds patterns only"
        )
    finders[managed[1]] = identifiers.managed(managed[1])
    return managed[1]


# ---- statements --------------------------------------------------------------------------------------------------


def _statement(statement: Json, finders: dict[str, Finder]) -> Statement:
    direction = statement.get("DataDirection")
    if direction not in (INBOUND, OUTBOUND):
        raise ProtectionPolicyInvalid(f"Statement DataDirection must be either {INBOUND} or {OUTBOUND}")
    _only(statement, "Statement", "Sid", "DataDirection", "Principal", "DataIdentifier", "Operation")
    if "Sid" in statement:
        _text(statement, "Statement", "Sid")
    principals = frozenset(_principal(one) for one in _texts(statement, "Principal"))
    names = tuple(dict.fromkeys(_identifier(one, finders) for one in _texts(statement, "DataIdentifier")))
    operation = _operation(statement.get("Operation"))
    if direction == OUTBOUND and isinstance(operation, Audit):
        raise ProtectionPolicyInvalid(f"Statement Operation Audit must be {INBOUND}")
    return Statement(direction, principals, names, operation)


def _principal(name: str) -> str:
    if root := _ROOT.fullmatch(name):
        return root[1]
    if name == EVERYBODY or _ACCOUNT.fullmatch(name) or _PRINCIPAL.fullmatch(name):
        return name
    raise ProtectionPolicyInvalid(f"Statement Principal {name} is none")


def _operation(operation: Any) -> Audit | Deidentify | Deny:
    refusal = f"Statement Operation must be one of {', '.join(_OPERATIONS)}"
    operation = _object(operation, refusal)
    if len(operation) != 1 or not operation.keys() <= _OPERATIONS.keys():
        raise ProtectionPolicyInvalid(refusal)
    ((name, settings),) = operation.items()
    where = f"Statement Operation {name}"
    return _OPERATIONS[name](_object(settings, f"{where} must be an object"), where)


def _deny(settings: Json, where: str) -> Deny:
    _only(settings, where)
    return Deny()


def _deidentify(settings: Json, where: str) -> Deidentify:
    _only(settings, where, "MaskConfig", "RedactConfig")
    if len(settings) != 1:
        raise ProtectionPolicyInvalid(f"{where} must have either MaskConfig or RedactConfig")
    ((name, config),) = settings.items()
    config = _object(config, f"{where} {name} must be an object")
    if name == "RedactConfig":
        _only(config, f"{where} {name}")
        return Deidentify("")
    _only(config, f"{where} {name}", "MaskWithCharacter")
    character = _text(config, f"{where} {name}", "MaskWithCharacter")
    if character not in MASKS:
        raise ProtectionPolicyInvalid(f"{where} {name} MaskWithCharacter is not a supported character")
    return Deidentify(character)


def _audit(settings: Json, where: str) -> Audit:
    _only(settings, where, "SampleRate", "FindingsDestination", "NoFindingsDestination")
    rate = str(settings.get("SampleRate"))
    if not _SAMPLE_RATE.fullmatch(rate):
        raise ProtectionPolicyInvalid(f"{where} SampleRate must be an integer between 0 and 99")
    findings = _destination(settings, where, "FindingsDestination")
    no_findings = _destination(settings, where, "NoFindingsDestination")
    if findings is None and no_findings is None:
        raise ProtectionPolicyInvalid(f"{where} must have a FindingsDestination or a NoFindingsDestination")
    return Audit(int(rate), findings, no_findings)


def _destination(settings: Json, where: str, name: str) -> str | None:
    """The log group; empty where there is a destination without one."""
    if name not in settings:
        return None
    where = f"{where} {name}"
    destination = _object(settings[name], f"{where} must be an object")
    for elsewhere in ("Firehose", "S3"):
        if elsewhere in destination:
            raise ProtectionPolicyInvalid(f"{where} {elsewhere} is not supported by this server")
    _only(destination, where, "CloudWatchLogs")
    if "CloudWatchLogs" not in destination:
        return ""
    where = f"{where} CloudWatchLogs"
    logs = _object(destination["CloudWatchLogs"], f"{where} must be an object")
    _only(logs, where, "LogGroup")
    group = _text(logs, where, "LogGroup")
    if not group.startswith(_GROUP_BEGINNING) or not _GROUP.fullmatch(group):
        raise ProtectionPolicyInvalid(
            f"{where} LogGroup must be a log group's name that begins with {_GROUP_BEGINNING}"
        )
    return group


_OPERATIONS: Final[Mapping[str, Callable[[Json, str], Audit | Deidentify | Deny]]] = {
    "Audit": _audit,
    "Deidentify": _deidentify,
    "Deny": _deny,
}

# ---- JSON --------------------------------------------------------------------------------------------------------


def _object(value: Any, refusal: str) -> Json:
    if not isinstance(value, dict):
        raise ProtectionPolicyInvalid(refusal)
    return value


def _only(document: Json, where: str, *known: str) -> None:
    """What is not known cannot be carried out."""
    if unknown := sorted(document.keys() - set(known)):
        raise ProtectionPolicyInvalid(f"{where} {unknown[0]} is unknown".lstrip())


def _text(document: Json, where: str, name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise ProtectionPolicyInvalid(f"{where} {name} must be a string that is not empty".lstrip())
    return value


def _texts(statement: Json, name: str) -> Sequence[str]:
    values = statement.get(name)
    if not isinstance(values, list) or not values or not all(isinstance(one, str) for one in values):
        raise ProtectionPolicyInvalid(f"Statement {name} must be a list of strings that is not empty")
    return values
