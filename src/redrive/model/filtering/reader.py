"""Reading a filter policy: from its JSON to a compiled filter, or to the refusal that clients know.

    {"store":["a",{"prefix":"b"}],"$or":[{"price":[{"numeric":["<",5]}]},{"sale":[true]}]}

Each key has an array of which one entry must do; all keys must hold; `$or` offers alternatives. The language
is event-ruler's, the limits are Amazon SNS's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from redrive.model.filtering.condition import Condition, Exactly, KeyTest
from redrive.model.filtering.operators import OPERATORS, read_expression
from redrive.model.filtering.policy import Clause, FilterPolicy, Scope
from redrive.model.filtering.tokens import FilterPolicyInvalid, Kind, Tokens, parse

# A policy as it was written: nested keys, alternatives, and how many combinations they come to.


@dataclass(frozen=True, slots=True)
class Leaf:
    """One key and the array of the conditions on its value."""

    test: KeyTest  # The key's test
    values: int  # How many entries the array has
    depth: int  # How many keys deep it stands, 1 at the top


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """Conditions that must all hold: the members of one object."""

    members: "tuple[Leaf | KeyGroup | Alternatives, ...]"


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Groups of conditions of which one must hold: an `$or`."""

    branches: tuple[KeyGroup, ...]


Node = Leaf | KeyGroup | Alternatives


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
    nodes = node.branches if isinstance(node, Alternatives) else node.members
    for below in nodes:
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


KEYS_MAX: Final = 5
COMBINATIONS_MAX: Final = 150
POLICY_BYTES_MAX: Final = 256 * 1024
#: No policy of 150 combinations has as many values, objects and arrays; read token by token, each takes 2 µs.
_NODES_MAX: Final = 4096
_NAMES_MAX: Final = 512  # of a key, with dots between them

_OR: Final = "$or"
_BRANCHES_MIN: Final = 2
# An `$or` with one of these for a key is an ordinary key whose entries are match expressions. The comparisons
# and the names that event-ruler keeps for later are reserved with the operators.
_RESERVED: Final = frozenset(OPERATORS) | {
    *("exactly", "=", "<", "<=", ">", ">=", "regex", "not-wildcard", "not-equals-ignore-case"),
    *("date-after", "date-on-or-after", "date-before", "date-on-or-before", "in-date-range"),
    *("ip-address-in-range", "ip-address-not-in-range"),
}


class NestedPolicyRefused(FilterPolicyInvalid):
    """A filter on attributes has nested keys; its text stands alone, without a `FilterPolicy: ` before it."""


def read_policy(text: str, scope: Scope, *, stored: bool = False) -> FilterPolicy:
    """Compile a filter policy. An empty object lets every message pass.

    Args:
        text: The policy's JSON.
        scope: What it looks at.
        stored: It was taken earlier: what a former release took still holds.

    Raises:
        FilterPolicyInvalid: It breaks a rule of the language or a limit: 5 keys at the top (nested ones do not
            count), 150 combinations, 256 KiB.
        NestedPolicyRefused: It has nested keys and the scope is the attributes.
    """
    if len(text.encode(errors="surrogatepass")) > POLICY_BYTES_MAX:
        raise FilterPolicyInvalid(f"Filter policy can not be larger than {POLICY_BYTES_MAX} bytes")
    document = parse(text)
    if _nodes(document) > _NODES_MAX:
        raise _too_complex()
    root = _PolicyReader(document, stored=stored).read()
    if len(document) > KEYS_MAX:
        raise FilterPolicyInvalid(f"Filter policy can not have more than {KEYS_MAX} keys")
    if combinations(root) > COMBINATIONS_MAX:
        raise _too_complex()
    if scope is Scope.ATTRIBUTES and any(leaf.depth > 1 for leaf in leaves(root)):
        raise NestedPolicyRefused(
            "Filter policy scope MessageAttributes does not support nested filter policy"
        )
    return FilterPolicy(scope, [Clause(clause.values()) for clause in expand(root, [{}])])


def _nodes(document: object) -> int:
    """The number of values in a document; counting stops once there are more than `_NODES_MAX`."""
    count, waiting = 0, [document]
    while waiting and count <= _NODES_MAX:
        node = waiting.pop()
        count += 1
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return count + len(waiting)


def _too_complex() -> FilterPolicyInvalid:
    return FilterPolicyInvalid("Filter policy is too complex")


class _PolicyReader:
    """Walks the tokens of one policy, and the parsed document beside them to see an `$or` coming."""

    def __init__(self, document: Any, *, stored: bool) -> None:
        self._document = document
        self._tokens = Tokens(document, stored=stored)

    def read(self) -> KeyGroup:
        self._tokens.expect(Kind.OBJECT, "Filter is not an object")
        return self._group(self._document, (), 0) if self._document else KeyGroup(())

    def _group(self, document: Mapping[str, Any], path: tuple[str, ...], depth: int) -> KeyGroup:
        """Read an object that has begun, to its end."""
        if depth > COMBINATIONS_MAX:  # each object further in adds a combination at least
            raise _too_complex()
        members: list[Node] = []
        while (token := self._tokens.advance()).kind is not Kind.OBJECT_END:
            members.append(self._member(token.text, document[token.text], path, depth))
        if not members:
            self._tokens.refuse("Empty objects are not allowed")
        return KeyGroup(tuple(members))

    def _member(self, name: str, document: Any, path: tuple[str, ...], depth: int) -> Node:
        """Read a member behind its name: an `$or`, an object of further keys, or an array of values."""
        kind = self._tokens.advance().kind
        if name == _OR and _offers_alternatives(document):
            return self._alternatives(document, path, depth)
        if kind is Kind.OBJECT:
            return self._group(document, (*path, name), depth + 1)
        if kind is not Kind.ARRAY:
            self._tokens.refuse(f'"{name}" must be an object or an array')
        return self._leaf((*path, name))

    def _alternatives(
        self, branches: list[dict[str, Any]], path: tuple[str, ...], depth: int
    ) -> Alternatives:
        """Read the objects of an `$or`, to the end of its array; of each, the brace is passed first."""
        groups = []
        for branch in branches:
            self._tokens.advance()
            groups.append(self._group(branch, path, depth + 1))
        self._tokens.advance()
        return Alternatives(tuple(groups))

    def _leaf(self, path: tuple[str, ...]) -> Leaf:
        """Read an array that has begun, to its end."""
        entries = []
        while (kind := self._tokens.advance().kind) is not Kind.ARRAY_END:
            entries.append(self._entry(kind))
        if not entries:
            self._tokens.refuse("Empty arrays are not allowed")
        conditions = tuple(entry for entry in entries if entry is not None)  # None: the key must be absent
        key = ".".join(path)
        if key.count(".") >= _NAMES_MAX:
            raise _too_complex()
        test = KeyTest(key, conditions, absent=None in entries)
        return Leaf(test, len(entries), len(path))

    def _entry(self, kind: Kind) -> Condition | None:
        """Read an entry of an array; None for `{"exists":false}`."""
        if kind is Kind.OBJECT:
            return read_expression(self._tokens)
        if kind is Kind.ARRAY:
            self._tokens.refuse("Match value must be String, number, true, false, or null")
        return Exactly(self._tokens.current.value)


def _offers_alternatives(document: object) -> bool:
    """True if an `$or` is the operator: a list of several objects, none with a match expression; else it is a key."""
    return (
        isinstance(document, list)
        and len(document) >= _BRANCHES_MIN
        and all(isinstance(branch, dict) and _RESERVED.isdisjoint(branch) for branch in document)
    )
