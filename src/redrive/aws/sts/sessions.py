"""Sessions of roles and of users, and the identity of callers."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from redrive.access.identities import AMAZON, MAX_SESSION_SECONDS, USER_KEY, Role
from redrive.access.patterns import PolicyInvalid, Values
from redrive.access.policy_document import Form, new_policy
from redrive.access.secret import TOKEN_CHARS_MAX, Credentials, Session, account_in
from redrive.aws.gateway.identities import Sessions
from redrive.aws.kit.call import Call
from redrive.aws.sts.errors import denied, error, invalid
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.errors import common
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents

_POLICY_CHARS_MAX: Final = 2048
_CHAINED_SECONDS_MAX: Final = 3600
_FEDERATED_SECONDS: Final = 12 * 60 * 60
_ROOT_SECONDS_MAX: Final = 60 * 60
_NO_ID: Final = "AROA" + "A" * 16  # of a role that does not exist, where roles need not exist
_ROLE_ARN: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/(?:[!-~]*/)?[\w+=,.@-]{1,64}", re.ASCII)
_SESSION_TOKEN_SECONDS: Final = 12 * 60 * 60
_NOT_ENCODED: Final = "Redrive encodes no authorization messages: its refusals say their reason in clear."


class Assuming:
    """Begins sessions of roles."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def assume_role(self, call: Call, params: Structure) -> Structure:
        arn: str = params["RoleArn"]
        if not _ROLE_ARN.fullmatch(arn):
            raise invalid(f"{arn} is invalid")
        parent = call.principal.session
        tags = _session_tags(params, parent)
        role = await self._sessions.identities.role(arn)
        if self._sessions.identities.restricts:
            _check_trust(call, arn, role, params, tags)
        session = Session(
            account=parse_arn(arn).account,
            role=arn,
            unique_id=_NO_ID if role is None else role.id,
            name=params["RoleSessionName"],
            source_identity=_source_identity(params, parent),
            tags=tags,
            transitive=_transitive_tag_keys(params, parent),
            policies=_session_policies(params),
            policy_arns=await self._managed_policy_arns(arn.split(":")[4], params),
        )
        credentials = self._begin_session(session, _duration_seconds(params, role, parent))
        answer: Structure = {
            "Credentials": credentials_structure(credentials),
            "AssumedRoleUser": {
                "AssumedRoleId": f"{session.unique_id}:{session.name}",
                "Arn": f"arn:aws:sts::{session.account}:assumed-role/{arn.rpartition('/')[2]}/{session.name}",
            },
        }
        if packed_percent := _packed_percent(session, credentials):
            answer["PackedPolicySize"] = packed_percent
        if session.source_identity:
            answer["SourceIdentity"] = session.source_identity
        return answer

    async def get_federation_token(self, call: Call, params: Structure) -> Structure:
        """Begin a session under a name; it has the rights that both its policies and the caller have."""
        if call.principal.session is not None:
            raise common("AccessDeniedException", "Cannot call GetFederationToken with session credentials")
        if not call.account:
            raise denied(call.principal.name, "sts:GetFederationToken", "*")
        user = call.principal.keys.get("aws:username", "")
        session = Session(
            account=call.account,
            user=user,
            unique_id=call.principal.keys["aws:userid"] if user else "",
            federated=params["Name"],
            tags=_session_tags(params, None),
            policies=_session_policies(params),
            policy_arns=await self._managed_policy_arns(call.account, params),
        )
        seconds: int = params.get("DurationSeconds") or _FEDERATED_SECONDS
        credentials = self._begin_session(session, seconds if user else min(seconds, _ROOT_SECONDS_MAX))
        user_id = f"{call.account}:{session.federated}"
        arn = f"arn:aws:sts::{call.account}:federated-user/{session.federated}"
        return {
            "Credentials": credentials_structure(credentials),
            "FederatedUser": {"FederatedUserId": user_id, "Arn": arn},
            "PackedPolicySize": _packed_percent(session, credentials),
        }

    def _begin_session(self, session: Session, seconds: int) -> Credentials:
        credentials = self._sessions.begin(session, seconds)
        if len(credentials.token) > TOKEN_CHARS_MAX:
            raise error(
                "PackedPolicyTooLargeException",
                "Packed policy and tags consume more than 100% of the allotted space.",
            )
        return credentials

    async def _managed_policy_arns(self, account: str, params: Structure) -> tuple[str, ...]:
        """The managed policies of a session in an account; raises AwsError for one that is not there, or another's."""
        arns = tuple(each.get("arn", "") for each in params.get("PolicyArns") or ())
        for arn in arns:
            policy = await self._sessions.identities.managed_policy(arn)
            if policy is None or policy.account not in (account, AMAZON):
                raise error("MalformedPolicyDocumentException", f"Policy {arn} does not exist.")  # chosen
        return arns


