"""Java's order of hash tables and its texts of doubles, which show in answers of services that are written in it."""

from collections.abc import Iterable
from decimal import Decimal
from math import isinf, isnan
from typing import Final

_PLAIN_FROM: Final = -3  # of the exponents of ten that are written without one: 0.001
_PLAIN_TO: Final = 6  # 9999999.0


def hash_order(names: Iterable[str]) -> list[str]:
    """Names in the order in which Java's `HashMap` lists them: by bucket of their `hashCode`, in 16 buckets or more.

    So CloudFormation lists parameters, and API Gateway those that a request lacks (recorded).
    """
    all_names = list(names)
    size = 16
    while len(all_names) > size * 3 // 4:
        size *= 2

    def rank(name: str) -> int:
        code = 0
        for character in name:
            code = (31 * code + ord(character)) & 0xFFFFFFFF
        return (code ^ (code >> 16)) & (size - 1)

    return sorted(all_names, key=rank)


def java_double(number: float) -> str:
    """The shortest text that reads back as the number: plain from 0.001 to below ten million, else as `1.0E7`.

    So `java.lang.Double.toString(double)` is documented since Java 19; earlier versions of Java write a digit more of
    about two large doubles in a thousand.
    """
    if isnan(number):
        return "NaN"
    if isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return repr(number)
    sign = "-" if number < 0 else ""
    digits, exponent = _shortest(abs(number))
    if not _PLAIN_FROM <= exponent <= _PLAIN_TO:
        return f"{sign}{digits[0]}.{digits[1:]}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits.rstrip('0')}"
    digits = digits.ljust(exponent + 2, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def _shortest(number: float) -> tuple[str, int]:
    """The digits of a positive number, two at least, and the exponent of ten of the first of them.

    Where a single digit would do, Java takes the closest two: `4.9E-324`, of which Python writes `5e-324`.
    """
    _, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    if len(digits) == 1:
        mantissa, _, power = f"{number:.1e}".partition("e")
        return mantissa.replace(".", ""), int(power)
    return "".join(map(str, digits)), int(exponent) + len(digits) - 1
