"""Metrics of several processes as one text: counters and histograms are added, of a gauge the greatest counts.

Gauges of Redrive tell what is in the store, which all processes see alike, each at its own moment.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_SUMMED: Final = frozenset({"counter", "histogram"})


@dataclass(slots=True)
class _Family:
    """One family: what stands above its samples, its type, and the samples by name and labels."""

    head: list[str] = field(default_factory=list)
    kind: str = ""
    samples: dict[str, float] = field(default_factory=dict)


class MetricsSum:
    """A sum in the making."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}

    def add(self, text: str, *, gauges: bool = True) -> None:
        """Add the metrics of one process.

        Args:
            text: As Prometheus reads them: each family begins with its HELP and its TYPE.
            gauges: False of a process that has ended, which sees nothing any more.
        """
        current = _Family()
        for line in text.splitlines():
            if line.startswith("# "):
                _, what, name, said = line.split(" ", 3)
                current = self._families.setdefault(name, _Family())
                if what == "TYPE":
                    current.kind = said
                if line not in current.head:
                    current.head.append(line)
            elif line:
                sample, _, value = line.rpartition(" ")
                _count(current, sample, _number(value), gauges=gauges)

    @property
    def text(self) -> str:
        """The sum."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterable[str]:
        for family in self._families.values():
            yield from family.head
            for sample, value in family.samples.items():
                yield f"{sample} {value}"


def _count(family: _Family, sample: str, value: float, *, gauges: bool) -> None:
    if family.kind in _SUMMED:
        family.samples[sample] = family.samples.get(sample, 0) + value
    elif gauges:
        family.samples[sample] = max(value, family.samples.get(sample, value))


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)
