"""Sign, Verify, public keys, message authentication codes, and pairs of data keys."""

import hmac
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kms import ciphertext, private_keys
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.encrypting import (
    check_algorithm,
    check_distinct,
    check_dry_run,
    check_no_recipient,
    checked_context,
)
from redrive.aws.kms.errors import error, unsupported, wrong_usage
from redrive.aws.kms.material import Materials
from redrive.aws.kms.private_keys import new_private_key, to_der
from redrive.aws.kms.records import (
    AGREES,
    ALGORITHM_MEMBERS,
    ECDH,
    MACS,
    SIGNS,
    SPECS,
    SYMMETRIC,
    KmsKey,
    algorithms_of,
)
from redrive.aws.wire.shapes import Structure

_DIGESTS: Final = {f"HMAC_SHA_{bits}": f"sha{bits}" for bits in (224, 256, 384, 512)}


class Signing:
    """Signs, authenticates, and shows public keys."""

    def __init__(self, access: KeyAccess, materials: Materials) -> None:
        self._access = access
        self._materials = materials

    # ---- signatures ---------------------------------------------------------------------------------------

    async def sign(self, call: Call, params: Structure) -> Structure:
        key, algorithm, is_digest = await self._signing_key(call, params, "Sign")
        content = self._materials.opened(key, key.current)
        signature = private_keys.sign(content, algorithm, params["Message"], is_digest=is_digest)
        check_dry_run(params)
        return {"KeyId": key.arn, "Signature": signature, "SigningAlgorithm": algorithm}

    async def verify(self, call: Call, params: Structure) -> Structure:
        key, algorithm, is_digest = await self._signing_key(call, params, "Verify")
        content = self._materials.opened(key, key.current)
        message, signature = params["Message"], params["Signature"]
        check_dry_run(params)
        if not private_keys.is_signature(content, algorithm, message, signature, is_digest=is_digest):
            raise error("KMSInvalidSignatureException")
        return {"KeyId": key.arn, "SignatureValid": True, "SigningAlgorithm": algorithm}

    async def _signing_key(self, call: Call, params: Structure, operation: str) -> tuple[KmsKey, str, bool]:
        """The key, the algorithm, and true if the message is a digest; raises AwsError."""
        key = await self._access.usable_key(call, params["KeyId"], operation)
        if key.usage != SIGNS:
            raise wrong_usage(key, operation)
        algorithm: str = params["SigningAlgorithm"]
        check_algorithm(key, algorithm)
        kind = params.get("MessageType") or "RAW"
        if kind not in ("RAW", "DIGEST"):
            raise unsupported(f"Redrive does not offer messages of the type {kind}.")
        return key, algorithm, kind == "DIGEST"

    async def get_public_key(self, call: Call, params: Structure) -> Structure:
        key = await self._access.usable_key(call, params["KeyId"], "GetPublicKey")
        if key.symmetric or key.usage == MACS:
            raise unsupported(f"{key.arn} has no public key.")
        return {
            "KeyId": key.arn,
            "PublicKey": private_keys.public_key(self._materials.opened(key, key.current)),
            "CustomerMasterKeySpec": key.spec,
            "KeySpec": key.spec,
            "KeyUsage": key.usage,
            ALGORITHM_MEMBERS[key.usage]: list(algorithms_of(key.spec, key.usage)),
        }

    # ---- secrets that two keys share ---------------------------------------------------------------------------

    async def derive_shared_secret(self, call: Call, params: Structure) -> Structure:
        check_no_recipient(params)
        key = await self._access.usable_key(call, params["KeyId"], "DeriveSharedSecret")
        if key.usage != AGREES:
            raise wrong_usage(key, "DeriveSharedSecret")
        secret = private_keys.shared_secret(self._materials.opened(key, key.current), params["PublicKey"])
        check_dry_run(params)
        return {
            "KeyId": key.arn,
            "SharedSecret": secret,
            "KeyAgreementAlgorithm": ECDH,
            "KeyOrigin": key.origin,
        }

    # ---- message authentication codes -----------------------------------------------------------------------

    async def generate_mac(self, call: Call, params: Structure) -> Structure:
        key, mac = await self._mac(call, params, "GenerateMac")
        check_dry_run(params)
        return {"KeyId": key.arn, "Mac": mac, "MacAlgorithm": params["MacAlgorithm"]}

    async def verify_mac(self, call: Call, params: Structure) -> Structure:
        key, mac = await self._mac(call, params, "VerifyMac")
        check_dry_run(params)
        if not hmac.compare_digest(mac, params["Mac"]):
            raise error("KMSInvalidMacException")
        return {"KeyId": key.arn, "MacValid": True, "MacAlgorithm": params["MacAlgorithm"]}

    async def _mac(self, call: Call, params: Structure, operation: str) -> tuple[KmsKey, bytes]:
        """The key, and the authentication code that it makes of the message; raises AwsError."""
        key = await self._access.usable_key(call, params["KeyId"], operation)
        if key.usage != MACS:
            raise wrong_usage(key, operation)
        algorithm: str = params["MacAlgorithm"]
        if algorithm not in algorithms_of(key.spec, key.usage):
            text = f"Algorithm {algorithm} is incompatible with key spec {key.spec}."
            raise error("InvalidKeyUsageException", text)
        content = self._materials.opened(key, key.current)
        return key, hmac.digest(content, params["Message"], _DIGESTS[algorithm])

    # ---- pairs of data keys ---------------------------------------------------------------------------------

    async def generate_data_key_pair(self, call: Call, params: Structure) -> Structure:
        return await self._pair(call, params, "GenerateDataKeyPair")

    async def generate_data_key_pair_without_plaintext(self, call: Call, params: Structure) -> Structure:
        answer = await self._pair(call, params, "GenerateDataKeyPairWithoutPlaintext")
        del answer["PrivateKeyPlaintext"]
        return answer

    async def _pair(self, call: Call, params: Structure, operation: str) -> Structure:
        """A new pair of keys, the private one in clear and encrypted by a key of KMS; raises AwsError."""
        check_no_recipient(params)
        context, spec = checked_context(params.get("EncryptionContext")), params["KeyPairSpec"]
        if spec not in SPECS or spec == SYMMETRIC:
            raise unsupported(f"Redrive does not offer pairs of the spec {spec}.")
        check_distinct(context)
        key = await self._access.usable_key(call, params["KeyId"], operation, context)
        if not key.symmetric:
            raise wrong_usage(key, operation)
        check_dry_run(params)
        private = to_der(await new_private_key(spec, call.account))
        content = self._materials.opened(key, key.current)
        nonce = self._materials.random_bytes(ciphertext.NONCE_BYTES)
        return {
            "KeyId": key.arn,
            "KeyPairSpec": spec,
            "KeyMaterialId": key.current.id,
            "PublicKey": private_keys.public_key(private),
            "PrivateKeyPlaintext": private,
            "PrivateKeyCiphertextBlob": ciphertext.encrypt(
                key, key.current, content, private, context, nonce
            ),
        }
