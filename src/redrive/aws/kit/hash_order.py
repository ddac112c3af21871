"""The order of Java's hash tables, in which some services list names."""

from collections.abc import Iterable


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
