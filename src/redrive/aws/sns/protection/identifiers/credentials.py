"""Credentials, and addresses of devices."""

from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from redrive.aws.sns.protection.identifiers.rows import IdentifierRow, Rows

# Up to the end of the armour, or to where it was cut: two hyphens stand nowhere inside of it.
_ARMOUR: Final = "-----BEGIN {name}-----(?:[^-]|-[^-])*(?:-----END {name}-----)?"
_PUTTY: Final = (
    r"PuTTY-User-Key-File-[0-9]: [^\r\n]*(?:\r?\n(?:(?:Encryption|Comment|Public-Lines|Key-Derivation|Argon2-[A-Za-z]+"
    r"|Private-Lines|Private-MAC|Private-Hash): [^\r\n]*|[A-Za-z0-9+/=]+))*"
)
_OCTETS: Final = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
_BASE_64: Final = "A-Za-z0-9/+="


def _armour(names: str) -> IdentifierRow:
    return IdentifierRow(_ARMOUR.format(name=names), before="", after="", any_case=False)


def _is_address(text: str) -> bool:
    try:
        IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return False
    return True


ROWS: Final[Rows] = {
    "AwsSecretKey": IdentifierRow(
        "[A-Za-z0-9/+]{40}",
        "aws_secret_access_key, credentials, secret access key, secret key, set-awscredential",
        before=f"(?:^|[^{_BASE_64}]|=)",  # name=value
        after=f"(?:[^{_BASE_64}]|$)",
        any_case=False,
    ),
    "OpenSshPrivateKey": _armour("OPENSSH PRIVATE KEY"),
    "PgpPrivateKey": _armour("PGP PRIVATE KEY BLOCK"),
    "PkcsPrivateKey": _armour("(?:RSA |EC |DSA |ENCRYPTED )?PRIVATE KEY"),
    "PuttyPrivateKey": IdentifierRow(_PUTTY, before="", after="", any_case=False),
}

ADDRESSES: Final = (
    IdentifierRow(
        _OCTETS, check=_is_address, before="(?:^|[^A-Za-z0-9_.:])", after="(?:[^A-Za-z0-9_.]|[.][^0-9]|[.]?$)"
    ),
    IdentifierRow(
        f"[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f:]{{0,30}}:{_OCTETS}|[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f:]{{1,35}}",
        check=_is_address,
        before="(?:^|[^A-Za-z0-9_.:])",
        after="(?:[^A-Za-z0-9_:]|$)",
    ),
)
