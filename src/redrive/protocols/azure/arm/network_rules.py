"""What a topic, a domain or a namespace says of its network, checked.

It is held to by `redrive.protocols.azure.eventgrid.network`. What cannot be held to here is refused rather than kept.
"""

from typing import Any, Final

from redrive.protocols.azure.arm import fields
from redrive.protocols.azure.arm.fields import Document
from redrive.protocols.azure.eventgrid.network import ACCESS, DISABLED, MASK, RULES, read_mask
from redrive.protocols.azure.wire.errors import invalid

_RULES_MAX: Final = 128
_TLS: Final = "minimumTlsVersionAllowed"
_PERIMETER: Final = "SecuredByPerimeter"


def accepted_network(kept: Document) -> dict[str, Any]:
    """Check what is said of the network; what is to be kept of it besides.

    Raises:
        AzureError: It is not acceptable.
    """
    check_tls(kept)
    rules = fields.items(kept, RULES) or []
    if len(rules) > _RULES_MAX:
        raise invalid(f"There are {len(rules)} inboundIpRules; {_RULES_MAX} are allowed.")
    for rule in rules:
        _check_rule(rule)
    access = fields.one_of(kept, ACCESS, ("Enabled", DISABLED, _PERIMETER))
    if access == _PERIMETER:
        raise invalid("Network security perimeters are not offered.", "FeatureNotSupported")
    return {ACCESS: access or "Enabled"}


def check_tls(kept: Document) -> None:
    """The versions that Azure lets one ask for: TLS connections of this server, either way, have 1.2 at least.

    Raises:
        AzureError: It is another.
    """
    fields.one_of(kept, _TLS, ("1.0", "1.1", "1.2"))


def _check_rule(rule: object) -> None:
    mask = fields.text(rule, MASK) if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or not mask:
        raise invalid("Each of the inboundIpRules must have an ipMask.")
    try:
        read_mask(mask)
    except ValueError:
        raise invalid(f"The ipMask '{mask}' is no IP address and no range in CIDR notation.") from None
    fields.one_of(rule, "action", ("Allow",))
