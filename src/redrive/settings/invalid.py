"""Errors of settings."""


class SettingsInvalid(Exception):  # noqa: N818 - an answer to whoever starts the server
    """A setting is unknown or unusable; the message says which, and what to do."""


class CertificateUnusable(OSError):  # noqa: N818 - as above
    """A certificate or key that the settings name cannot be used; the message names its file."""
