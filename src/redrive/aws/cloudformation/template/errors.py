"""Refusals of templates, in CloudFormation's words."""

from redrive.model.errors import Refused


class TemplateInvalid(Refused):
    """A template, or what was given for it, cannot be used; the text is CloudFormation's."""


class NotYetKnown(Exception):  # noqa: N818 - no error: the value is there once the resource is
    """A value depends on a resource that has not been made.

    Attributes:
        resource: Its logical id.
    """

    def __init__(self, resource: str) -> None:
        super().__init__(resource)
        self.resource = resource


def format_error(text: str) -> TemplateInvalid:
    """The refusal of a template that is not built as templates are."""
    return TemplateInvalid(f"Template format error: {text}")


def check_count(number: int, noun: str, most: int) -> None:
    """Refuse a template that has more of something than it may; raises TemplateInvalid."""
    if number > most:
        raise format_error(f"Number of {noun}, {number}, is greater than maximum allowed, {most}")


def template_error(text: str) -> TemplateInvalid:
    """The refusal of a template whose functions are not used as they can be."""
    return TemplateInvalid(f"Template error: {text}")
