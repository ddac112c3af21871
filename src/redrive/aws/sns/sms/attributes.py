"""Attributes of all text messages of an account's region."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from redrive.aws.kit.attributes import PERCENTAGE, ROLE_ARN
from redrive.aws.kit.call import Call
from redrive.aws.sns.documents.errors import error, invalid
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Documents

SMS_ATTRIBUTES: Final[DocumentKind[Mapping[str, str]]] = DocumentKind("sns_sms_attributes", dict, dict)
DEFAULT_TYPE: Final = "DefaultSMSType"
DEFAULT_SENDER: Final = "DefaultSenderID"
ROLE: Final = "DeliveryStatusIAMRole"
SAMPLING_RATE: Final = "DeliveryStatusSuccessSamplingRate"
MONTHLY_LIMIT: Final = "MonthlySpendLimit"
MONTHLY_LIMIT_DEFAULT: Final = "1"
TYPES: Final = ("Promotional", "Transactional")
SENDER: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9]{1,11}")


class SmsAttributeOperations:
    """Operations on the attributes of all text messages."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def get_sms_attributes(self, call: Call, params: Structure) -> Structure:
        stored = await self._documents.get(SMS_ATTRIBUTES, _key(call)) or {}
        names: list[str] = params.get("attributes") or []
        everything = {MONTHLY_LIMIT: MONTHLY_LIMIT_DEFAULT, **stored}
        attributes = {name: value for name, value in everything.items() if not names or name in names}
        return {"attributes": attributes}

    async def set_sms_attributes(self, call: Call, params: Structure) -> Structure:
        attributes: Mapping[str, str] = params["attributes"]
        for name, value in attributes.items():
            _check_attribute(name, value)
        await self._documents.update_or_create(
            SMS_ATTRIBUTES, _key(call), dict(attributes), lambda stored: {**stored, **attributes}
        )
        return {}


def _key(call: Call) -> str:
    return f"{call.account}/{call.region}"


def _check_attribute(name: str, value: str) -> None:
    if name == "UsageReportS3Bucket" and value:
        raise invalid("UsageReportS3Bucket Reason: The bucket you provided does not exist")
    rule = _RULES.get(name)
    if rule is None:
        raise error("InvalidParameter", f"{name} is not a valid attribute")
    if not rule(value):
        fault = "is not an integer between 0-100" if name == SAMPLING_RATE else "is invalid"
        raise error("InvalidParameter", f"{name} {fault}")


_RULES: Final[Mapping[str, Callable[[str], bool]]] = {
    DEFAULT_TYPE: TYPES.__contains__,
    DEFAULT_SENDER: lambda value: not value or SENDER.fullmatch(value) is not None,
    ROLE: lambda value: not value or ROLE_ARN.parse(value) is not None,
    SAMPLING_RATE: lambda value: PERCENTAGE.parse(value) is not None,
    MONTHLY_LIMIT: lambda value: value.isascii() and value.isdigit(),
    "UsageReportS3Bucket": lambda value: not value,  # there are no buckets here
}
