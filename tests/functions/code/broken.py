"""A module that cannot be loaded."""

import nothing_like_it  # type: ignore[import-not-found] # noqa: F401 - that is the case
