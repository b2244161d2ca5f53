"""Downloads that hang, drip, redirect or talk nonsense, and a pip that does; no network."""

import os
import shutil
import socket
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from tiny_files import (
    Handler,
    assert_is_tiny,
    listing,
    serve_good,
)

import downloads
import mnist_sources
from data_loader import DataError, load_mnist

PUBLISHED_MIRRORS = mnist_sources.MIRRORS  # before a fixture replaces them
REAL_RUN_PIP = downloads._run_pip
pytestmark = pytest.mark.usefixtures("tiny")


def test_a_mirror_that_hangs_is_left_after_the_time_out(empty, mirrors, monkeypatch):
    monkeypatch.setattr(downloads, "OPEN_TIMEOUT_S", 0.1)
    released = threading.Event()

    def hang(name):
        released.wait(10)
        return serve_good(name)

    mirrors[0].answer = hang
    start = time.monotonic()
    assert_is_tiny(load_mnist(empty))
    assert time.monotonic() - start < 3
    assert len(mirrors[0].requests) == 3
    released.set()


def test_a_mirror_that_stalls_within_a_file_is_left(empty, mirrors, monkeypatch):
    monkeypatch.setattr(downloads, "READ_TIMEOUT_S", 0.1)
    released = threading.Event()

    def stall(handler):
        if handler.server is not mirrors[0]:
            get(handler)
            return
        handler.server.requests.append("stalled")
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"x")
        released.wait(10)

    get = Handler.do_GET
    monkeypatch.setattr(Handler, "do_GET", stall)
    start = time.monotonic()
    assert_is_tiny(load_mnist(empty))
    assert time.monotonic() - start < 3
    assert mirrors[0].requests == ["stalled"] * 3
    released.set()


def drip(handler, start):
    """Sends the start of an answer, then a byte now and then, until the other side hangs up."""
    handler.server.requests.append("dripped")
    with suppress(OSError):
        handler.wfile.write(start)
        for _ in range(500):
            handler.wfile.write(b"1")
            time.sleep(0.02)


DRIPS = {
    "headers": b"HTTP/1.1 200 OK\r\nX-Slow: ",
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
    "size of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
}


@pytest.mark.parametrize("where", DRIPS)
def test_a_mirror_that_drips_is_left(where, empty, mirrors, monkeypatch):
    monkeypatch.setattr(downloads, "PATIENCE_S", 0.4)
    monkeypatch.setattr(Handler, "do_GET", lambda handler: drip(handler, DRIPS[where]))
    start = time.monotonic()
    with pytest.raises(DataError) as caught:
        load_mnist(empty)
    assert time.monotonic() - start < 4
    assert str(caught.value).count("too slow: less than 20000 bytes/s for 0.4 s") == 2
    assert listing(empty) == []


def test_a_mirror_that_is_slow_but_fast_enough_is_waited_for(empty, mirrors, monkeypatch):
    monkeypatch.setattr(downloads, "PATIENCE_S", 0.4)

    def answer(name):
        time.sleep(0.2)  # four files: 0.8 s in all
        return serve_good(name)

    mirrors[0].answer = answer
    monkeypatch.setattr(downloads, "SLOWEST", 100)
    assert_is_tiny(load_mnist(empty))
    assert not mirrors[1].requests


