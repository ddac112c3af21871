"""Dashboards, as documents."""

from dataclasses import dataclass
from typing import ClassVar, Final

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName


@dataclass(frozen=True, slots=True)
class Dashboard(Document):
    """One dashboard."""

    restored: ClassVar = {"name": ResourceName._make}

    name: ResourceName  # Account and name; the region is empty, since dashboards are of no region
    body: str  # JSON, as it was put
    modified_at: int  # When (ms)


DASHBOARD: Final = DocumentKind.of("dashboard", Dashboard)
