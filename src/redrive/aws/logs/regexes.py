r"""Regular expressions of callers: found by RE2, in time that grows with the text and never with what it might be.

In filter patterns they stand between percent signs and have what CloudWatch Logs lets them have: letters and digits, the
characters `:_#=@/;,-` and the operators `^ $ ? [ ] { } | \ * + .`, without parentheses
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html).
"""

import re
from collections.abc import Callable
from typing import Final

import re2

from redrive.aws.kit.regexes import compiled

#: Of the states that an expression has in common for all texts; what finds no room there is followed step by step.
MEMORY_BYTES: Final = 8 << 20
#: An expression between percent signs, in an expression on JSON or a column.
BETWEEN_PERCENTS: Final = r"%(?P<regex>(?:[^%\\]|\\[^\n])+)%"
#: RE2's instructions, each of which a character may have to be tried on: 256 of them take a second for a mebibyte of a
#: text that was made to be slow, 2,000 take twenty. A UUID has 72, four numbers with points between them 27.
STEPS_MAX: Final = 256
_OFFERED: Final = re.compile(r"(?:[A-Za-z0-9:_#=@/;,^$?\[\]{}|*+.-]|\\[\x21-\x7e])+", re.ASCII)


def read_regex(text: str) -> Callable[[str], bool] | None:
    """The search for an expression that stood between percent signs; None where filter patterns may not have it."""
    if not _OFFERED.fullmatch(text):
        return None
    by_bytes = re2.Options.Encoding.LATIN1  # characters of several bytes are not supported there, either
    try:
        regex = compiled(text.encode(), memory_bytes=MEMORY_BYTES, encoding=by_bytes)
    except re2.error:
        return None
    if regex.programsize > STEPS_MAX:
        return None
    return lambda searched: regex.search(searched.encode(errors="replace")) is not None
