"""Grants: permissions to use a key besides its policy. They are created, listed, retired and revoked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from redrive.access.policy import NOT_ALLOWED
from redrive.aws.kit.call import Call
from redrive.aws.kms.access import KeyAccess, check_enabled, covers, may_as
from redrive.aws.kms.errors import PAGES, denied, dry_run, error, not_found, not_valid, unsupported
from redrive.aws.kms.records import AGREES, ENCRYPTS, GRANT, MACS, SIGNS, Grant, KmsKey
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Documents, Draft

_ID_BYTES: Final = 32
_PAGE_SIZE: Final = 50
_ANY: Final = frozenset({"CreateGrant", "DescribeKey", "RetireGrant"})
#: The operations that a grant may allow, by the usage of its key, besides `_ANY` ("Grant operations", developer guide).
_OPERATIONS: Final[Mapping[str, frozenset[str]]] = {
    ENCRYPTS: frozenset(
        {
            *(
                "Decrypt",
                "Encrypt",
                "GenerateDataKey",
                "GenerateDataKeyPair",
                "GenerateDataKeyWithoutPlaintext",
            ),
            *("GenerateDataKeyPairWithoutPlaintext", "GetPublicKey", "ReEncryptFrom", "ReEncryptTo"),
        }
    ),
    SIGNS: frozenset({"GetPublicKey", "Sign", "Verify"}),
    AGREES: frozenset({"GetPublicKey", "DeriveSharedSecret"}),
    MACS: frozenset({"GenerateMac", "VerifyMac"}),
}


class Granting:
    """Creates, lists, retires and revokes grants."""

    def __init__(self, access: KeyAccess, documents: Documents, runtime: Runtime) -> None:
        self._access = access
        self._documents = documents
        self._rng = runtime.rng

    async def create_grant(self, call: Call, params: Structure) -> Structure:
        key = await self._access.find_key(call, params["KeyId"])
        parents = await self._access.check(call, key, "CreateGrant")
        check_enabled(key, call.now)
        new_grant = self._new_grant(call, key, params)
        # A caller who may do this by grants passes on no more than one of them gives.
        if parents and not any(covers(parent, new_grant) for parent in parents):
            raise denied(call.principal.name, "kms:CreateGrant", key.arn, NOT_ALLOWED)
        if params.get("DryRun"):
            raise dry_run()

        async def decide(draft: Draft) -> Grant:
            for _, existing in await draft.find(GRANT, f"{key.name.key}/"):
                if new_grant.name and _is_same(existing, new_grant):
                    return existing
            draft.put(GRANT, _document_key(new_grant), new_grant)
            return new_grant

        grant = await self._documents.transact(decide)
        return {"GrantId": grant.id, "GrantToken": grant.token}

    def _new_grant(self, call: Call, key: KmsKey, params: Structure) -> Grant:
        operations: Sequence[str] = params["Operations"]
        invalid_operations = sorted(set(operations) - _OPERATIONS[key.usage] - _ANY)
        if invalid_operations or not operations:
            raise not_valid(f"Operations {invalid_operations} are not valid for the key {key.arn}")
        constraints: Mapping[str, Mapping[str, str]] = params.get("Constraints") or {}
        if constraints.keys() - {"EncryptionContextEquals", "EncryptionContextSubset"}:
            raise unsupported("Redrive offers constraints of the encryption context alone.")
        if constraints and not key.symmetric:
            raise not_valid("Constraints are for symmetric encryption keys")
        grantee = params.get("GranteePrincipal") or params.get("GranteeServicePrincipal")
        if not grantee:
            raise not_valid("GranteePrincipal is required.")
        return Grant(
            id=self._rng.randbytes(_ID_BYTES).hex(),
            key=key.name,
            grantee=grantee,
            operations=tuple(dict.fromkeys(operations)),
            issuer=f"arn:aws:iam::{call.account}:root",
            created_at=call.now,
            token=self._rng.randbytes(_ID_BYTES).hex(),
            retirer=params.get("RetiringPrincipal") or "",
            name=params.get("Name") or "",
            context_equals=constraints.get("EncryptionContextEquals"),
            context_subset=constraints.get("EncryptionContextSubset"),
        )

    async def list_grants(self, call: Call, params: Structure) -> Structure:
        key = await self._access.find_key(call, params["KeyId"])
        await self._access.check(call, key, "ListGrants")
        grantee = params.get("GranteePrincipal") or params.get("GranteeServicePrincipal")
        matches = [
            grant
            for grant in await self._documents.find(GRANT, f"{key.name.key}/")
            if grant.id == (params.get("GrantId") or grant.id) and grant.grantee == (grantee or grant.grantee)
        ]
        return _grants_page("ListGrants", params, matches)

    async def list_retirable_grants(self, call: Call, params: Structure) -> Structure:
        principal, service = params.get("RetiringPrincipal"), params.get("RetiringServicePrincipal")
        if bool(principal) is bool(service):
            text = "You must specify either RetiringPrincipal or RetiringServicePrincipal, but not both."
            raise not_valid(text)
        retirer = principal or service
        grants = await self._documents.find(GRANT, f"{call.account}/{call.region}/")
        retirable = (grant for grant in grants if grant.retirer == retirer)
        return _grants_page("ListRetirableGrants", params, retirable)

    async def retire_grant(self, call: Call, params: Structure) -> Structure:
        grant = await self._grant_to_retire(call, params)
        if params.get("DryRun"):
            raise dry_run()
        arn = _arn_of(grant)
        refusal = call.first_denial("kms:RetireGrant", [arn])
        if refusal is not None:
            raise denied(call.principal.name, "kms:RetireGrant", arn, refusal)
        key = await self._access.find_key(call, arn)
        if not may_as(grant.retirer, call, key, "RetireGrant"):
            grants = await self._access.check(call, key, "RetireGrant")
            if grants and grant not in grants:  # a grant lets its grantee retire that one alone
                raise denied(call.principal.name, "kms:RetireGrant", arn, NOT_ALLOWED)
        await self._documents.remove(GRANT, _document_key(grant))
        return {}

    async def _grant_to_retire(self, call: Call, params: Structure) -> Grant:
        """The grant of a token, or of an id."""
        if token := params.get("GrantToken"):
            for grant in await self._documents.find(GRANT, f"{call.account}/{call.region}/"):
                if grant.token == token:
                    return grant
            raise error("InvalidGrantTokenException", "Grant token is not valid")
        if not params.get("KeyId") or not params.get("GrantId"):
            raise not_valid("A GrantToken, or a KeyId and a GrantId, is required.")
        key = await self._access.find_key(call, params["KeyId"])
        return await self._require_grant(key, params["GrantId"])

    async def revoke_grant(self, call: Call, params: Structure) -> Structure:
        key = await self._access.find_key(call, params["KeyId"])
        await self._access.check(call, key, "RevokeGrant")
        grant = await self._require_grant(key, params["GrantId"])
        if params.get("DryRun"):
            raise dry_run()
        await self._documents.remove(GRANT, _document_key(grant))
        return {}

    async def _require_grant(self, key: KmsKey, grant_id: str) -> Grant:
        grant = await self._documents.get(GRANT, f"{key.name.key}/{grant_id}")
        if grant is None:
            raise not_found(f"Grant ID {grant_id} not found")
        return grant


def _document_key(grant: Grant) -> str:
    return f"{grant.key.key}/{grant.id}"


def _arn_of(grant: Grant) -> str:
    return f"arn:aws:kms:{grant.key.region}:{grant.key.account}:key/{grant.key.name}"


def _is_same(grant: Grant, new_grant: Grant) -> bool:
    """True if a grant has the same name as a new one, and allows the same."""
    return all(
        getattr(grant, name) == getattr(new_grant, name)
        for name in ("name", "grantee", "operations", "retirer", "context_equals", "context_subset")
    )


def _grants_page(operation: str, params: Structure, grants: Iterable[Grant]) -> Structure:
    page, answer = PAGES.cut(
        operation, params, sorted(grants, key=_document_key), _document_key, size=_PAGE_SIZE
    )
    return {"Grants": [_as_structure(grant) for grant in page], **answer}


def _as_structure(grant: Grant) -> Structure:
    description: Structure = {
        "KeyId": _arn_of(grant),
        "GrantId": grant.id,
        "Name": grant.name,
        "CreationDate": grant.created_at,
        "GranteePrincipal": grant.grantee,
        "IssuingAccount": grant.issuer,
        "Operations": list(grant.operations),
    }
    if grant.retirer:
        description["RetiringPrincipal"] = grant.retirer
    constraints = {
        name: dict(pairs)
        for name, pairs in (
            ("EncryptionContextEquals", grant.context_equals),
            ("EncryptionContextSubset", grant.context_subset),
        )
        if pairs is not None
    }
    if constraints:
        description["Constraints"] = constraints
    return description
