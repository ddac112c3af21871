"""Reads data-protection policies; what is not understood, or cannot be carried out here, is refused.

The texts of the refusals are chosen, but for those of DataDirection; the rules are those of "Understanding data
protection policies", "Data protection policy operations" and "Custom data identifier constraints".
"""

import re
from collections.abc import Callable, Mapping
from string import ascii_letters, digits
from typing import Final

from redrive.aws.kit.json_cursor import FaultTexts, JsonCursor, read_object
from redrive.aws.sns.protection.identifiers.custom import CustomRefused, custom_finder
from redrive.aws.sns.protection.identifiers.managed import NAMES, WITHOUT_PATTERN, finder_of
from redrive.aws.sns.protection.policy import (
    EVERYBODY,
    INBOUND,
    OUTBOUND,
    Audit,
    Deidentify,
    Deny,
    ProtectionPolicy,
    ProtectionStatement,
)
from redrive.model.protection import Finder

BYTES_MAX: Final = 30 * 1024
CUSTOM_MAX: Final = 10
STATEMENTS_MAX: Final = 100  # chosen: as many as an access policy may have
VERSION: Final = "2021-06-01"
MASKS: Final = frozenset("*" + ascii_letters + digits + r" !$%&()+,-./\:;<=>@[]^_`|~#")

_GROUP_BEGINNING: Final = "/aws/vendedlogs/"
_GROUP: Final = re.compile(r"[.\-_/#A-Za-z0-9]{1,512}")
_SAMPLE_RATE: Final = re.compile("[0-9]{1,2}")
_IDENTIFIER: Final = re.compile("arn:aws[a-z-]*:dataprotection:[a-z0-9-]*:(?:aws)?:data-identifier/(.+)")
_ACCOUNT: Final = re.compile("[0-9]{12}")
_ROOT: Final = re.compile("arn:aws[a-z-]*:iam::([0-9]{12}):root")
_PRINCIPAL: Final = re.compile("arn:aws[a-z-]*:(?:iam|sts)::[0-9]{12}:.+")

_FAULT_TEXTS: Final = FaultTexts(" ", "is unknown", "must be an object", "must be a string that is not empty")


class ProtectionPolicyInvalid(ValueError):  # noqa: N818 - an answer, named as a caller says it
    """A data-protection policy that cannot be carried out, with the reason."""


def read_protection_policy(text: str) -> ProtectionPolicy:
    """The policy that a text is; raises ProtectionPolicyInvalid."""
    policy = _read_document(text)
    policy.only(("Name", "Description", "Version", "Configuration", "Statement"))
    policy.text("Name", empty=False)
    if "Description" in policy.members:
        policy.text("Description", empty=False)
    if policy.members.get("Version") != VERSION:
        policy.refuse("Version", f"must be {VERSION}")
    finders = _read_custom_finders(policy)
    elements = policy.members.get("Statement")
    if not isinstance(elements, list) or not elements:
        policy.refuse("Statement", "must be a list that is not empty")
    if len(elements) > STATEMENTS_MAX:
        policy.refuse("Statement", f"must have {STATEMENTS_MAX} elements at most")
    statements = tuple(
        _read_statement(policy.at("Statement", statement, "must be a list of objects"), finders)
        for statement in elements
    )
    if sum(isinstance(statement.operation, Audit) for statement in statements) > 1:
        raise ProtectionPolicyInvalid("only one Statement can have an Audit operation")
    return ProtectionPolicy(statements, finders)


def _read_document(text: str) -> JsonCursor:
    refusal = f"must be a JSON object of at most {BYTES_MAX} bytes"
    document = read_object(text) if len(text.encode()) <= BYTES_MAX else None
    if document is None:
        raise ProtectionPolicyInvalid(refusal)
    return JsonCursor(document, ProtectionPolicyInvalid, _FAULT_TEXTS)


# ---- identifiers -------------------------------------------------------------------------------------------------


def _read_custom_finders(policy: JsonCursor) -> dict[str, Finder]:
    if "Configuration" not in policy.members:
        return {}
    configuration = policy.object("Configuration")
    configuration.only(("CustomDataIdentifier",))
    elements = configuration.members.get("CustomDataIdentifier", [])
    rule = f"must be a list of at most {CUSTOM_MAX} objects"
    if not isinstance(elements, list) or len(elements) > CUSTOM_MAX:
        configuration.refuse("CustomDataIdentifier", rule)
    finders: dict[str, Finder] = {}
    for element in elements:
        identifier = configuration.at("CustomDataIdentifier", element, rule)
        identifier.only(("Name", "Regex"))
        name, regex = identifier.text("Name", empty=False), identifier.text("Regex", empty=False)
        if name in finders or name in NAMES or name in WITHOUT_PATTERN:
            identifier.refuse("Name", f"{name} is the name of another data identifier")
        try:
            finders[name] = custom_finder(name, regex)
        except CustomRefused as refusal:
            identifier.refuse("", str(refusal))
    return finders


