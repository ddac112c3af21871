"""Records that are stored as documents: field by field, as JSON has them."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self


@dataclass(frozen=True, slots=True)
class Document:
    """A record that a store keeps as JSON; a field that an older release did not write has its default."""

    # The fields whose values JSON does not give back as they were, and what makes each of what it gives back.
    restored: ClassVar[Mapping[str, Callable[[Any], object]]] = {}

    def to_document(self) -> dict[str, Any]:
        """The record as a JSON-ready document."""
        fields = asdict(self)
        return {name: _plain(value) for name, value in fields.items()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        fields = dict(document)
        for name, restore in cls.restored.items():
            if fields.get(name) is not None:
                fields[name] = restore(fields[name])
        return cls(**fields)


def _plain(value: Any) -> Any:
    """Tuples as JSON has them: also named ones, and those within."""
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
