"""Protection: sensitive parts of a text are found, and masked or cut out. What is sensitive is said from outside."""

from redrive.model.protection.detector import (
    Check,
    Detector,
    Either,
    Finder,
    Found,
    Keywords,
    Match,
    Pattern,
    Span,
    keyword_expression,
)
from redrive.model.protection.text import Cut, Text

__all__ = [
    "Check",
    "Cut",
    "Detector",
    "Either",
    "Finder",
    "Found",
    "Keywords",
    "Match",
    "Pattern",
    "Span",
    "Text",
    "keyword_expression",
]
