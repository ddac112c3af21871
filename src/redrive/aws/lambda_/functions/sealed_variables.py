"""Environment variables of functions with a key: encrypted by KMS in the name of whoever configures them.

Whoever is shown a function needs the right to decrypt them; running it needs none, but a key that is enabled: at Amazon's
a grant stands for that. "Securing Lambda environment variables", Lambda developer guide.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.aws.encryption.data_keys import KeysInside
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import error, invalid
from redrive.aws.lambda_.documents.names import arn_of
from redrive.aws.lambda_.documents.records import Configuration
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.model.errors import Refused

_CONTEXT: Final = "aws:lambda:FunctionArn"
#: Lambda's errors for KMS's; any other is a denial.
_ERRORS: Final = {
    "DisabledException": "KMSDisabledException",
    "KMSInvalidStateException": "KMSInvalidStateException",
    "NotFoundException": "KMSNotFoundException",
}


class VariablesUnreadable(Refused):
    """A version cannot run, since the key of its variables cannot be used.

    Attributes:
        error: What callers are told, a 502.
    """

    def __init__(self, refusal: AwsError) -> None:
        text = _text("decrypt the environment variables", refusal)
        super().__init__(text)
        self.error = error(_ERRORS.get(refusal.code, "KMSAccessDeniedException"), text)


class SealedVariables:
    """Encrypts and decrypts the variables of versions."""

    def __init__(self, calls: InnerCalls, inside: KeysInside | None) -> None:
        self._calls = calls
        self._inside = inside  # Calls KMS for the server itself; None: there is no KMS

    async def seal(self, call: Call, configuration: Configuration, params: Structure) -> Configuration:
        """A new configuration with its variables encrypted by its KMS key, if it has one.

        Raises:
            AwsError: The caller may not use the key, or nobody can.
        """
        if not {"KMSKeyArn", "Environment"} & params.keys():
            return configuration
        if configuration.sealed_variables and "Environment" not in params:  # they move to another key
            configuration = replace(
                configuration,
                variables=await self._decrypt(call, configuration, "Decrypt"),
                sealed_variables="",
            )
        if not configuration.kms_key:
            return replace(configuration, sealed_variables="")
        request = {
            "KeyId": configuration.kms_key,
            "Plaintext": orjson.dumps(configuration.variables),
            "EncryptionContext": _context(configuration),
        }
        try:
            answer = await self._calls.call("kms", "Encrypt", request, call.principal, call.region)
        except AwsError as refused:
            raise _unusable(refused, "Encrypt") from refused
        ciphertext = b64encode(answer["CiphertextBlob"]).decode()
        return replace(configuration, variables=None, sealed_variables=ciphertext)

    async def readable(self, call: Call, version: Configuration) -> Configuration:
        """A version with its variables, if the caller may decrypt them; else as it is stored."""
        if not version.sealed_variables:
            return version
        try:
            variables = await self._decrypt(call, version, "Decrypt")
        except AwsError:
            return version
        return replace(version, variables=variables, sealed_variables="")

    async def of_run(self, version: Configuration) -> Mapping[str, str]:
        """The variables that a version runs with; raises VariablesUnreadable if its key cannot be used now."""
        if not version.sealed_variables:
            return version.variables or {}
        blob = b64decode(version.sealed_variables)
        if self._inside is None:
            raise VariablesUnreadable(AwsError("NotFoundException", "there is no KMS"))
        try:
            plaintext = await self._inside.opened(version.name.region, blob, _context(version))
        except AwsError as refusal:
            raise VariablesUnreadable(refusal) from refusal
        return orjson.loads(plaintext) or {}

    async def _decrypt(self, call: Call, version: Configuration, operation: str) -> Any:
        request = {
            "CiphertextBlob": b64decode(version.sealed_variables),
            "EncryptionContext": _context(version),
        }
        try:
            answer = await self._calls.call("kms", operation, request, call.principal, call.region)
        except AwsError as refusal:
            raise _unusable(refusal, operation) from refusal
        return orjson.loads(answer["Plaintext"])


def _context(version: Configuration) -> dict[str, str]:
    return {_CONTEXT: arn_of(version.name, None)}


def _unusable(refusal: AwsError, operation: str) -> AwsError:
    return invalid(_text(f"configure access to your environment variables for {operation}", refusal))


def _text(purpose: str, refusal: AwsError) -> str:
    return (
        f"Lambda was unable to {purpose} because the KMS key cannot be used. Please check your KMS key settings. KMS"
        f" Exception: {refusal.code} KMS Message: {refusal.message}"
    )
