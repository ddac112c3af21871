"""Errors in policies and keys that callers give."""

from redrive.model.errors import RedriveError


class PolicyInvalid(RedriveError):  # noqa: N818 - this is an answer, named as a caller says it
    """A policy document cannot be read; nothing of it may be obeyed.

    Attributes:
        reason: What is wrong, and where in the document.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
