"""The folder that keeps MNIST: damaged, forbidden, shared or half-written; no network."""

import gzip
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tiny_files import (
    CONTENTS,
    HASHES,
    N_TEST,
    N_TRAIN,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    assert_folder_is_full,
    assert_is_tiny,
    listing,
    serve_good,
)

import data_loader
import downloads
import mnist_cache
import mnist_sources
from data_loader import DataError, load_mnist

REPOSITORY = Path(data_loader.__file__).parent
GOOD = gzip.compress(CONTENTS[TRAIN_LABELS])
pytestmark = pytest.mark.usefixtures("tiny")


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
    monkeypatch.setattr(mnist_cache, "open", refuse, raising=False)
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


def test_a_bad_file_in_a_folder_that_cannot_be_written(full, mirrors, monkeypatch, capfd):
    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    corrupt(full / TRAIN_IMAGES, "truncated")
    monkeypatch.setattr(mnist_cache.os, "replace", refuse)
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


def age(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_files_of_killed_writers_are_removed_when_old(full):
    old, young = full / f"{TRAIN_IMAGES}abc.tmp", full / f"{TEST_LABELS}def.tmp"
    foreign, folder = full / "notes.tmp", full / f"{TEST_LABELS}dir.tmp"
    for path in (old, young, foreign):
        path.write_bytes(b"half")
    folder.mkdir()
    for path in (old, foreign, folder):
        age(path, 25 * 3600)
    age(young, 23 * 3600)  # its writer may live
    assert load_mnist(full, offline=True).kept
    assert_folder_is_full(full, extra=[young.name, foreign.name, folder.name])


def test_a_writer_that_was_killed_leaves_what_a_later_load_removes(empty, mirrors):
    code = (
        "import os, pathlib, sys, utils\n"
        "os.replace = lambda *_: os.kill(os.getpid(), 9)\n"
        "utils.write_whole(pathlib.Path(sys.argv[1]), b'half')"
    )
    command = [sys.executable, "-c", code, str(empty / TRAIN_IMAGES)]
    assert subprocess.run(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL).returncode != 0
    (left,) = empty.iterdir()
    age(left, 25 * 3600)
    load_mnist(empty)
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


def test_the_readers_meet_a_thousand_mutated_files():
    """Every one is the right content or a Fault: never another exception, never other bytes."""
    rng = np.random.default_rng(11)
    faults = 0
    for i in range(1000):
        name = list(CONTENTS)[i % 4]
        packed = gzip.compress(CONTENTS[name], mtime=0) if i % 2 else CONTENTS[name]
        content = bytearray(packed)
        for _ in range(rng.integers(1, 4)):
            # Every second one within the first bytes, where the headers are.
            where = int(rng.integers(min(len(content), 32) if rng.random() < 0.5 else len(content)))
            n = int(rng.integers(0, 12))
            content[where : where + int(rng.integers(0, 12))] = rng.bytes(n)
            content = content or bytearray(1)
        read = mnist_sources.unpacked if i % 2 else mnist_sources.verified
        try:
            assert read(content, name).tobytes() == CONTENTS[name]
        except downloads.Fault as fault:
            assert str(fault)
            faults += 1
    assert faults > 900
