"""`Fn::Cidr`: an address block cut into smaller ones."""

import ipaddress
from itertools import islice
from typing import Final

from redrive.aws.cloudformation.template.errors import template_error

COUNT_MAX: Final = 256
_DEFAULT_BITS: Final = {4: 8, 6: 64}  # by the version of IP


def subnets(block: str, count: str, bits: str = "") -> list[str]:
    """Returns the first 1 to 256 blocks of an address block (`10.0.0.0/16`).

    Addresses within a block differ in their last `bits` bits; empty: 8, or 64 of IPv6.

    Raises:
        TemplateInvalid: There are fewer blocks than `count`.
    """
    try:
        network = ipaddress.ip_network(block, strict=False)
        subnet_count = int(count)
        subnet_bits = int(bits) if bits else _DEFAULT_BITS[network.version]
        prefix = network.max_prefixlen - subnet_bits
        networks = (
            list(islice(network.subnets(new_prefix=prefix), subnet_count))
            if 0 < subnet_count <= COUNT_MAX
            else []
        )
    except ValueError:
        raise template_error("Fn::Cidr requires an address block, a count and a number of bits.") from None
    if len(networks) < subnet_count or not networks:
        raise template_error(f"Fn::Cidr cannot cut {count} blocks of {subnet_bits} bits out of {block}")
    return [str(subnet) for subnet in networks]
