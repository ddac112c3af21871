import asyncio
from base64 import b64decode

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from redrive.access.signing_pair import SigningPair, make_pair
from redrive.aws.sns.notifications import notification_renderer
from redrive.aws.sns.notifications.notification_renderer import Signer, certificate_path

_NOW = 1_767_225_600_000


@pytest.fixture(scope="module")
def pair() -> SigningPair:
    return make_pair(_NOW)


def _verify(pair: SigningPair, signature: str, text: str, algorithm: hashes.HashAlgorithm) -> None:
    key = x509.load_pem_x509_certificate(pair.pem).public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(b64decode(signature), text.encode(), PKCS1v15(), algorithm)


@pytest.mark.parametrize(("version", "algorithm"), [("1", hashes.SHA1()), ("2", hashes.SHA256())])
def test_a_signature_is_checked_by_the_certificate(
    pair: SigningPair, version: str, algorithm: hashes.HashAlgorithm
) -> None:
    signature = Signer(pair).sign_now("Message\nGrüße\n", version)
    _verify(pair, signature, "Message\nGrüße\n", algorithm)
    with pytest.raises(InvalidSignature):
        _verify(pair, signature, "Message\nGrüsse\n", algorithm)


async def test_signatures_made_in_threads_are_the_same(pair: SigningPair) -> None:
    signer = Signer(pair)
    texts = [f"text {number}" for number in range(20)]
    signatures = await asyncio.gather(*(signer.sign(text, "2") for text in texts))
    assert signatures == [Signer(pair).sign_now(text, "2") for text in texts]
    signer.close()


async def test_the_two_versions_are_told_apart(pair: SigningPair) -> None:
    signer = Signer(pair)
    assert signer.sign_now("text", "1") != signer.sign_now("text", "2")
    assert await signer.sign("text", "1") == signer.sign_now("text", "1")
    signer.close()


class _Counting(Signer):
    signed = 0

    def _sign(self, digest: bytes, version: str) -> str:
        self.signed += 1
        return super()._sign(digest, version)


async def test_many_subscribers_share_one_signature(pair: SigningPair) -> None:
    signer = _Counting(pair)
    await asyncio.gather(*(signer.sign("text", "1") for _ in range(50)))
    signer.sign_now("text", "1")
    assert signer.signed == 1
    signer.close()


async def test_a_cancelled_caller_does_not_cancel_the_signature_for_others(pair: SigningPair) -> None:
    signer = _Counting(pair)
    leaving, staying = (asyncio.create_task(signer.sign("text", "1")) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == Signer(pair).sign_now("text", "1")
    assert signer.signed == 1
    signer.close()


async def test_texts_signed_together_are_signed_once(pair: SigningPair) -> None:
    signer = _Counting(pair)
    texts = [(f"text {number}", version) for number in range(3) for version in ("1", "2")]
    signatures, *_ = await asyncio.gather(
        signer.sign_together(texts), signer.sign_together(texts), signer.sign(*texts[0])
    )
    assert signatures == [Signer(pair).sign_now(*text) for text in texts]
    assert await signer.sign_together(texts) == signatures
    assert signer.signed == len(texts)
    signer.close()


async def test_a_failed_signature_is_left_out_and_made_anew(pair: SigningPair) -> None:
    class Failing(Signer):
        fails = True

        def _sign(self, digest: bytes, version: str) -> str:
            if self.fails:
                raise ValueError
            return super()._sign(digest, version)

    signer = Failing(pair)
    assert await signer.sign_together([("text", "1")]) == [None]
    signer.fails = False
    assert await signer.sign("text", "1") == Signer(pair).sign_now("text", "1")
    signer.close()


def test_the_signature_asked_for_least_lately_is_forgotten(
    pair: SigningPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_renderer, "_REMEMBERED_MAX", 2)
    signer = _Counting(pair)
    for text in ("one", "two", "one", "three", "one"):
        signer.sign_now(text, "1")
    assert signer.signed == 3
    signer.sign_now("two", "1")
    assert signer.signed == 4


# ---- the pair ----------------------------------------------------------------------------------------------------


def test_the_certificate_is_served_under_its_own_digest(pair: SigningPair) -> None:
    path = certificate_path(pair)
    assert path.startswith("/SimpleNotificationService-")
    assert path.endswith(".pem")
    assert len(path) == len("/SimpleNotificationService-.pem") + 32
