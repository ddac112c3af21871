"""A policy as it was written: nested keys, alternatives, and how many combinations they come to."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from redrive.model.filtering.condition import KeyTest


@dataclass(frozen=True, slots=True)
class Leaf:
    """One key and the array of what will do for it.

    Attributes:
        test: The key's test.
        values: How many entries the array has.
        depth: How many keys deep it stands, 1 at the top.
    """

    test: KeyTest
    values: int
    depth: int


@dataclass(frozen=True, slots=True)
class Group:
    """Everything that must hold together: the members of one object."""

    members: "tuple[Leaf | Group | Alternatives, ...]"


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Groups of which one must hold: an `$or`."""

    branches: tuple[Group, ...]


Node = Leaf | Group | Alternatives


def combinations(node: Node) -> int:
    """The complexity of a policy, as the published limit counts it.

    The product over all keys of entries times depth, where an `$or` counts the sum of its branches. Recorded:
    4 entries three keys deep, 3 entries two deep and 3 at the top make 12 · 6 · 3 = 216, too many.
    """
    if isinstance(node, Leaf):
        return node.values * node.depth
    if isinstance(node, Alternatives):
        return sum(combinations(branch) for branch in node.branches)
    return prod(combinations(member) for member in node.members)


def leaves(node: Node) -> Iterable[Leaf]:
    """Every leaf of a tree, in the order of the text."""
    if isinstance(node, Leaf):
        yield node
        return
    for below in node.branches if isinstance(node, Alternatives) else node.members:
        yield from leaves(below)


def expand(node: Node, clauses: list[dict[str, KeyTest]]) -> list[dict[str, KeyTest]]:
    """Add a node to clauses that hold so far, each by its keys; an `$or` multiplies them by its branches.

    A key asked about twice, as in `{"a":[1],"$or":[{"a":[2]},…]}`, keeps what was written last, as event-ruler
    has it. The result is as long as the branches multiply: look at `combinations` first.
    """
    if isinstance(node, Leaf):
        return [{**clause, node.test.key: node.test} for clause in clauses]
    if isinstance(node, Alternatives):
        return [clause for branch in node.branches for clause in expand(branch, clauses)]
    for member in node.members:
        clauses = expand(member, clauses)
    return clauses
