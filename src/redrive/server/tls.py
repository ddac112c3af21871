"""TLS: contexts from given files, and for `--tls auto` a certificate authority of this machine's own."""

import ipaddress
import os
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from redrive.settings import CertificateUnusable

_ALWAYS: Final = ("localhost", "127.0.0.1", "::1")
_UNSPECIFIED: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  no client can ask for these names
_AUTHORITY_DAYS: Final = 3650
_SERVER_DAYS: Final = 397
"""Apple's clients refuse a server certificate that is valid for more than 398 days."""
_RENEWAL_DAYS: Final = 30
"""How long before its end a certificate is replaced; only a start does it."""
_BACKDATED: Final = timedelta(days=1)
"""The clocks of a team's machines differ."""
_OWNER_ONLY: Final = 0o600
_EVERYBODY: Final = 0o644


def server_context(cert_file: Path, key_file: Path) -> ssl.SSLContext:
    """A context for serving https with the PEM files given; both may be one file.

    Raises:
        CertificateUnusable: A file cannot be read, or they hold no certificate chain and its key.
    """
    _check(cert_file, "certificate", x509.load_pem_x509_certificates)
    _check(key_file, "key", lambda pem: serialization.load_pem_private_key(pem, password=None))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert_file, key_file)
    except ssl.SSLError as error:
        raise CertificateUnusable(
            f"cannot use the certificate in {cert_file} with the key in {key_file}: {error.reason}"
        ) from error
    return context


def _check(file: Path, what: str, load: Callable[[bytes], object]) -> None:
    """OpenSSL's own complaints name neither the file nor which of the two it is; and it asks for passphrases."""
    try:
        load(file.read_bytes())
    except OSError as error:
        raise CertificateUnusable(f"cannot read the {what} in {file}: {error.strerror}") from error
    except TypeError as error:  # of an encrypted key
        raise CertificateUnusable(f"the {what} in {file} has a passphrase: write it without one") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateUnusable(f"{file} holds no {what} in PEM") from error


@dataclass(frozen=True, slots=True)
class LocalCertificate:
    """The files of `local_authority`."""

    server_file: Path  # The server's certificate and key, for both arguments of `server_context`
    authority_file: Path  # The certificate that clients are to trust; without its key

    @property
    def advice(self) -> str:
        """Advice for making clients trust the certificate, to be printed."""
        path = self.authority_file
        return (
            f"TLS certificates are signed by a local authority: {path}\n"
            f"  AWS CLI and SDKs:  export AWS_CA_BUNDLE={path}\n"
            f"  Azure, requests:   export REQUESTS_CA_BUNDLE={path}\n"
            f"  OpenSSL, Go:       export SSL_CERT_FILE={path}\n"
            f"  Node.js:           export NODE_EXTRA_CA_CERTS={path}\n"
            f"  curl:              curl --cacert {path} …"
        )


def local_authority(folder: Path, hosts: Iterable[str], now: int) -> LocalCertificate:
    """Keep an authority in `folder`, and a server certificate for `hosts` and for this machine's loopback.

    What is there is used while it is whole, covers the hosts and has more than 30 days left. Keys are in files
    that only their owner reads, each with its certificate, so that the two are never of different makes.

    Args:
        folder: Created where it is missing.
        hosts: Names and addresses clients will ask for; addresses that mean "any" are left out.
        now: Milliseconds since the epoch.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    local = LocalCertificate(folder / "server.pem", folder / "authority.pem")
    instant = datetime.fromtimestamp(now / 1000, UTC)
    names = sorted({*_ALWAYS, *hosts} - _UNSPECIFIED)
    authority = _read_identity(folder / "authority-key.pem")
    if authority is None or not authority.outlives(instant, _SERVER_DAYS):
        authority = _make_authority(instant)
        _write(folder / "authority-key.pem", authority.pem(), _OWNER_ONLY)
    _write(local.authority_file, authority.certificate.public_bytes(serialization.Encoding.PEM), _EVERYBODY)
    server = _read_identity(local.server_file)
    if server is None or not server.serves(names, authority) or not server.outlives(instant, _RENEWAL_DAYS):
        _write(local.server_file, _make_server(names, authority, instant).pem(), _OWNER_ONLY)
    return local


@dataclass(frozen=True, slots=True)
class _Identity:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def pem(self) -> bytes:
        encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        key = self.key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
        return key + self.certificate.public_bytes(encoding)

    def outlives(self, instant: datetime, days: int) -> bool:
        return self.certificate.not_valid_after_utc > instant + timedelta(days=days)

    def serves(self, names: list[str], authority: "_Identity") -> bool:
        """True if the certificate has all these names and was signed by this authority."""
        covered_names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if not set(_general_names(names)) <= set(covered_names):
            return False
        return (
            _key_id(self.certificate)
            == authority.certificate.extensions.get_extension_for_class(
                x509.SubjectKeyIdentifier
            ).value.digest
        )


def _key_id(certificate: x509.Certificate) -> bytes | None:
    """The identifier of the key that signed `certificate`."""
    return certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier


def _read_identity(path: Path) -> _Identity | None:
    """The key and certificate in `path`, or None if they are missing or spoilt: they are only made again."""
    try:
        pem = path.read_bytes()
        key = serialization.load_pem_private_key(pem, password=None)
        certificate = x509.load_pem_x509_certificate(pem)
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    return _Identity(key, certificate)


def _make_authority(instant: datetime) -> _Identity:
    """A new authority; it can sign servers' certificates, and no other authorities."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Redrive local authority")
    builder = (
        _builder(name, name, key, instant, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return _Identity(key, builder.sign(key, hashes.SHA256()))


def _make_server(names: list[str], authority: _Identity, instant: datetime) -> _Identity:
    """A new certificate for these names, signed by the authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate.subject
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        _builder(_name("Redrive"), issuer, key, instant, _SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_general_names(names)), critical=False)
        .add_extension(signer, critical=False)
    )
    return _Identity(key, builder.sign(authority.key, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, instant: datetime, days: int
) -> x509.CertificateBuilder:
    """A certificate valid for so many days, and a little before now, for clients whose clock is behind."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(instant - _BACKDATED)
        .not_valid_after(instant + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """The use of a key: signing certificates, or else TLS."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_names(names: list[str]) -> list[x509.GeneralName]:
    return [_general_name(name) for name in names]


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace `path` in one step; nobody `mode` leaves out can read it at any moment."""
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    fresh.replace(path)
