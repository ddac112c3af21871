import asyncio
import json
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.json_world import Asked, ask_each, requests
from tests.fuzz.kms_world import (
    BLOB,
    CURVE,
    EXTERNAL,
    GRANT,
    KEY,
    MAC,
    MESSAGE,
    MULTI,
    OFF,
    RSA,
    SHARED,
    SIGNATURE,
    TOKEN,
    KmsWorld,
)
from tests.fuzz.watched import Worlds

_POLICY: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*"}],
    }
)
_CONTEXT: Final = {"tenant": "7"}
_IMPORT: Final = {"WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048"}
#: Of somebody else, on the curve P-256.
_PUBLIC_KEY: Final = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEjlM7b6C/e0YluzBmfAH7YH75+LioD+9bMAYocDGHsqNz6x294DMYNm0Gn4Om9ZAAU8c2M8sEGyHFXhqGwfQA"
    "tA=="
)
#: A request of each operation that is accepted, but for those that are named below.
RIGHT: Final[dict[str, dict[str, Any]]] = {
    "CancelKeyDeletion": {"KeyId": OFF},
    "CreateAlias": {"AliasName": "alias/b", "TargetKeyId": KEY},
    "CreateGrant": {
        "KeyId": KEY,
        "GranteePrincipal": "arn:aws:iam::111111111111:root",
        "Operations": ["Decrypt"],
        "Constraints": {"EncryptionContextSubset": _CONTEXT},
        "Name": "n",
    },
    "CreateKey": {"Description": "d", "Policy": _POLICY, "Tags": [{"TagKey": "k", "TagValue": "v"}]},
    "Decrypt": {"CiphertextBlob": BLOB, "KeyId": KEY},
    "DeleteAlias": {"AliasName": "alias/a"},
    "DeleteImportedKeyMaterial": {"KeyId": EXTERNAL},
    "DeriveSharedSecret": {"KeyId": SHARED, "KeyAgreementAlgorithm": "ECDH", "PublicKey": _PUBLIC_KEY},
    "DescribeKey": {"KeyId": "alias/a", "GrantTokens": [TOKEN]},
    "DisableKey": {"KeyId": KEY},
    "DisableKeyRotation": {"KeyId": KEY},
    "EnableKey": {"KeyId": KEY},
    "EnableKeyRotation": {"KeyId": KEY, "RotationPeriodInDays": 90},
    "Encrypt": {"KeyId": KEY, "Plaintext": MESSAGE, "EncryptionContext": _CONTEXT},
    "GenerateDataKey": {"KeyId": KEY, "KeySpec": "AES_256", "EncryptionContext": _CONTEXT},
    "GenerateDataKeyPair": {"KeyId": KEY, "KeyPairSpec": "ECC_NIST_P256"},
    "GenerateDataKeyPairWithoutPlaintext": {"KeyId": KEY, "KeyPairSpec": "ECC_NIST_P256"},
    "GenerateDataKeyWithoutPlaintext": {"KeyId": KEY, "NumberOfBytes": 32},
    "GenerateMac": {"KeyId": MAC, "Message": MESSAGE, "MacAlgorithm": "HMAC_SHA_256"},
    "GenerateRandom": {"NumberOfBytes": 8},
    "GetKeyPolicy": {"KeyId": KEY, "PolicyName": "default"},
    "GetKeyRotationStatus": {"KeyId": KEY},
    "GetParametersForImport": {"KeyId": EXTERNAL, **_IMPORT},
    "GetPublicKey": {"KeyId": CURVE},
    "ImportKeyMaterial": {
        "KeyId": EXTERNAL,
        "ImportToken": MESSAGE,
        "EncryptedKeyMaterial": MESSAGE,
        "ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE",
    },
    "ListAliases": {"KeyId": KEY, "Limit": 1},
    "ListGrants": {"KeyId": KEY, "GrantId": GRANT},
    "ListKeyPolicies": {"KeyId": KEY},
    "ListKeyRotations": {"KeyId": KEY, "IncludeKeyMaterial": "ALL_KEY_MATERIAL"},
    "ListKeys": {"Limit": 2},
    "ListResourceTags": {"KeyId": KEY},
    "ListRetirableGrants": {"RetiringPrincipal": "arn:aws:iam::000000000000:root"},
    "PutKeyPolicy": {"KeyId": KEY, "PolicyName": "default", "Policy": _POLICY},
    "ReEncrypt": {
        "CiphertextBlob": BLOB,
        "DestinationKeyId": RSA,
        "DestinationEncryptionAlgorithm": "RSAES_OAEP_SHA_1",
    },
    "ReplicateKey": {"KeyId": MULTI, "ReplicaRegion": "eu-west-1"},
    "RetireGrant": {"GrantToken": TOKEN},
    "RevokeGrant": {"KeyId": KEY, "GrantId": GRANT},
    "RotateKeyOnDemand": {"KeyId": KEY},
    "ScheduleKeyDeletion": {"KeyId": KEY, "PendingWindowInDays": 7},
    "Sign": {"KeyId": CURVE, "Message": MESSAGE, "MessageType": "RAW", "SigningAlgorithm": "ECDSA_SHA_256"},
    "TagResource": {"KeyId": KEY, "Tags": [{"TagKey": "k", "TagValue": "v"}]},
    "UntagResource": {"KeyId": KEY, "TagKeys": ["k"]},
    "UpdateAlias": {"AliasName": "alias/a", "TargetKeyId": MULTI},
    "UpdateKeyDescription": {"KeyId": KEY, "Description": "d"},
    "UpdatePrimaryRegion": {"KeyId": MULTI, "PrimaryRegion": "eu-west-1"},
    "Verify": {
        "KeyId": CURVE,
        "Message": MESSAGE,
        "Signature": SIGNATURE,
        "SigningAlgorithm": "ECDSA_SHA_256",
    },
    "VerifyMac": {"KeyId": MAC, "Message": MESSAGE, "Mac": MESSAGE, "MacAlgorithm": "HMAC_SHA_256"},
}
#: Wants a token that was given out, a code of the message, and a replica.
_REFUSED: Final = ["ImportKeyMaterial", "UpdatePrimaryRegion", "VerifyMac"]


@settings(max_examples=30)  # each world has an RSA key made
@given(st.lists(requests(RIGHT), min_size=1, max_size=12))
def test_a_refusal_of_kms_changes_nothing_and_nothing_fails(asked: list[Asked]) -> None:
    asyncio.run(ask_each(KmsWorld(), asked))


def test_every_operation_of_kms_is_asked() -> None:
    assert RIGHT.keys() == KmsWorld().kms.operations.keys()


def test_the_unmodified_requests_of_kms_are_accepted() -> None:
    async def ask_all() -> list[str]:
        refused, worlds = [], Worlds(KmsWorld)
        for operation, params in RIGHT.items():
            world = await worlds.next()
            if (await world.ask(operation, params)).status != 200:
                refused.append(operation)
        await worlds.close()
        return refused

    assert asyncio.run(ask_all()) == _REFUSED
