r"""Filter patterns, as far as Redrive knows them ("Filter pattern syntax", CloudWatch Logs user guide).

    ERROR "out of memory"        every term and phrase occurs in the message, capitals as they stand
    ?ERROR ?WARN                 one of them does; beside a term without question mark they are ignored
    ERROR -Retry                 the first does and the second does not
    { $.status = "FAILURE" }     the message is a JSON object whose member is that; `*` stands for anything
    { $.delivery.statusCode >= 500 && ($.attempts > 1 || $.tags[0] != a*) }
    { $.redrivePolicy IS NULL }, `IS TRUE`, `IS FALSE`, `NOT EXISTS`

Regular expressions (`%…%`) and patterns for columns (`[ip, user, …]`) are refused, like what cannot be read at all.
"""

import re
from collections.abc import Callable
from typing import Final

import orjson

from redrive.protocols.aws.logs.json_expression import Test, read_expression, refuse

Matches = Callable[[str], bool]

_TERM: Final = re.compile(r'\s*([?-]?)(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))')


def read_pattern(text: str) -> Matches:
    """The test that a pattern is.

    Raises:
        AwsError: `InvalidParameterException`.
    """
    pattern = text.strip()
    if pattern.startswith("{") and pattern.endswith("}"):
        return _on_json(read_expression(pattern[1:-1]))
    if pattern.startswith(("[", "{", "%")):
        refuse()
    return _terms(pattern)


# ---- terms -----------------------------------------------------------------------------------------------------


def _terms(pattern: str) -> Matches:
    groups: dict[str, list[str]] = {"": [], "?": [], "-": []}
    at = 0
    while at < len(pattern):
        found = _TERM.match(pattern, at)
        if found is None:
            refuse()
        phrase = found[2] if found[3] is None else found[3]
        groups[found[1]].append(re.sub(r"\\(.)", r"\1", phrase))
        at = found.end()
    needed, any_of, excluded = groups[""], groups["?"], groups["-"]

    def matches(message: str) -> bool:
        if any(term in message for term in excluded):
            return False
        if needed or not any_of:
            return all(term in message for term in needed)
        return any(term in message for term in any_of)

    return matches


# ---- JSON -------------------------------------------------------------------------------------------------------


def _on_json(test: Test) -> Matches:
    def matches(message: str) -> bool:
        try:
            document = orjson.loads(message)
        except orjson.JSONDecodeError:
            return False
        return test(document)

    return matches
