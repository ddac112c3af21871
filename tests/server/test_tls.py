import asyncio
import os
import socket
import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from redrive.model.http import Response
from redrive.server.http import HttpFront
from redrive.server.limits import HttpLimits
from redrive.server.tls import LocalCertificate, local_authority, server_context
from redrive.settings import CertificateUnusable
from tests.server.client import Client, get

_NOW = time.time_ns() // 1_000_000  # OpenSSL compares with the real time
_DAY = 86_400_000


def _served(kept: LocalCertificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(kept.server_file.read_bytes())


def _trusting(kept: LocalCertificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=kept.authority_file)


async def _started(kept: LocalCertificate) -> HttpFront:
    front = HttpFront(
        lambda request: Response(body=f"{request.scheme}{request.path}".encode()),
        HttpLimits(sweep_seconds=0.01),
        now=lambda: _NOW,
        new_request_id=lambda: "",
    )
    await front.start("127.0.0.1", 0, server_context(kept.server_file, kept.server_file))
    return front


async def test_a_client_that_trusts_the_authority_is_served(tmp_path: Path) -> None:
    kept = local_authority(tmp_path, [], _NOW)
    front = await _started(kept)
    client = await Client.connect(front.port, _trusting(kept))
    assert (await client.ask(get("/a") + get("/b"))).body == b"https/a"
    assert (await client.answer()).body == b"https/b"
    await client.close()
    await front.drain(1)


async def test_a_client_without_the_authority_refuses_the_certificate(tmp_path: Path) -> None:
    front = await _started(local_authority(tmp_path, [], _NOW))
    with pytest.raises(ssl.SSLCertVerificationError):
        await Client.connect(front.port, ssl.create_default_context())
    await front.drain(0)


async def test_a_refusal_over_tls_is_read_too(tmp_path: Path) -> None:
    kept = local_authority(tmp_path, [], _NOW)
    front = await _started(kept)
    client = await Client.connect(front.port, _trusting(kept))
    assert (await client.ask(b"RUBBISH\r\n\r\n")).status == 400
    await client.close()
    await front.drain(1)


async def test_an_idle_client_does_not_delay_the_shutdown(tmp_path: Path) -> None:
    kept = local_authority(tmp_path, [], _NOW)
    front = await _started(kept)
    resting = await asyncio.to_thread(_resting, front.port, _trusting(kept))
    async with asyncio.timeout(5):
        await front.drain(60)
    resting.close()


def _resting(port: int, trust: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection with one answer behind it, whose owner looks at it no more: so do pools of most clients."""
    plain = socket.create_connection(("127.0.0.1", port))
    client = trust.wrap_socket(plain, server_hostname="localhost")
    client.sendall(get("/a"))
    assert client.recv(1000).endswith(b"https/a")
    return client


def test_the_certificate_names_loopback_and_the_hosts(tmp_path: Path) -> None:
    kept = local_authority(
        tmp_path / "new" / "folder", ["redrive.example", "10.1.2.3", "0.0.0.0", "::"], _NOW
    )
    names = _served(kept).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == {"localhost", "redrive.example"}
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"127.0.0.1", "::1", "10.1.2.3"}


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        kept = local_authority(tmp_path, [], _NOW)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"authority-key.pem": 0o600, "server.pem": 0o600, "authority.pem": 0o644}
    assert b"PRIVATE" not in kept.authority_file.read_bytes()


@pytest.mark.parametrize(
    ("days", "hosts", "is_kept"),
    [(0, [], True), (366, [], True), (368, [], False), (0, ["redrive.example"], False)],
)
def test_a_certificate_is_renewed_when_it_must_be(
    tmp_path: Path, days: int, hosts: list[str], is_kept: bool
) -> None:
    first = local_authority(tmp_path, [], _NOW)
    served, authority = first.server_file.read_bytes(), first.authority_file.read_bytes()
    second = local_authority(tmp_path, hosts, _NOW + days * _DAY)
    assert (second.server_file.read_bytes() == served) is is_kept
    assert second.authority_file.read_bytes() == authority


def test_an_authority_near_its_end_is_replaced_with_what_it_signed(tmp_path: Path) -> None:
    authority = local_authority(tmp_path, [], _NOW).authority_file.read_bytes()
    later = local_authority(tmp_path, [], _NOW + 3300 * _DAY)
    assert later.authority_file.read_bytes() != authority
    _served(later).verify_directly_issued_by(
        x509.load_pem_x509_certificate(later.authority_file.read_bytes())
    )


@pytest.mark.parametrize("spoilt", ["authority-key.pem", "server.pem"])
def test_spoilt_files_are_made_again(tmp_path: Path, spoilt: str) -> None:
    local_authority(tmp_path, [], _NOW)
    (tmp_path / spoilt).write_bytes(b"-----BEGIN CERTIFICATE-----\nnonsense\n")
    kept = local_authority(tmp_path, [], _NOW)
    _served(kept).verify_directly_issued_by(x509.load_pem_x509_certificate(kept.authority_file.read_bytes()))


def test_the_advice_names_the_file(tmp_path: Path) -> None:
    kept = local_authority(tmp_path, [], _NOW)
    assert f"AWS_CA_BUNDLE={tmp_path / 'authority.pem'}" in kept.advice


def test_a_context_wants_its_files(tmp_path: Path) -> None:
    with pytest.raises(CertificateUnusable, match=f"cannot read the certificate in {tmp_path / 'none'}"):
        server_context(tmp_path / "none", tmp_path / "none")


def test_a_key_of_another_certificate_is_refused_by_the_files_names(tmp_path: Path) -> None:
    first = local_authority(tmp_path / "first", [], _NOW).server_file
    second = local_authority(tmp_path / "second", [], _NOW).server_file
    with pytest.raises(CertificateUnusable, match=f"certificate in {first} with the key in {second}"):
        server_context(first, second)


def test_a_key_with_a_passphrase_is_refused_without_a_prompt(tmp_path: Path) -> None:
    server = local_authority(tmp_path, [], _NOW).server_file
    key = serialization.load_pem_private_key(server.read_bytes(), password=None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(CertificateUnusable, match=f"the key in {locked} has a passphrase"):
        server_context(server, locked)
