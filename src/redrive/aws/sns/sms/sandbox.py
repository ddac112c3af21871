"""The SMS sandbox, in which an account of Amazon's begins and may only write to numbers it has verified.

Redrive puts no account into one and writes to any number; but numbers can be registered and verified as there, with
a code that is sent to them as a text message.
"""

from dataclasses import dataclass, replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.sns.documents.errors import PAGES, error
from redrive.aws.sns.sms.telephones import DirectTexts
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.document import Document

NUMBERS_MAX: Final = 10
CODE_DIGITS: Final = 6
_PENDING: Final = "Pending"
_VERIFIED: Final = "Verified"


@dataclass(frozen=True, slots=True)
class SandboxNumber(Document):
    """A telephone number on its way to being verified, or there."""

    number: str  # As given
    code: str  # Code that was sent to the owner
    status: str = _PENDING  # `Pending` or `Verified`


SANDBOX_NUMBER: Final = DocumentKind.of("sns_sandbox_number", SandboxNumber)


class SandboxOperations:
    """Operations on the SMS sandbox."""

    def __init__(self, engine: Engine, texts: DirectTexts) -> None:
        self._rng = engine.runtime.rng
        self._documents = engine.resources.documents
        self._texts = texts

    async def get_sms_sandbox_account_status(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as all
        return {"IsInSandbox": False}

    async def create_sms_sandbox_phone_number(self, call: Call, params: Structure) -> Structure:
        code = f"{self._rng.randrange(10**CODE_DIGITS):0{CODE_DIGITS}d}"
        number: str = params["PhoneNumber"]
        numbers = await self._documents.find(SANDBOX_NUMBER, _key(call, ""))
        if len(numbers) >= NUMBERS_MAX and all(each.number != number for each in numbers):
            raise error("UserError", f"An account has at most {NUMBERS_MAX} destination numbers")  # chosen
        await self._texts.check_phone(call, number)
        await self._documents.update_or_create(
            SANDBOX_NUMBER,
            _key(call, number),
            SandboxNumber(number, code),
            lambda current: replace(current, code=code),
        )
        await self._texts.tell(call, number, f"Your verification code is {code}.")
        return {}

    async def verify_sms_sandbox_phone_number(self, call: Call, params: Structure) -> Structure:
        key = _key(call, params["PhoneNumber"])
        stored_number = await self._documents.get(SANDBOX_NUMBER, key)
        if stored_number is None:
            raise _no_such_number()
        if params["OneTimePassword"] != stored_number.code:
            text = "The one-time password is not the one that was sent"  # chosen
            raise error("VerificationException", text)
        await self._documents.update(SANDBOX_NUMBER, key, lambda current: replace(current, status=_VERIFIED))
        return {}

    async def delete_sms_sandbox_phone_number(self, call: Call, params: Structure) -> Structure:
        if not await self._documents.remove(SANDBOX_NUMBER, _key(call, params["PhoneNumber"])):
            raise _no_such_number()
        return {}

    async def list_sms_sandbox_phone_numbers(self, call: Call, params: Structure) -> Structure:
        operation = "ListSMSSandboxPhoneNumbers"
        after, limit = PAGES.after(operation, params), PAGES.limit(operation, params)
        numbers = await self._documents.find(SANDBOX_NUMBER, _key(call, ""), after, limit + 1)

        def as_structure(number: SandboxNumber) -> Structure:
            return {"PhoneNumber": number.number, "Status": number.status}

        return PAGES.of(operation, params, numbers, as_structure, lambda number: _key(call, number.number))

    async def list_origination_numbers(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as all
        """https://docs.aws.amazon.com/sns/latest/api/API_ListOriginationNumbers.html; nobody has any here."""
        return PAGES.of("ListOriginationNumbers", params, (), str)


def _key(call: Call, number: str) -> str:
    return f"{call.account}/{call.region}/{number}"


def _no_such_number() -> Exception:
    return error("ResourceNotFound", "The phone number is not there")  # chosen
