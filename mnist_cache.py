"""The folder that keeps the MNIST files: what is good there is used, what is bad is set aside.

Never imports JAX.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

import mnist_sources
from downloads import Fault
from utils import warn, write_whole

STALE_S = 86_400  # a temporary file of this age belongs to no process that still writes it


class DataError(Exception):
    """MNIST could not be loaded; its text is the whole message for the user."""


def folder_fault(folder: Path) -> str | None:
    """Returns why a folder cannot be read; None if it can, or does not exist yet."""
    try:
        os.scandir(folder).close()
    except FileNotFoundError:
        return "a broken link" if os.path.islink(folder) else None
    except NotADirectoryError:
        return "not a folder"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None


class Cache:
    """The cache folder; it is left alone, after one warning, once it cannot be written."""

    def __init__(self, folder: Path, offline: bool) -> None:
        """Takes the folder; DataError if it cannot be read and there is no other source."""
        self.folder = folder
        self.writable = True
        self._offline = offline
        fault = folder_fault(folder)
        self._readable = not fault
        if fault and offline:
            raise DataError(f"{folder}: {fault}. {by_hand(folder)}")
        if fault:
            self._give_up(fault)
        else:
            _remove_stale(folder)

    def find(self, name: str) -> np.ndarray | None:
        """Returns the verified content of NAME, or else of NAME.gz; None if there is neither.

        A bad file is set aside with a warning; when offline it is a DataError.
        """
        if not self._readable:
            return None
        for path in (self.folder / name, self.folder / f"{name}.gz"):
            packed = path.suffix == ".gz"
            try:
                content = _read(
                    path, mnist_sources.idx_size(name) + packed * mnist_sources.GZIP_OVERHEAD
                )
                if content is not None and packed:
                    return self.store(name, mnist_sources.unpacked(content, name))
                if content is not None:
                    return mnist_sources.verified(content, name)
            except Fault as fault:
                if self._offline:
                    raise DataError(f"{path}: {fault}. {by_hand(self.folder)}") from fault
                self._set_aside(path, fault)
        return None

    def store(self, name: str, content: np.ndarray) -> np.ndarray:
        """Writes verified content under a temporary name and renames it; returns the content.

        So other processes see a whole file or none, and several may store the same one at once.
        """
        if not self.writable:
            return content
        try:
            write_whole(self.folder / name, content)
        except OSError as error:
            self._give_up(str(error.strerror))
        return content

    def _set_aside(self, path: Path, fault: Fault) -> None:
        warn(f"{path}: {fault}; renaming it to {path.name}.bad")
        try:
            with suppress(FileNotFoundError):  # another process was first
                os.replace(path, f"{path}.bad")
        except OSError as error:
            self._give_up(str(error.strerror))

    def _give_up(self, reason: str) -> None:
        if not self.writable:
            return
        self.writable = False
        warn(
            f"cannot write to {self.folder} ({reason}); going on from memory. "
            "Choose another folder by --data-dir or MNIST_CACHE_DIR"
        )


def _remove_stale(folder: Path) -> None:
    """Removes what write_whole leaves when it is killed, once it is a day old."""
    for name in mnist_sources.FILES:
        for path in folder.glob(f"{name}*.tmp"):
            with suppress(OSError):  # another process was first, or it may not be removed
                if time.time() - path.stat().st_mtime > STALE_S:
                    path.unlink()


def by_hand(folder: Path) -> str:
    """Returns the sentence that tells how to place the files."""
    return (
        f"To place the files by hand, put {', '.join(mnist_sources.FILES)}, each as it is or as "
        f"NAME.gz, into {folder} (or choose another folder by --data-dir or MNIST_CACHE_DIR)."
    )


def _read(path: Path, limit: int) -> np.ndarray | None:
    """Reads a file of at most limit bytes into one (size,) uint8; None if there is none."""
    try:
        if not os.path.isfile(path):  # opening a pipe would block for ever
            os.stat(path)
            raise Fault("not a regular file")
        size = os.path.getsize(path)
        if size > limit:
            raise Fault(f"{size} bytes, more than {limit}")
        content = np.empty(size, np.uint8)
        with open(path, "rb") as file:
            return content[: file.readinto(content)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Fault(f"cannot be read ({error.strerror})") from error
