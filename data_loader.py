"""MNIST: fetched once, verified at every load, and cut into batches. Never imports JAX."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

import mnist_sources
from mnist_sources import IMAGE_PIXELS, Fault
from utils import warn, write_whole


class DataError(Exception):
    """MNIST could not be loaded; its text is the whole message for the user."""


class Mnist(NamedTuple):
    """Both data sets, where they came from, and the SHA-256 of each IDX file by its name."""

    train_images: np.ndarray  # (60000, 784) float32 in [0, 1], or uint8
    train_labels: np.ndarray  # (60000,) int32
    test_images: np.ndarray  # (10000, 784), as train_images
    test_labels: np.ndarray  # (10000,) int32
    source: str
    sha256: dict[str, str]


def default_data_dir() -> Path:
    """Returns the folder $MNIST_CACHE_DIR if that is set and not empty, else ~/.mnist_cache.

    A relative folder starts at the repository, as those in options do.

    Raises:
        DataError: If the home folder is needed and not known.
    """
    try:
        folder = Path(os.environ.get("MNIST_CACHE_DIR") or "~/.mnist_cache").expanduser()
        return Path(__file__).resolve().parent / folder
    except RuntimeError as error:  # a user without a home folder, as in some containers
        raise DataError(f"{error} Choose a folder by --data-dir or MNIST_CACHE_DIR.") from error


def load_mnist(
    data_dir: Path | None = None, *, offline: bool = False, dtype: DTypeLike = np.float32
) -> Mnist:
    """Loads MNIST from the cache folder; what is missing there is fetched and kept there.

    Every file is verified by its SHA-256, wherever it comes from.

    Args:
        data_dir: The cache folder; None for default_data_dir().
        offline: Use the cache folder alone.
        dtype: Of the images: float32 for values in [0, 1], or uint8 for the bytes, 0 to 255.

    Returns:
        Images (60000, 784) and (10000, 784) of this dtype, labels (60000,) and (10000,) int32.
        Images of dtype uint8 may be read-only.

    Raises:
        DataError: If a file is missing or bad and cannot be fetched.
        ValueError: If dtype is neither float32 nor uint8.
    """
    if np.dtype(dtype) not in (np.float32, np.uint8):
        raise ValueError(f"images are float32 or uint8, not {np.dtype(dtype)}")
    contents, source = _collect(default_data_dir() if data_dir is None else Path(data_dir), offline)
    arrays = []
    for name in mnist_sources.FILES:
        # pop: one file's bytes are freed before the next one's images are made.
        values = contents.pop(name)[len(mnist_sources.idx_header(name)) :]
        if "labels" in name:
            arrays.append(values.astype(np.int32))
        else:
            images = values.reshape(-1, IMAGE_PIXELS)
            arrays.append(images if np.dtype(dtype) == np.uint8 else scale_pixels(images))
    return Mnist(*arrays, source=source, sha256=dict(mnist_sources.FILES))


def scale_pixels(images: np.ndarray) -> np.ndarray:
    """Returns uint8 images of any shape as float32 in [0, 1]; float32 images unchanged."""
    if images.dtype == np.float32:
        return images
    # Divided, not multiplied by 1/255: each value is then the float32 nearest to v / 255.
    return np.divide(images, np.float32(255), dtype=np.float32)


def epoch_order(seed: int, epoch: int, n: int) -> np.ndarray:
    """Returns the order of n examples in an epoch, (n,) int64: always the same for a seed."""
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return order.astype(np.int64, copy=False)  # NumPy 1 makes it int32 on Windows


def batches(
    images: np.ndarray, labels: np.ndarray, batch_size: int, order: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the examples in this order, batch by batch; the last batch may be smaller.

    Args:
        images: (n, 784), uint8 or float32.
        labels: (n,) int32.
        batch_size: b, examples a batch.
        order: (n,) integers, the index of each example once.

    Yields:
        Images (b, 784) float32 in [0, 1] and labels (b,) int32.
    """
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        yield scale_pixels(images.take(chosen, axis=0)), labels.take(chosen)


def _collect(folder: Path, offline: bool) -> tuple[dict[str, np.ndarray], str]:
    """Returns the verified content of every file by its name, and the sources as one text."""
    cache = _Cache(folder)
    found = {name: cache.find(name, offline) for name in mnist_sources.FILES}
    contents = {name: content for name, content in found.items() if content is not None}
    origins, reasons = ["cache"] if contents else [], []
    for origin, fetch in () if offline else mnist_sources.sources():
        missing = [name for name in mnist_sources.FILES if name not in contents]
        if not missing:
            break
        try:
            for name, content in fetch(missing):
                contents[name] = cache.store(name, content)
                origins.append(origin)
        except Fault as fault:
            reasons.append(f"  {origin}: {fault}\n")
    missing = [name for name in mnist_sources.FILES if name not in contents]
    if missing:
        tried = f"every source failed:\n{''.join(reasons)}" if reasons else "offline.\n"
        what = "MNIST is" if len(missing) == len(mnist_sources.FILES) else ", ".join(missing)
        raise DataError(f"{what} not in {folder}; {tried}{_by_hand(folder)}")
    return contents, ", ".join(dict.fromkeys(origins))


class _Cache:
    """The cache folder; it is left alone, after one warning, once it cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writable = True

    def find(self, name: str, offline: bool) -> np.ndarray | None:
        """Returns the verified content of NAME, or else of NAME.gz; None if there is neither.

        A bad file is set aside with a warning; when offline it is a DataError.
        """
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
                if offline:
                    raise DataError(f"{path}: {fault}. {_by_hand(self.folder)}") from fault
                self._set_aside(path, fault)
        return None

    def store(self, name: str, content: np.ndarray) -> np.ndarray:
        """Writes verified content under a temporary name and renames it; returns the content.

        So other processes see a whole file or none, and several may store the same one at once.
        """
        if not self._writable:
            return content
        try:
            write_whole(self.folder / name, content)
        except OSError as error:
            self._give_up(error)
        return content

    def _set_aside(self, path: Path, fault: Fault) -> None:
        warn(f"{path}: {fault}; renaming it to {path.name}.bad")
        try:
            with suppress(FileNotFoundError):  # another process was first
                os.replace(path, f"{path}.bad")
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._writable = False
        warn(
            f"cannot write to {self.folder} ({error.strerror}); going on from memory. "
            "Choose another folder by --data-dir or MNIST_CACHE_DIR"
        )


def _by_hand(folder: Path) -> str:
    return (
        f"To place the files by hand, put {', '.join(mnist_sources.FILES)}, each as it is or as "
        f"NAME.gz, into {folder} (or choose another folder by --data-dir or MNIST_CACHE_DIR)."
    )


def _read(path: Path, limit: int) -> np.ndarray | None:
    """Reads a file of at most limit bytes into one (size,) uint8; None if there is none."""
    if not os.path.exists(path):
        return None
    if not os.path.isfile(path):  # opening a pipe would block for ever
        raise Fault("not a regular file")
    try:
        size = os.path.getsize(path)
        if size > limit:
            raise Fault(f"{size} bytes, more than {limit}")
        content = np.empty(size, np.uint8)
        with open(path, "rb") as file:
            return content[: file.readinto(content)]
    except OSError as error:
        raise Fault(f"cannot be read ({error.strerror})") from error
