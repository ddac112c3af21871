"""Telephones whose owners want no more text messages.

A number comes here when its owner answers STOP (see `telephones`), and leaves by OptInPhoneNumber.
"""

from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.sns.documents import destinations
from redrive.aws.sns.documents.errors import PAGES, invalid
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Documents

OPT_OUT: Final[DocumentKind[str]] = DocumentKind(
    "sns_opt_out", lambda number: {"number": number}, lambda document: document["number"]
)


def key_of(account: str, region: str, number: str) -> str:
    """The key of a telephone number, with its plus sign or without."""
    return f"{account}/{region}/{number.removeprefix('+')}"


class OptOuts:
    """The numbers of each account's region that have opted out."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def has(self, call: Call, number: str) -> bool:
        """True if a number's owner wants no messages from the caller's account."""
        return await self._documents.get(OPT_OUT, key_of(call.account, call.region, number)) is not None

    async def check_if_phone_number_is_opted_out(self, call: Call, params: Structure) -> Structure:
        return {"isOptedOut": await self.has(call, _number(params))}

    async def list_phone_numbers_opted_out(self, call: Call, params: Structure) -> Structure:
        operation, prefix = "ListPhoneNumbersOptedOut", key_of(call.account, call.region, "")
        after = PAGES.after(operation, params)
        opt_outs = await self._documents.find(OPT_OUT, prefix, after, PAGES.size + 1)
        return PAGES.of(operation, params, opt_outs, str, lambda number: f"{prefix}{number}")

    async def opt_in_phone_number(self, call: Call, params: Structure) -> Structure:
        await self._documents.remove(OPT_OUT, key_of(call.account, call.region, _number(params)))
        return {}


def _number(params: Structure) -> str:
    number: str = params["phoneNumber"]
    if not destinations.is_phone(number):
        raise invalid("PhoneNumber Reason: input incorrectly formatted")
    return number
