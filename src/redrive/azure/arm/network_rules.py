"""The network rules of a topic, a domain or a namespace, as fields of its schema.

They are enforced by `redrive.azure.eventgrid.network`. What cannot be enforced here is refused, not kept.
"""

from typing import Any, Final

from redrive.azure.arm import schema
from redrive.azure.arm.schema import Document, SchemaField
from redrive.azure.eventgrid.network import ACCESS, DISABLED, MASK, RULES, read_mask
from redrive.azure.wire.errors import invalid

RULES_MAX: Final = 128
_PERIMETER: Final = "SecuredByPerimeter"


def _rules(document: Document, name: str) -> list[Any] | None:
    rules = schema.items(document, name)
    if rules is not None and len(rules) > RULES_MAX:
        raise invalid(f"There are {len(rules)} {name}; {RULES_MAX} are allowed.")
    for rule in rules or ():
        _check_rule(rule)
    return rules


def _check_rule(rule: object) -> None:
    mask = schema.text(rule, MASK) if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or not mask:
        raise invalid(f"Each of the {RULES} must have an {MASK}.")
    try:
        read_mask(mask)
    except ValueError:
        raise invalid(f"The {MASK} '{mask}' is neither an IP address nor a range in CIDR notation.") from None
    schema.one_of(rule, "action", "Allow")


def _access(document: Document, name: str) -> str | None:
    access = schema.one_of(document, name, "Enabled", DISABLED, _PERIMETER)
    if access == _PERIMETER:
        raise invalid("Network security perimeters are not offered.", "FeatureNotSupported")
    return access


# Azure lets callers ask for these versions; connections of this server, either way, have TLS 1.2 at least.
TLS: Final = SchemaField("minimumTlsVersionAllowed", schema.words("1.0", "1.1", "1.2"))
NETWORK: Final = (TLS, SchemaField(RULES, _rules), SchemaField(ACCESS, _access, default="Enabled"))
