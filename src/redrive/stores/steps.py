"""A schema is made step by step: numbered files of statements, of which a store remembers how many it has seen."""

from collections.abc import Sequence
from functools import cache
from importlib import resources

from redrive.model.errors import StoreUnavailable


@cache
def read(package: str) -> Sequence[str]:
    """The statements of every step, in order; a start asks for them up to four times."""
    folder = resources.files(package) / "migrations"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(file.read_text() for file in files if file.name.endswith(".sql"))


def refuse_newer(applied: int, known: int) -> None:
    """Keep away from a store whose schema is not known here.

    Raises:
        StoreUnavailable: More steps were applied to it than this version has.
    """
    if applied > known:
        raise StoreUnavailable(
            f"the store was made or upgraded by a newer version of Redrive (its schema is at step {applied},"
            f" this version knows {known}): install that version, or restore a backup made before the upgrade"
        )
