"""MNIST: fetched once, verified at every load, and cut into batches. Never imports JAX."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

import mnist_sources
from downloads import Fault
from mnist_cache import Cache, DataError, by_hand
from mnist_sources import IMAGE_PIXELS
from utils import write_whole


class Mnist(NamedTuple):
    """Both data sets, where they came from, and the SHA-256 of each IDX file by its name."""

    train_images: np.ndarray  # (60000, 784) float32 in [0, 1], or uint8
    train_labels: np.ndarray  # (60000,) int32
    test_images: np.ndarray  # (10000, 784), as train_images
    test_labels: np.ndarray  # (10000,) int32
    source: str
    sha256: dict[str, str]
    kept: bool = True  # all files are in the cache folder now


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
    cache = Cache(default_data_dir() if data_dir is None else Path(data_dir), offline)
    contents, source = _collect(cache, offline)
    arrays = []
    for name in mnist_sources.FILES:
        # pop: one file's bytes are freed before the next one's images are made.
        values = contents.pop(name)[len(mnist_sources.idx_header(name)) :]
        if "labels" in name:
            arrays.append(values.astype(np.int32))
        else:
            images = values.reshape(-1, IMAGE_PIXELS)
            arrays.append(images if np.dtype(dtype) == np.uint8 else scale_pixels(images))
    return Mnist(*arrays, source=source, sha256=dict(mnist_sources.FILES), kept=cache.writable)


def write_files(mnist: Mnist, folder: Path) -> None:
    """Writes the four IDX files into a folder.

    Args:
        mnist: With images of dtype uint8.
        folder: Where load_mnist finds them then.

    Raises:
        OSError: If they cannot be written.
    """
    for name, values in zip(mnist_sources.FILES, mnist):
        write_whole(folder / name, mnist_sources.idx_header(name) + values.astype("B").tobytes())


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


def _collect(cache: Cache, offline: bool) -> tuple[dict[str, np.ndarray], str]:
    """Returns the verified content of every file by its name, and the sources as one text."""
    found = {name: cache.find(name) for name in mnist_sources.FILES}
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
        raise DataError(f"{what} not in {cache.folder}; {tried}{by_hand(cache.folder)}")
    return contents, ", ".join(dict.fromkeys(origins))
