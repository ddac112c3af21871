"""Array consistency: conditions on several keys must hold within the same element of every array around them.

`{"orders":[{"id":1,"paid":false},{"id":2,"paid":true}]}` does not match "id is 1 and paid is true": both values
are there, but not in one order. The rule and its order of evaluation are event-ruler's: keys are looked at in
alphabetical order, and a key that must be absent is looked for only where the keys before it were found.
"""

from collections.abc import Sequence

from redrive.model.filtering.condition import KeyTest
from redrive.model.filtering.subject import Fields, Place


def consistent(tests: Sequence[KeyTest], fields: Fields) -> bool:
    """Whether values can be found for all tests that stand in the same element of each array they share.

    Args:
        tests: Sorted by key, no key twice.
        fields: A message with arrays of objects.
    """
    return _Search(tests, fields).succeeds(0, {})


class _Search:
    """A search over the tests, one key at a time, that never repeats a failed start.

    What matters of the elements chosen so far are those in arrays that later keys stand in too. Choices that
    agree there fail alike, so independent arrays cost the sum of their lengths and not the product.
    """

    def __init__(self, tests: Sequence[KeyTest], fields: Fields) -> None:
        self._tests = tests
        self._values = fields.values
        self._places = fields.places or {}
        self._shared = self._arrays_from()
        self._failed: set[tuple[int, frozenset[tuple[int, int]]]] = set()

    def succeeds(self, number: int, chosen: Place) -> bool:
        """Whether the tests from `number` on hold together with the elements chosen before."""
        if number == len(self._tests):
            return True
        shared = self._shared[number]
        state = number, frozenset(item for item in chosen.items() if item[0] in shared)
        if state in self._failed:
            return False
        if self._extends(self._tests[number], number, chosen):
            return True
        self._failed.add(state)
        return False

    def _extends(self, test: KeyTest, number: int, chosen: Place) -> bool:
        found = False
        for value, place in zip(self._values.get(test.key, ()), self._places.get(test.key, ()), strict=True):
            if not _agree(chosen, place):
                continue
            found = True
            if test.accepts(value) and self.succeeds(number + 1, {**chosen, **place}):
                return True
        return test.absent and not found and self.succeeds(number + 1, chosen)

    def _arrays_from(self) -> list[set[int]]:
        """For each test, the arrays that its key or a later one stands in."""
        shared: list[set[int]] = []
        later: set[int] = set()
        for test in reversed(self._tests):
            later = later.union(*self._places.get(test.key, ()))
            shared.append(later)
        return shared[::-1]


def _agree(chosen: Place, place: Place) -> bool:
    return all(chosen.get(array, element) == element for array, element in place.items())
