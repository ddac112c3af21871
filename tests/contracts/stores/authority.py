"""A certificate authority that a test makes, for servers and their clients."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Issues certificates; `file` has its own, for those who trust it."""

    def __init__(self, directory: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self.file = directory / "authority.pem"
        own = self._signed("authority", self._key.public_key(), is_authority=True)
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, file: Path) -> Path:
        """Write a certificate for that name and its key into a file, which the owner alone may read."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, key.public_key(), is_authority=False)
        plain = serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        file.touch(mode=0o600)
        file.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(serialization.Encoding.PEM, form, plain)
        )
        return file

    def _signed(self, name: str, key: ec.EllipticCurvePublicKey, *, is_authority: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if not is_authority:
            names = x509.SubjectAlternativeName([x509.DNSName(name)])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def owned(file: Path, content: bytes, like: Path) -> None:
    """Write a file that belongs to whom another belongs to, and that nobody else may read."""
    file.write_bytes(content)
    file.chmod(0o600)
    owner = like.stat()
    os.chown(file, owner.st_uid, owner.st_gid)
