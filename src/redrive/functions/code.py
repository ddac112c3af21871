"""The code of functions: archives in the store, and folders that they are unpacked into where something runs them.

An archive is kept in pieces, as documents that no node remembers; so it is in every backup of the store, it is sealed
where documents are, and any node can run it. A folder is named by its function and the archive's digest, and made when it
is first asked for; where functions have users of their own, those of one function alone get into it.
"""

import asyncio
import base64
import contextlib
import hashlib
import io
import logging
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from redrive.engine.ports import DocumentKind, Put, Remove, Store
from redrive.model.errors import Conflict, NotFound, Refused
from redrive.model.names import ResourceName

logger = logging.getLogger(__name__)

# Live folders: functions that run from a folder of the machine, which is looked at before each invocation.
#
# A caller names the folder where others name an object, in a bucket that has none. An archive is kept of such a function,
# with the path in it and nothing else. It leads to a folder only below the one that the settings name,
# so a hand-made archive opens no other.

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
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(zipfile.ZipInfo(_ENTRY), path)
        return content.getvalue()

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
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _UNSEEN]
        for name in (".", *files):
            try:
                changed_at = os.stat(os.path.join(path, name)).st_mtime_ns  # noqa: PTH116, PTH118 - a Path takes as long again
            except OSError:  # it is being replaced
                continue
            number, newest = number + 1, max(newest, changed_at)
    return f"{number}-{newest}"


UNPACKED_BYTES_MAX: Final = 262_144_000  # AWS: of a function's code
CODE: Final[DocumentKind[str]] = DocumentKind(
    "function_code", lambda piece: {"piece": piece}, lambda document: str(document["piece"])
)
# A document goes over the wire of a store whole, and is written by one statement.
_PIECE_BYTES: Final = 1024 * 1024
_READ_BYTES: Final = 1024 * 1024
_PROGRAM: Final = "bootstrap"