def test_patience_is_renewed_but_never_saved_up(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(downloads, "time", SimpleNamespace(monotonic=lambda: clock.now))
    patience = downloads.Patience()
    clock.now = 10
    assert patience.left() == downloads.PATIENCE_S - 10
    patience.gave(5 * downloads.SLOWEST)
    assert patience.left() == downloads.PATIENCE_S - 5
    patience.gave(10**9)  # a fast start buys no hours of dripping
    assert patience.left() == downloads.PATIENCE_S
    clock.now += downloads.PATIENCE_S
    with pytest.raises(downloads.Fault, match="too slow"):
        patience.left()


def test_no_answer_at_all_ends_within_a_minute():
    n_sources = len(PUBLISHED_MIRRORS) + 1
    assert n_sources * downloads.PATIENCE_S + sum(downloads.RETRY_PAUSES_S) < 60


def test_a_host_without_an_address_is_not_retried(empty, monkeypatch, wheel):
    hosts = []

    def getaddrinfo(host, *args, **options):
        hosts.append(host)
        raise socket.gaierror(-2, "unknown host")

    monkeypatch.setattr(mnist_sources, "MIRRORS", ("https://a.invalid/", "https://b.invalid/"))
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert_is_tiny(load_mnist(empty))
    assert hosts == ["a.invalid", "b.invalid"]


def reason_of(mirror, folder):
    """The line that the message has for a mirror."""
    with pytest.raises(DataError) as caught:
        load_mnist(folder)
    return next(line for line in str(caught.value).splitlines() if line.startswith(f"  {mirror}: "))


def test_refusal_and_a_tls_failure_are_told(empty, mirrors, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    for url, reason in (
        (f"http://127.0.0.1:{port}/", "refused"),
        (mirrors[0].url.replace("http:", "https:"), "SSL"),
    ):
        monkeypatch.setattr(mnist_sources, "MIRRORS", (url,))
        assert reason in reason_of("127.0.0.1", empty)
        monkeypatch.setattr(mnist_sources, "MIRRORS", (url, mirrors[1].url))
        assert_is_tiny(load_mnist(empty))
        shutil.rmtree(empty)


def test_a_proxy_that_does_not_answer_is_left(empty, monkeypatch):
    monkeypatch.setattr(downloads, "OPEN_TIMEOUT_S", 0.1)
    monkeypatch.setattr(mnist_sources, "MIRRORS", ("http://a.invalid/", "https://b.invalid/"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{silent.getsockname()[1]}")
        start = time.monotonic()
        assert "no answer within 0.1 s" in reason_of("a.invalid", empty)
        assert "no answer within 0.1 s" in reason_of("b.invalid", empty)
        assert time.monotonic() - start < 5


REDIRECTS = {
    "file:///x": "file:",
    "ftp://127.0.0.1:9/x": "redirects to ftp:",
    "data:,x": "data:",
    "x.gz": "infinite loop",
    "http://[": "",
    "": "",
}


@pytest.mark.parametrize("target", REDIRECTS)
def test_a_bad_redirect_is_left_for_the_next_mirror(target, empty, mirrors, monkeypatch):
    def redirect(handler):
        if handler.server is not mirrors[0]:
            get(handler)
            return
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    get = Handler.do_GET
    monkeypatch.setattr(Handler, "do_GET", redirect)
    assert_is_tiny(load_mnist(empty))
    shutil.rmtree(empty)
    monkeypatch.setattr(mnist_sources, "MIRRORS", (mirrors[0].url,))
    assert REDIRECTS[target] in reason_of("127.0.0.1", empty)


def test_a_redirect_within_the_web_is_followed(empty, mirrors, monkeypatch):
    def redirect(handler):
        if handler.server is not mirrors[0]:
            get(handler)
            return
        handler.send_response(302)
        handler.send_header("Location", mirrors[1].url + handler.path.rpartition("/")[2])
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    get = Handler.do_GET
    monkeypatch.setattr(Handler, "do_GET", redirect)
    monkeypatch.setattr(mnist_sources, "MIRRORS", (mirrors[0].url,))
    assert_is_tiny(load_mnist(empty))


def test_a_mirror_that_talks_nonsense_is_left(empty, mirrors, monkeypatch):
    """100 mutated answers: none gets through to the user as anything but a DataError."""
    rng = np.random.default_rng(5)
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"
    )

    def nonsense(handler):
        answer = bytearray(head)
        for _ in range(rng.integers(1, 4)):
            where = int(rng.integers(len(answer)))
            answer[where : where + int(rng.integers(0, 8))] = rng.bytes(int(rng.integers(0, 8)))
        with suppress(OSError):
            handler.wfile.write(answer)

    monkeypatch.setattr(Handler, "do_GET", nonsense)
    for _ in range(100):
        with pytest.raises(DataError) as caught:
            load_mnist(empty)
        assert str(caught.value).isprintable() is False  # it has lines, and
        assert all(line.isprintable() for line in str(caught.value).split("\n"))


def test_what_a_server_says_is_one_short_line():
    fault = downloads.Fault("a\r\nb\x1b[31m" + "c" * 1000)
    assert str(fault).startswith("a b [31mccc") and len(str(fault)) < 310


PIP_STAND_INS = {
    "import time; time.sleep(60)": "too slow",
    "import sys; sys.stderr.write('ERROR: no such\\n\\xe9 hint\\n'); sys.exit(1)": "ERROR: no",
    "import sys; sys.exit('No module named pip.__main__')": "No module named pip",
    "pass": "it gave no wheel, exit status 0",
    "open('x', 'wb').write(bytes(10**6)); import time; time.sleep(60)": "more than 1000 bytes",
    # What pip started may outlive it and hold its streams.
    "import subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3)'])\n"
    "time.sleep(60)": "too slow",
}


@pytest.mark.parametrize("code", PIP_STAND_INS)
def test_a_pip_that_hangs_or_fails_is_ended_and_told(code, empty, monkeypatch):
    folders = []

    def run(command, env, folder):
        folders.append(folder)
        code_there = f"import os; os.chdir({str(folder)!r})\n{code}"
        return REAL_RUN_PIP([sys.executable, "-c", code_there], env, folder)

    monkeypatch.setattr(downloads, "_run_pip", run)
    monkeypatch.setattr(downloads, "PATIENCE_S", 1)
    monkeypatch.setattr(downloads, "PIP_LIMIT", 1000)
    start = time.monotonic()
    with pytest.raises(DataError) as caught:
        load_mnist(empty)
    assert time.monotonic() - start < 2.5
    assert PIP_STAND_INS[code] in str(caught.value)
    assert not folders[0].exists() and listing(empty) == []


def test_an_interrupt_ends_pip(tmp_path, monkeypatch):
    def interrupt(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(downloads, "_folder_size", interrupt)
    before = set(psutil.Process().children())
    with pytest.raises(KeyboardInterrupt):
        REAL_RUN_PIP([sys.executable, "-c", "import time; time.sleep(60)"], os.environ, tmp_path)
    assert set(psutil.Process().children()) == before


def test_what_pip_gives_renews_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "PATIENCE_S", 1)
    monkeypatch.setattr(downloads, "SLOWEST", 10)
    code = "import sys, time\nfor i in range(8):\n  time.sleep(0.25)\n"
    code += "  open(f'{sys.argv[1]}/{i}', 'wb').write(bytes(50))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert REAL_RUN_PIP(command, os.environ, tmp_path) == (0, "")
