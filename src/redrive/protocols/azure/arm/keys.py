"""The two access keys of a topic, a domain, a namespace."""

import base64
import random
from collections.abc import Mapping
from typing import Final

from redrive.protocols.azure.arm.call import ArmCall
from redrive.protocols.azure.arm.fields import one_of
from redrive.protocols.azure.eventgrid.settings import KEYS
from redrive.protocols.azure.wire.errors import invalid

_KEY_BYTES: Final = 32


def new(chance: random.Random) -> str:
    """A fresh key, in base64."""
    return base64.b64encode(chance.randbytes(_KEY_BYTES)).decode()


def pair(chance: random.Random) -> dict[str, str]:
    """Both, by name."""
    return {name: new(chance) for name in KEYS}


def of(attributes: Mapping[str, str]) -> dict[str, str]:
    """Both, as they are kept among a resource's attributes."""
    return {name: attributes[name] for name in KEYS}


def asked_for(call: ArmCall) -> str:
    """Which of the two a call is about.

    Raises:
        AzureError: It does not say.
    """
    which = one_of(call.document, "keyName", KEYS)
    if which is None:
        raise invalid("The property 'keyName' is missing.")
    return which
