"""Live folders: functions that run from a folder of the machine, which is looked at before each invocation.

A caller names the folder where others name an object, in a bucket that has none. An archive is kept of such a function,
with the path in it and nothing else. It leads to a folder only below the one that the settings name,
so an archive that somebody made by hand opens no other.
"""

import io
import os
import zipfile
from pathlib import Path
from typing import Final

_ENTRY: Final = ".redrive-live-folder"
# Of packages that others wrote, and of what tools write down: a look at 30,000 files takes 0.3 s.
_UNSEEN: Final = frozenset({"node_modules", "site-packages", "__pycache__", ".git", ".venv"})


class LiveFolders:
    """The folders that functions may run from."""

    def __init__(self, base: str) -> None:
        """Allow this folder and all below it; empty: none."""
        self._base = Path(base).resolve() if base else None

    def archive(self, path: str) -> bytes | None:
        """The archive that stands for the folder of that path; None: no function may run from it."""
        if self._allowed(path) is None:
            return None
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(zipfile.ZipInfo(_ENTRY), path)
        return packed.getvalue()

    def behind(self, unpacked: Path) -> Path | None:
        """The folder that an unpacked archive stands for; None: it stands for none."""
        try:
            return self._allowed((unpacked / _ENTRY).read_text())
        except (OSError, UnicodeDecodeError):
            return None

    def _allowed(self, path: str) -> Path | None:
        if self._base is None or not path.startswith("/") or "\0" in path:
            return None
        folder = Path(path).resolve()
        return folder if folder.is_relative_to(self._base) and folder.is_dir() else None


def stamp(folder: str) -> str:
    """A text that changes whenever a file below a folder is written, made, renamed or removed."""
    number, newest = 0, 0
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _UNSEEN]
        for name in (".", *files):
            try:
                seen = os.stat(os.path.join(place, name)).st_mtime_ns  # noqa: PTH116, PTH118 - a Path takes as long again
            except OSError:  # it is being replaced
                continue
            number, newest = number + 1, max(newest, seen)
    return f"{number}-{newest}"
