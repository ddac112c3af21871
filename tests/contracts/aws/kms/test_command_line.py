"""KMS through the AWS CLI, unmodified, each call a process of its own."""

from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.aws.kms.keys import ACCOUNT
from tests.services.clients import CommandFailedError, cli
from tests.services.server import Server

Aws = Callable[..., Any]


@pytest.fixture
def aws(server_on_sqlite: Server, tmp_path: Path) -> Aws:
    return cli(server_on_sqlite, tmp_path, "kms")


def test_the_cli_encrypts_signs_and_grants(aws: Aws, tmp_path: Path) -> None:
    key = aws("create-key", "--description", "orders", "--tags", "TagKey=a,TagValue=b")["KeyMetadata"][
        "KeyId"
    ]
    aws("create-alias", "--alias-name", "alias/cli", "--target-key-id", key)
    order = tmp_path / "order"
    order.write_bytes(b"an order")
    plaintext = f"fileb://{order}"
    context = ("--encryption-context", "tenant=7")
    blob = aws("encrypt", "--key-id", "alias/cli", "--plaintext", plaintext, *context)["CiphertextBlob"]
    sealed = tmp_path / "sealed"
    sealed.write_bytes(b64decode(blob))
    opening = ("decrypt", "--ciphertext-blob", f"fileb://{sealed}", *context)
    assert b64decode(aws(*opening)["Plaintext"]) == b"an order"
    data_key = aws("generate-data-key", "--key-id", key, "--key-spec", "AES_256")
    assert set(data_key) >= {"CiphertextBlob", "Plaintext", "KeyId"}
    aws("rotate-key-on-demand", "--key-id", key)
    assert len(aws("list-key-rotations", "--key-id", key)["Rotations"]) == 1
    spec = ("--key-spec", "ECC_NIST_P256", "--key-usage", "SIGN_VERIFY")
    signer = aws("create-key", *spec)["KeyMetadata"]["KeyId"]
    signing = ("--key-id", signer, "--message", plaintext, "--signing-algorithm", "ECDSA_SHA_256")
    signature = aws("sign", *signing)["Signature"]
    signed = tmp_path / "signed"
    signed.write_bytes(b64decode(signature))
    assert aws("verify", *signing, "--signature", f"fileb://{signed}")["SignatureValid"] is True
    grantee = ("--grantee-principal", f"arn:aws:iam::{ACCOUNT}:root")
    grant = aws("create-grant", "--key-id", key, *grantee, "--operations", "Decrypt")["GrantId"]
    aws("revoke-grant", "--key-id", key, "--grant-id", grant)
    aws("disable-key", "--key-id", key)
    with pytest.raises(CommandFailedError, match="DisabledException"):
        aws(*opening)
    answer = aws("schedule-key-deletion", "--key-id", key, "--pending-window-in-days", "7")
    assert answer["KeyState"] == "PendingDeletion"
    assert aws("cancel-key-deletion", "--key-id", key)["KeyId"].endswith(key)
