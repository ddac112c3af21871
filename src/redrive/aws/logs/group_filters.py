"""Filters of log groups: kept, found, and compiled for the events that meet them, whichever node changed them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import each_in_turn
from redrive.aws.logs import names
from redrive.aws.logs.errors import error
from redrive.aws.logs.filter_pattern import LogPattern, match_steps, read_pattern
from redrive.aws.logs.places import LogPlaces
from redrive.aws.logs.records import GroupFilter
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import DocumentKind, Removal
from redrive.engine.resources import Documents, Draft
from redrive.model.log import LogEvent, LogGroup

REGEX_FILTERS_MAX: Final = 5  # of a group, whatever their kinds


F = TypeVar("F", bound=GroupFilter)


@dataclass(frozen=True, slots=True)
class CompiledFilter(Generic[F]):
    """A filter as each event meets it."""

    filter: F
    pattern: LogPattern

    def steps(self, event: LogEvent) -> int:
        """The steps of trying an event on it."""
        return match_steps(self.filter.pattern, self.pattern.regexes, event.message)

    async def matches_of(self, events: Sequence[LogEvent]) -> list[LogEvent]:
        """Those of some events of its group that match."""
        matches = await each_in_turn(
            self.filter.group.account, events, self.steps, lambda event: self.pattern.matches(event.message)
        )
        return [event for event, match in zip(events, matches, strict=True) if match]


class GroupFilters(Generic[F]):
    """The filters of one kind."""

    def __init__(self, kind: DocumentKind[F], noun: str, filters_max: int, places: LogPlaces) -> None:
        self._kind = kind
        self._noun = noun  # what a refusal calls a filter
        self._filters_max = filters_max
        self._places = places
        self._documents: Documents = places.documents
        self._other_kinds: Sequence[DocumentKind[Any]] = ()
        self._by_group: dict[int, dict[str, CompiledFilter[F]]] = {}
        self._is_outdated = True
        self._documents.on_write(self._follow_write)
        self._documents.on_change_elsewhere(self._follow_forget)

    def share_regex_limit_with(self, others: DocumentKind[Any]) -> None:
        """Share the number of regular expressions that a group may have with filters of another kind."""
        self._other_kinds = (others,)

    async def put(self, filter_document: F) -> None:
        """Put a filter, in the place of the group's one of that name; raises AwsError (`LimitExceededException`)."""

        async def decide(draft: Draft) -> None:
            others = await draft.find(self._kind, f"{filter_document.group_id:020d}/")
            if filter_document.key not in dict(others) and len(others) >= self._filters_max:
                raise error("LimitExceededException", "Resource limit exceeded.")
            if read_pattern(filter_document.pattern).regexes:
                await self._check_regexes(
                    draft, filter_document, [each for key, each in others if key != filter_document.key]
                )
            await draft.overwrite(self._kind, filter_document.key, filter_document)

        await self._documents.transact(decide)

    async def _check_regexes(self, draft: Draft, filter_document: F, others: Sequence[GroupFilter]) -> None:
        """Refuse a filter with a regular expression where its group has as many of them as it may, of all kinds."""
        of_other_kinds = [
            each
            for kind in self._other_kinds
            for _, each in await draft.find(kind, f"{filter_document.group_id:020d}/")
        ]
        number = sum(read_pattern(each.pattern).regexes > 0 for each in (*others, *of_other_kinds))
        if number >= REGEX_FILTERS_MAX:
            raise error("LimitExceededException", "Resource limit exceeded.")

    async def remove(self, call: Call, params: Structure) -> None:
        """Remove the filter that a request names; raises AwsError (`ResourceNotFoundException`)."""
        group = await self._places.stored_group(names.group_name(call, params["logGroupName"]))
        if not await self._documents.remove(self._kind, f"{group.id:020d}/{params['filterName']}"):
            raise error("ResourceNotFoundException", f"The specified {self._noun} does not exist.")

    async def find(self, call: Call, params: Structure) -> list[F]:
        """The caller's filters, of the group and with the prefix that a request names.

        Raises:
            AwsError: `ResourceNotFoundException`: of the group.
        """
        prefix = ""
        if name := params.get("logGroupName"):
            prefix = f"{(await self._places.group(names.group_name(call, name))).id:020d}/"
        return [
            each
            for each in await self._documents.find(self._kind, prefix)
            if (each.group.account, each.group.region) == (call.account, call.region)
            and each.name.startswith(params.get("filterNamePrefix") or "")
        ]

    async def remove_of(self, group: LogGroup) -> None:
        """Remove the filters of a group that is gone."""
        if filters := await self._documents.find(self._kind, f"{group.id:020d}/"):
            await self._documents.write([Removal(self._kind, each.key) for each in filters])

    async def count(self) -> Mapping[int, int]:
        """The number of filters of each group, by the group's number."""
        await self.follow()
        return {group_id: len(filters) for group_id, filters in self._by_group.items()}

    def of(self, group_id: int) -> Sequence[CompiledFilter[F]]:
        """The filters that events of a group meet, as far as `follow` has read them."""
        return tuple(self._by_group.get(group_id, {}).values())

    async def follow(self) -> None:
        """Read all filters again if another node changed any."""
        if not self._is_outdated:
            return
        self._is_outdated = False
        try:
            filters = await self._documents.find(self._kind, "")
        except BaseException:
            self._is_outdated = True
            raise
        self._by_group.clear()
        for each in filters:
            self._keep(each)

    def _keep(self, filter_document: F) -> None:
        compiled_filter = CompiledFilter(filter_document, read_pattern(filter_document.pattern))
        self._by_group.setdefault(filter_document.group_id, {})[filter_document.name] = compiled_filter

    def _follow_write(self, kind: str, key: str, value: object | None) -> None:
        """Keep up with a write of a filter, or (`value` is None) its removal."""
        if kind != self._kind.name:
            return
        if value is not None:
            self._keep(cast("F", value))
        else:
            number, _, name = key.partition("/")
            self._by_group.get(int(number), {}).pop(name, None)

    def _follow_forget(self, kind: str, _: str) -> None:
        self._is_outdated |= kind in ("", self._kind.name)


def place_of(group_filter: GroupFilter) -> str:
    """The place of a filter in lists."""
    return f"{group_filter.group_id:020}/{group_filter.name}"
