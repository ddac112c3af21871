"""Places of statements in the text of a policy, as simulations tell them."""

import json
import re
from typing import Final

from redrive.aws.wire.shapes import Structure

#: A text, which is a member's name where a colon follows, or a bracket.
_TOKEN: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[][{}]')
_OF_MEMBERS: Final = 1  # the depth at which the members of a policy stand


def statement_places(text: str) -> list[Structure]:
    """The places of a policy's statements, in the order in which `Policy` has them: those that deny before the others.

    Each begins and ends behind its brace, as AWS tells it (recorded).

    Args:
        text: A policy that was read before.
    """
    stated = json.loads(text).get("Statement")
    statements = stated if isinstance(stated, list) else [stated]
    places = zip(statements, _places(text, in_list=isinstance(stated, list)), strict=True)
    return [place for _, place in sorted(places, key=lambda each: each[0]["Effect"].lower() == "allow")]


def _places(text: str, *, in_list: bool) -> list[Structure]:
    own_depth = _OF_MEMBERS + (2 if in_list else 1)
    places: list[Structure] = []
    depth, member, beginning = 0, "", 0
    for token in _TOKEN.finditer(text):
        if token[2] is not None and depth == _OF_MEMBERS:
            member, places = json.loads(token[1]), [] if json.loads(token[1]) == "Statement" else places
        elif token[0] in "{[":
            depth += 1
            beginning = token.end() if depth == own_depth else beginning
        elif token[0] in "}]":
            if depth == own_depth and member == "Statement":
                begin, end = _position(text, beginning), _position(text, token.end())
                places.append({"StartPosition": begin, "EndPosition": end})
            depth -= 1
    return places


def _position(text: str, offset: int) -> dict[str, int]:
    line_start = text.rfind("\n", 0, offset) + 1
    return {"Line": text.count("\n", 0, offset) + 1, "Column": offset - line_start + 1}
