"""A subscriber that checks signatures as Amazon's guide tells it to, with nothing of this project's."""

import urllib.request
from base64 import b64decode
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

_OF_NOTIFICATIONS = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
_OF_CONFIRMATIONS = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")


def check(message: dict[str, Any], pem: bytes) -> None:
    """Check a message as it was received, by the certificate it names.

    Raises:
        cryptography.exceptions.InvalidSignature: Somebody changed it, or somebody else signed it.
    """
    names = _OF_NOTIFICATIONS if message["Type"] == "Notification" else _OF_CONFIRMATIONS
    signed = "".join(f"{name}\n{message[name]}\n" for name in names if message.get(name) is not None)
    algorithm = {"1": hashes.SHA1(), "2": hashes.SHA256()}[message["SignatureVersion"]]
    key = x509.load_pem_x509_certificate(pem).public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(b64decode(message["Signature"]), signed.encode(), PKCS1v15(), algorithm)


def fetch(url: str) -> bytes:
    """Return the content that is served at a URL."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        content: bytes = answer.read()
    return content
