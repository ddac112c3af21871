"""Ids of APIs and of what they consist of."""

import random
import string
from typing import Final

from redrive.aws.apigateway.control.errors import bad_request

_LETTERS: Final = string.ascii_lowercase + string.digits
_CHOSEN: Final = frozenset(string.ascii_lowercase + string.digits + "-")
_CHOSEN_CHARS_MAX: Final = 63
API_CHARS: Final = 10
PART_CHARS: Final = 6
KEY_CHARS: Final = 40
CHOSEN_TAG: Final = "_custom_id_"
"""The tag by which callers choose the id of an API that they make, as LocalStack has it."""


def new_id(chance: random.Random, chars: int = PART_CHARS) -> str:
    """An id of so many small letters and digits; it begins with a letter, as names of hosts do."""
    rest = (chance.choice(_LETTERS) for _ in range(chars - 1))
    return chance.choice(string.ascii_lowercase) + "".join(rest)


def chosen_id(tags: dict[str, str]) -> str:
    """The id that a caller wants for an API; empty: any.

    Raises:
        AwsError: `BadRequestException`: it is no part of a host's name.
    """
    chosen = tags.get(CHOSEN_TAG, "")
    fits = len(chosen) <= _CHOSEN_CHARS_MAX and _CHOSEN.issuperset(chosen) and chosen.strip("-") == chosen
    if not fits:
        raise bad_request(f"Invalid API identifier chosen by the tag {CHOSEN_TAG}: {chosen}")
    return chosen