class FunctionCode:
    """Keeps archives, and unpacks them."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        live: LiveFolders,
        group_of: Callable[[ResourceName], int] | None = None,
    ) -> None:
        """Keep archives in this store, and unpack them below this folder, which `close` removes.

        Args:
            store: Where they are kept.
            folder: Where they are unpacked.
            live: The folders that archives may stand for.
            group_of: The group of a function's users; None: functions run as this process's user.
        """
        self._store = store
        self._group_of = group_of
        self._folder = folder
        self._live = live
        self._live_folders: set[str] = set()
        self._making: dict[Path, asyncio.Task[None]] = {}
        self._paths: dict[Path, str] = {}
        self._fixed: dict[tuple[ResourceName, str], str] = {}  # of archives that stand for no live folder

    async def keep(self, name: ResourceName, archive: bytes) -> str:
        """Keep an archive of a function, unless it is kept already; return its SHA-256 in base64."""
        digest = await asyncio.to_thread(hashlib.sha256, archive)
        beginning = _beginning(name, digest.digest())
        pieces = [archive[first : first + _PIECE_BYTES] for first in range(0, len(archive), _PIECE_BYTES)]
        changes = [
            Put(CODE.name, f"{beginning}{number:04d}", CODE.write(base64.b64encode(piece).decode()))
            for number, piece in enumerate(pieces)
        ]
        with contextlib.suppress(Conflict):  # it is kept: the same bytes, by their digest
            await self._store.write(changes)
        return base64.b64encode(digest.digest()).decode()

    async def archive(self, name: ResourceName, digest: str) -> bytes:
        """The archive of that SHA-256.

        Raises:
            NotFound: It is not kept (any more).
        """
        pieces = await self._store.find(CODE.name, _beginning(name, base64.b64decode(digest)))
        if not pieces:
            raise NotFound(f"the code {digest} of {name.key}")
        return b"".join(base64.b64decode(CODE.read(piece.document)) for piece in pieces)

    async def forget(self, name: ResourceName, digests: Collection[str]) -> None:
        """Forget a function's archives of these digests."""
        for digest in digests:
            pieces = await self._store.find(CODE.name, _beginning(name, base64.b64decode(digest)))
            if pieces:
                await self._store.write([Remove(CODE.name, piece.key) for piece in pieces])

    async def folder(self, name: ResourceName, digest: str) -> str:
        """The folder with the unpacked archive of that SHA-256, or the live folder that the archive stands for.

        Raises:
            NotFound: It is not kept (any more).
            Refused: It cannot be unpacked here.
        """
        fixed = self._fixed.get((name, digest))
        if fixed is not None:
            return fixed
        folder = self._home(name) / base64.b64decode(digest).hex()
        unpacked = await self._once(folder, lambda: self._unpack(name, digest, folder))
        live = self._live.behind(folder)
        if live is None:
            if not (folder / _ENTRY).exists():
                self._fixed[name, digest] = unpacked
            return unpacked
        self._live_folders.add(str(live))
        self._paths[folder] = str(live)
        return str(live)

    def _home(self, name: ResourceName) -> Path:
        """The folder of a function, which is closed to others."""
        home = self._folder / "code" / hashlib.sha256(name.key.encode()).hexdigest()[:32]
        if not home.is_dir():
            home.mkdir(parents=True)
            home.chmod(0o700)
            if self._group_of is not None:
                home.parent.chmod(0o711)
                os.chown(home, -1, self._group_of(name))
                home.chmod(0o750)
        return home

    async def stamp(self, folder: str) -> str:
        """A text that changes with what is in the folder of a function's code; empty: nothing there ever changes."""
        return await asyncio.to_thread(stamp, folder) if folder in self._live_folders else ""

    async def layers(self, name: ResourceName, archives: Sequence[tuple[ResourceName, str]]) -> str:
        """The folder of a function with several archives, by name and SHA-256, later ones over earlier ones.

        Raises:
            NotFound: One is not kept (any more).
        """
        folders = [await self.folder(layer, digest) for layer, digest in archives]
        mark = hashlib.sha256("".join(digest for _, digest in archives).encode()).hexdigest()
        folder = self._home(name) / f"layers-{mark}"
        layers = [Path(each) for each in folders]
        return await self._once(folder, lambda: asyncio.to_thread(merge_layers, layers, folder))

    async def _once(self, folder: Path, make: Callable[[], Coroutine[Any, Any, None]]) -> str:
        """Make a folder, once for all who wait for it, and remember its path."""
        if folder in self._paths:
            return self._paths[folder]
        make_task = self._making.get(folder)
        if make_task is None:
            make_task = asyncio.get_running_loop().create_task(make())
            self._making[folder] = make_task
            make_task.add_done_callback(lambda _: self._making.pop(folder, None))
        await asyncio.shield(make_task)
        return self._paths.setdefault(folder, str(folder))

    async def _unpack(self, name: ResourceName, digest: str, folder: Path) -> None:
        """Unpack an archive that is kept, whatever may be wrong with it."""
        archive = await self.archive(name, digest)
        try:
            await asyncio.to_thread(unpack, archive, folder)
        except (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
            logger.warning("functions.not_unpacked function=%s: %r", name.key, error)
            raise Refused(f"the code cannot be unpacked: {error}") from error

    async def close(self) -> None:
        """Remove what was unpacked."""
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


def _beginning(name: ResourceName, digest: bytes) -> str:
    return f"{name.key}/{digest.hex()}/"


def unpack(archive: bytes, folder: Path) -> None:
    """Unpack an archive into a folder that is not there yet, whole or not at all.

    Links are left out: what they would lead to is outside of the archive. A bootstrap can be run, whatever the archive
    says of it, since archives made on Windows say nothing.

    Raises:
        ValueError: It unpacks to more than a function's code may have.
    """
    unfinished = _unfinished(folder)
    remaining_bytes = UNPACKED_BYTES_MAX
    with zipfile.ZipFile(io.BytesIO(archive)) as archive_file:
        for entry in archive_file.infolist():
            mode = entry.external_attr >> 16
            if not stat.S_ISLNK(mode):
                remaining_bytes -= _unpack_entry(archive_file, entry, unfinished, remaining_bytes)
    _finish(unfinished, folder)


def merge_layers(layers: Sequence[Path], folder: Path) -> None:
    """Make a folder of these, later ones over earlier ones, whole or not at all; files are linked, not copied."""
    unfinished = _unfinished(folder)
    for layer in layers:
        for source in sorted(layer.rglob("*")):
            target = unfinished / source.relative_to(layer)
            if source.is_dir() and not target.is_dir():
                target.unlink(missing_ok=True)
                target.mkdir()
            elif not source.is_dir():
                if target.is_dir():
                    shutil.rmtree(target)
                else:
                    target.unlink(missing_ok=True)
                target.hardlink_to(source)
    _finish(unfinished, folder)


def _unfinished(folder: Path) -> Path:
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    return unfinished


def _finish(unfinished: Path, folder: Path) -> None:
    """Put a finished folder in its place, unless another is there by now."""
    for directory, _, _ in os.walk(unfinished):
        Path(directory).chmod(0o755)  # whatever this process's umask is: the folder around it is closed
    try:
        unfinished.rename(folder)
    except OSError:  # another was faster
        shutil.rmtree(unfinished, ignore_errors=True)


def _unpack_entry(archive_file: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, bytes_max: int) -> int:
    """Unpack one entry and return its size, as counted: what an archive says of its sizes need not be true."""
    if entry.is_dir():
        (folder / entry.filename).mkdir(parents=True, exist_ok=True)
        return 0
    path = folder / entry.filename
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive_file.open(entry) as source, path.open("wb") as target:
        while piece := source.read(_READ_BYTES):
            written += len(piece)
            if written > bytes_max:
                raise ValueError(f"the code unpacks to more than {UNPACKED_BYTES_MAX} bytes")
            target.write(piece)
    unix_mode = entry.external_attr >> 16
    is_executable = unix_mode & 0o111 or entry.filename == _PROGRAM
    path.chmod(0o755 if is_executable else 0o644)
    return written
