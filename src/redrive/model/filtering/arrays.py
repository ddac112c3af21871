"""Array consistency: conditions on several keys must hold within the same element of every array around them.

`{"orders":[{"id":1,"paid":false},{"id":2,"paid":true}]}` does not match "id is 1 and paid is true": both values
are there, but not in one order. The rule and its order of evaluation are event-ruler's: keys are looked at in
alphabetical order, and a key that must be absent is looked for only where the keys before it were found.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from redrive.model.budget import Budget
from redrive.model.filtering.condition import KeyTest
from redrive.model.filtering.subject import ArrayPlaces, SubjectFields

# The element of each array that a search has chosen so far.
_Choice = dict[int, int]


class Elements:
    """A message with arrays of objects, prepared for many filters: what a test accepts of it is looked up once."""

    def __init__(self, fields: SubjectFields, places: ArrayPlaces) -> None:
        self._fields = fields
        self._places = places
        self._trees: dict[tuple[int, bool], _Tree] = {}
        self._tests: list[KeyTest] = []  # kept alive: the trees are found by their ids

    @classmethod
    def of(cls, fields: SubjectFields) -> "Elements | None":
        """The elements of a message; None if it has no arrays of objects."""
        return None if fields.places is None else cls(fields, fields.places)

    def consistent(self, tests: Sequence[KeyTest], budget: Budget) -> bool:
        """True if values can be found for all tests that stand in the same element of each array they share.

        Tests are sorted by key, no key twice.

        Raises:
            OverBudgetError: It takes more than the budget has left.
        """
        accepted_trees = [self._tree(test, budget, accepted=True) for test in tests]
        if not all(
            tree.value_places or test.absent for test, tree in zip(tests, accepted_trees, strict=True)
        ):
            return False
        absent_trees = [self._tree(test, budget, accepted=False) if test.absent else None for test in tests]
        return _Search(accepted_trees, absent_trees, self._places, budget).succeeds(0, {})

    def _tree(self, test: KeyTest, budget: Budget, *, accepted: bool) -> "_Tree":
        """The places of the values that a test accepts, or (not `accepted`) of any values under its key."""
        tree = self._trees.get((id(test), accepted))
        if tree is not None:
            return tree
        value_places = self._fields.value_places.get(test.key, [])
        if accepted:
            budget.spend(test.steps * self._fields.weight(test.key))
            values = self._fields.values.get(test.key, [])
            value_places = [
                element for element, value in zip(value_places, values, strict=True) if test.accepts(value)
            ]
        else:
            budget.spend(len(value_places))
        tree = self._trees[id(test), accepted] = _Tree.of(value_places, self._places)
        self._tests.append(test)  # kept, so that no other test gets its id
        return tree


@dataclass(slots=True)
class _Tree:
    """Places of values, to be walked from the outside in."""

    value_places: set[int]  # The places that have a value
    reached: set[int] = field(default_factory=lambda: {0})  # Those, and all around them
    # Of each place reached, the elements reached in each array directly within it.
    below: dict[int, dict[int, list[int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, value_places: Iterable[int], places: ArrayPlaces) -> "_Tree":
        """The tree of these places and of all elements around them, up to the root (0)."""
        tree = cls(set(value_places))
        for element in tree.value_places:
            inner = element
            while inner not in tree.reached:
                tree.reached.add(inner)
                around = places.around[inner]
                tree.below.setdefault(around, {}).setdefault(places.arrays[inner], []).append(inner)
                inner = around
        return tree

    def compatible_places(self, choice: _Choice, budget: Budget) -> Iterator[int]:
        """The places with a value that lie in the chosen element of each array around them that has one chosen."""
        pending = [0]
        while pending:
            number = pending.pop()
            budget.spend(1)
            if number in self.value_places:
                yield number
            for array, elements in self.below.get(number, {}).items():
                element = choice.get(array)
                if element is None:
                    pending += elements
                elif element in self.reached:
                    pending.append(element)
                budget.spend(1)


class _Search:
    """A search over the tests, one key at a time, that never repeats a failed start.

    What matters of the elements chosen so far are those in arrays that later keys stand in too. Choices that
    agree there fail alike, so independent arrays cost the sum of their lengths and not the product.
    """

    def __init__(
        self,
        accepted_trees: Sequence[_Tree],
        presence_trees: Sequence[_Tree | None],
        places: ArrayPlaces,
        budget: Budget,
    ) -> None:
        self._accepted_trees = accepted_trees
        self._presence_trees = presence_trees
        self._places = places
        self._budget = budget
        self._shared = self._arrays_from()
        self._failed: set[tuple[int, frozenset[int]]] = set()

    def succeeds(self, number: int, choice: _Choice) -> bool:
        """True if the tests from `number` on hold together with the elements chosen before."""
        if number == len(self._accepted_trees):
            return True
        self._budget.spend(1 + len(choice))
        shared = self._shared[number]
        state = number, frozenset(element for array, element in choice.items() if array in shared)
        if state in self._failed:
            return False
        if self._extends(number, choice):
            return True
        self._failed.add(state)
        return False

    def _extends(self, number: int, choice: _Choice) -> bool:
        """True if the tests hold with some value for test `number`, or without one where it may be absent."""
        for element in self._accepted_trees[number].compatible_places(choice, self._budget):
            if self.succeeds(number + 1, self._with(choice, element)):
                return True
        tree = self._presence_trees[number]
        if tree is None or any(True for _ in tree.compatible_places(choice, self._budget)):
            return False
        return self.succeeds(number + 1, choice)

    def _with(self, choice: _Choice, element: int) -> _Choice:
        """The choice and, of each array around the element that has none chosen yet, the element that it lies in."""
        around, arrays = self._places.around, self._places.arrays
        more = dict(choice)
        while element and arrays[element] not in choice:
            more[arrays[element]] = element
            element = around[element]
        self._budget.spend(len(more))
        return more

    def _arrays_from(self) -> list[set[int]]:
        """For each test, the arrays that its key or a later one stands in."""
        arrays = self._places.arrays
        shared: list[set[int]] = []
        later: set[int] = set()
        for accepted_tree, presence_tree in zip(
            reversed(self._accepted_trees), reversed(self._presence_trees), strict=True
        ):
            tree = presence_tree or accepted_tree  # where there is one, it has all that the other has
            later = later | {arrays[element] for element in tree.reached if element}
            self._budget.spend(len(later))
            shared.append(later)
        return shared[::-1]
