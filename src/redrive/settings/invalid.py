"""The one error of settings."""


class SettingsInvalid(Exception):  # noqa: N818 - an answer to whoever starts the server
    """A setting is unknown or unusable; the message says which, and what to do."""
