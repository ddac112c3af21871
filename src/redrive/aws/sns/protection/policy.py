"""A data-protection policy as it is carried out: statements, whom they concern, and what each does about finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from redrive.model.protection import Finder

INBOUND: Final = "Inbound"
OUTBOUND: Final = "Outbound"
EVERYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class Deny:
    """Whatever it finds is not published, or not delivered."""


@dataclass(frozen=True, slots=True)
class Deidentify:
    """Masks what is found with a character; cuts it out with the empty one."""

    character: str


@dataclass(frozen=True, slots=True)
class Audit:
    """Logs what is found."""

    sample_rate: int  # Percentage of publications
    findings: str | None  # Where to, if anything is found; empty: it is counted only; None: neither
    no_findings: str | None  # The same if nothing is


@dataclass(frozen=True, slots=True)
class ProtectionStatement:
    """One statement."""

    direction: str  # INBOUND or OUTBOUND
    principals: frozenset[str]  # ARNs, accounts (twelve digits), or EVERYBODY
    identifiers: tuple[str, ...]  # Data identifiers to look for, by name
    operation: Audit | Deidentify | Deny  # Action on a match

    def concerns(self, arn: str) -> bool:
        """True if this is about the principal of that ARN."""
        return not self.principals.isdisjoint((EVERYBODY, arn, _account_of(arn)))


@dataclass(frozen=True, slots=True)
class ProtectionPolicy:
    """All of a topic's statements, and what finds what they look for."""

    statements: tuple[ProtectionStatement, ...]
    finders: Mapping[str, Finder]

    def about(self, direction: str, arn: str) -> tuple[ProtectionStatement, ...]:
        """The statements of a direction that concern a principal."""
        return tuple(statement for statement in self.towards(direction) if statement.concerns(arn))

    def towards(self, direction: str) -> tuple[ProtectionStatement, ...]:
        """The statements of a direction."""
        return tuple(statement for statement in self.statements if statement.direction == direction)

    def finders_of(self, statements: tuple[ProtectionStatement, ...]) -> Mapping[str, Finder]:
        """The finders of data identifiers."""
        return {name: self.finders[name] for statement in statements for name in statement.identifiers}


def _account_of(arn: str) -> str:
    """The account of `arn:aws:iam::123456789012:user/…`; empty if there is none."""
    parts = arn.split(":")
    return parts[4] if len(parts) > 4 else ""  # noqa: PLR2004 - the fifth is an ARN's account