def _read_identifier(name: str, finders: dict[str, Finder]) -> str:
    """The name of a data identifier; the finder of a managed one is added to the finders."""
    if name in finders:
        return name
    match = _IDENTIFIER.fullmatch(name)
    identifier = match[1] if match else ""
    if identifier not in NAMES | WITHOUT_PATTERN:
        raise ProtectionPolicyInvalid(f"Statement DataIdentifier {name} does not exist")
    if identifier in WITHOUT_PATTERN:
        raise ProtectionPolicyInvalid(
            f"Statement DataIdentifier {name} is not supported by this server, which finds patterns only"
        )
    finders[identifier] = finder_of(identifier)
    return identifier


# ---- statements --------------------------------------------------------------------------------------------------


def _read_statement(statement: JsonCursor, finders: dict[str, Finder]) -> ProtectionStatement:
    """Read one statement; finders of the managed identifiers that it names are added to `finders`.

    Raises:
        ProtectionPolicyInvalid: By `JsonCursor.refuse`, too.
    """
    direction = statement.members.get("DataDirection")
    if direction not in (INBOUND, OUTBOUND):
        statement.refuse("DataDirection", f"must be either {INBOUND} or {OUTBOUND}")
    statement.only(("Sid", "DataDirection", "Principal", "DataIdentifier", "Operation"))
    if "Sid" in statement.members:
        statement.text("Sid", empty=False)
    principals = frozenset(map(_read_principal, statement.texts("Principal")))
    names = tuple(
        dict.fromkeys(_read_identifier(name, finders) for name in statement.texts("DataIdentifier"))
    )
    operation = _read_operation(statement)
    if direction == OUTBOUND and isinstance(operation, Audit):
        statement.refuse("Operation", f"Audit must be {INBOUND}")
    return ProtectionStatement(direction, principals, names, operation)


def _read_principal(name: str) -> str:
    if root := _ROOT.fullmatch(name):
        return root[1]
    if name == EVERYBODY or _ACCOUNT.fullmatch(name) or _PRINCIPAL.fullmatch(name):
        return name
    raise ProtectionPolicyInvalid(f"Statement Principal {name} is none")


def _read_operation(statement: JsonCursor) -> Audit | Deidentify | Deny:
    rule = f"must be one of {', '.join(_OPERATIONS)}"
    operation = statement.object("Operation", rule)
    if len(operation.members) != 1 or not operation.members.keys() <= _OPERATIONS.keys():
        statement.refuse("Operation", rule)
    (name,) = operation.members
    return _OPERATIONS[name](operation.object(name))


def _read_deny(settings: JsonCursor) -> Deny:
    settings.only(())
    return Deny()


def _read_deidentify(settings: JsonCursor) -> Deidentify:
    settings.only(("MaskConfig", "RedactConfig"))
    if len(settings.members) != 1:
        settings.refuse("", "must have either MaskConfig or RedactConfig")
    (name,) = settings.members
    config = settings.object(name)
    if name == "RedactConfig":
        config.only(())
        return Deidentify("")
    config.only(("MaskWithCharacter",))
    character = config.text("MaskWithCharacter", empty=False)
    if character not in MASKS:
        config.refuse("MaskWithCharacter", "is not a supported character")
    return Deidentify(character)


def _read_audit(settings: JsonCursor) -> Audit:
    settings.only(("SampleRate", "FindingsDestination", "NoFindingsDestination"))
    rate = str(settings.members.get("SampleRate"))
    if not _SAMPLE_RATE.fullmatch(rate):
        settings.refuse("SampleRate", "must be an integer between 0 and 99")
    findings = _read_destination(settings, "FindingsDestination")
    no_findings = _read_destination(settings, "NoFindingsDestination")
    if findings is None and no_findings is None:
        settings.refuse("", "must have a FindingsDestination or a NoFindingsDestination")
    return Audit(int(rate), findings, no_findings)


def _read_destination(settings: JsonCursor, name: str) -> str | None:
    """The log group of a destination; empty if it names none; None if there is no such destination."""
    if name not in settings.members:
        return None
    destination = settings.object(name)
    for service in ("Firehose", "S3"):
        if service in destination.members:
            destination.refuse(service, "is not supported by this server")
    destination.only(("CloudWatchLogs",))
    if "CloudWatchLogs" not in destination.members:
        return ""
    logs = destination.object("CloudWatchLogs")
    logs.only(("LogGroup",))
    group = logs.text("LogGroup", empty=False)
    if not group.startswith(_GROUP_BEGINNING) or not _GROUP.fullmatch(group):
        logs.refuse("LogGroup", f"must be a log group's name that begins with {_GROUP_BEGINNING}")
    return group


_OPERATIONS: Final[Mapping[str, Callable[[JsonCursor], Audit | Deidentify | Deny]]] = {
    "Audit": _read_audit,
    "Deidentify": _read_deidentify,
    "Deny": _read_deny,
}
