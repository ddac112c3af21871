"""The two access keys of a namespace, and of each of its topics."""

import base64
import random
from collections.abc import Mapping
from typing import Final

from redrive.protocols.azure.eventgrid.settings import KEYS

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
