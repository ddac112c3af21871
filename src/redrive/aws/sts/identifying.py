"""Operations that tell who the caller is, and who others are."""

from typing import Final

from redrive.access.identities import USER_KEY
from redrive.access.session_tokens import Session, account_in
from redrive.aws.gateway.sessions import Sessions
from redrive.aws.kit.call import Call
from redrive.aws.sts.assuming import credentials_structure
from redrive.aws.sts.errors import denied, error, invalid
from redrive.aws.wire.errors import common
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents

_SECONDS: Final = 12 * 60 * 60
_ROOT_SECONDS_MAX: Final = 60 * 60
_NOT_ENCODED: Final = "Redrive encodes no authorization messages: its refusals say their reason in clear."


class Identifying:
    """Tells callers who they are, and who others are."""

    def __init__(self, sessions: Sessions, documents: Documents) -> None:
        self._sessions = sessions
        self._documents = documents

    async def get_caller_identity(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        """https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html; no policy forbids it."""
        user_id = call.principal.keys.get("aws:userid", call.account)
        return {"UserId": user_id, "Account": call.account, "Arn": call.principal.name}

    async def get_session_token(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/STS/latest/APIReference/API_GetSessionToken.html; no policy is needed."""
        if call.principal.session is not None:
            raise common("AccessDeniedException", "Cannot call GetSessionToken with session credentials")
        if not call.account:
            raise denied(call.principal.name, "sts:GetSessionToken", "*")
        if params.get("TokenCode") or params.get("SerialNumber"):
            raise invalid("Redrive knows no MFA devices: leave SerialNumber and TokenCode out.")
        user = call.principal.keys.get("aws:username", "")
        seconds: int = params.get("DurationSeconds") or _SECONDS
        session = Session(account=call.account)
        if user:
            session = Session(account=call.account, user=user, unique_id=call.principal.keys["aws:userid"])
        else:
            seconds = min(seconds, _ROOT_SECONDS_MAX)
        return {"Credentials": credentials_structure(self._sessions.begin(session, seconds))}

    async def get_access_key_info(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        access_key_id = params["AccessKeyId"]
        key = await self._documents.get(USER_KEY, access_key_id)
        account = account_in(access_key_id) if key is None else key.account
        if account is None:
            raise invalid(f"Invalid Access Key ID {access_key_id}")  # chosen
        return {"Account": account}

    async def decode_authorization_message(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        """https://docs.aws.amazon.com/STS/latest/APIReference/API_DecodeAuthorizationMessage.html: there are none."""
        raise error("InvalidAuthorizationMessageException", _NOT_ENCODED)
