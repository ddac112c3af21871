"""The settings of an account's region."""

from typing import Final

from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.apigateway.control.records import ACCOUNT, GatewayAccount
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

_ROLE: Final = "/cloudwatchRoleArn"
_THROTTLE: Final = {"burstLimit": 5000, "rateLimit": 10000.0}


class GatewayAccountOperations:
    """Shows and changes the settings of an account's region."""

    def __init__(self, engine: Engine, roles: ServiceRoles) -> None:
        """Keep them in this engine; logs may be written by these roles."""
        self._roles = roles
        self._documents = engine.resources.documents

    async def get_account(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - it has none
        return _as_structure(await self._documents.get(ACCOUNT, _key(call)) or GatewayAccount())

    async def update_account(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_UpdateAccount.html: the role that logs are written by."""

        def patched(account: GatewayAccount) -> GatewayAccount:
            for operation in params.get("patchOperations") or ():
                if operation.get("path") != _ROLE:
                    raise bad_request(f"Invalid patch path {operation.get('path')}")
                value = operation.get("value") or ""
                account = GatewayAccount("" if operation.get("op") == "remove" else value)
            return account

        default = patched(GatewayAccount())
        if default.role:
            await self._roles.check(call, default.role)
        updated_account = await self._documents.update_or_create(ACCOUNT, _key(call), default, patched)
        return _as_structure(updated_account)


def _key(call: Call) -> str:
    return f"{call.account}/{call.region}"


def _as_structure(account: GatewayAccount) -> Structure:
    return {
        "cloudwatchRoleArn": account.role or None,
        "throttleSettings": dict(_THROTTLE),
        "features": ["UsagePlans"],
        "apiKeyVersion": "4",
    }