def _packed_percent(session: Session, credentials: Credentials) -> int:
    """The percentage of the space for policies and tags that a session uses; 0: it has neither."""
    if not (session.policies or session.policy_arns or session.tags):
        return 0
    return max(1, len(credentials.token) * 100 // TOKEN_CHARS_MAX)


def credentials_structure(credentials: Credentials) -> Structure:
    """Credentials, as answers have them."""
    return {
        "AccessKeyId": credentials.access_key_id,
        "SecretAccessKey": credentials.secret,
        "SessionToken": credentials.token,
        "Expiration": credentials.expires_at,
    }


def _check_trust(call: Call, arn: str, role: Role | None, params: Structure, tags: Mapping[str, str]) -> None:
    """Refuse a caller that the role does not trust, or whose own policies do not allow it."""
    keys: dict[str, Values] = {"sts:rolesessionname": params["RoleSessionName"]}
    for name, key in (("ExternalId", "sts:externalid"), ("SourceIdentity", "sts:sourceidentity")):
        if params.get(name):
            keys[key] = params[name]
    for action in _needed_actions(params, tags):
        is_allowed = (
            role is not None
            and call.decide(
                action, arn, role.account, role.trust, keys, form=Form.TRUST, policy_decides=True
            ).allowed
        )
        if not is_allowed:
            raise denied(call.principal.name, action, arn)


def _needed_actions(params: Structure, tags: Mapping[str, str]) -> Iterator[str]:
    """The actions that a caller needs to assume a role with these parameters."""
    yield "sts:AssumeRole"
    if params.get("SourceIdentity"):
        yield "sts:SetSourceIdentity"
    if tags:
        yield "sts:TagSession"


def _source_identity(params: Structure, parent: Session | None) -> str:
    """The source identity of the session: once set, it cannot change."""
    identity: str = params.get("SourceIdentity") or ""
    inherited = "" if parent is None else parent.source_identity
    if identity and inherited and identity != inherited:
        raise common("AccessDeniedException", "The source identity of a session cannot be changed.")  # chosen
    return identity or inherited


def _session_tags(params: Structure, parent: Session | None) -> Mapping[str, str]:
    """The tags of a new session: those that the call passes, and the transitive ones of the caller's own session."""
    entries: list[Any] = params.get("Tags") or []
    if len({tag["Key"].lower() for tag in entries}) < len(entries):
        raise common(
            "InvalidParameterValue",
            "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
        )
    inherited = {} if parent is None else {name: parent.tags[name] for name in parent.transitive}
    tags = {tag["Key"]: tag["Value"] for tag in entries}
    conflicts = {name.lower() for name in inherited} & {name.lower() for name in tags}
    if conflicts:
        raise common(
            "InvalidParameterValue",
            "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key"
            " from the calling session.",
        )
    return inherited | tags


def _transitive_tag_keys(params: Structure, parent: Session | None) -> tuple[str, ...]:
    """The keys of the tags that sessions made from a new session inherit."""
    tag_keys = {tag["Key"].lower(): tag["Key"] for tag in params.get("Tags") or ()}
    transitive_keys = [tag_keys.get(key.lower()) for key in params.get("TransitiveTagKeys") or ()]
    if None in transitive_keys:
        raise common(
            "InvalidParameterValue",
            "The specified transitive tag key must be included in the requested tags.",
        )
    return (*(() if parent is None else parent.transitive), *filter(None, transitive_keys))


def _session_policies(params: Structure) -> tuple[str, ...]:
    text = params.get("Policy")
    if text is None:
        return ()
    if len(text) > _POLICY_CHARS_MAX:
        raise error("PackedPolicyTooLargeException", "Packed size of session policy is too large.")
    try:
        new_policy(text, Form.IDENTITY)
    except PolicyInvalid as problem:
        raise error(
            "MalformedPolicyDocumentException", f"The policy is not in the valid JSON format: {problem}."
        ) from None
    return (text,)


def _duration_seconds(params: Structure, role: Role | None, parent: Session | None) -> int:
    seconds: int = params.get("DurationSeconds") or MAX_SESSION_SECONDS
    if parent is not None and parent.role and seconds > _CHAINED_SECONDS_MAX:
        raise invalid(
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining"
        )
    if role is not None and seconds > role.max_session_seconds:
        raise invalid("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
    return seconds


class Identifying:
    """The operations that tell who a caller or another principal is."""

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
        seconds: int = params.get("DurationSeconds") or _SESSION_TOKEN_SECONDS
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
