"""A cache that is no folder, or cannot be read or written; --data-dir; one download for all."""

import argparse
import os
import tempfile
from types import SimpleNamespace

import pytest
from tiny_files import (
    TEST_LABELS,
    assert_folder_is_full,
    assert_is_tiny,
)

import config
import mnist_cache
from data_loader import DataError, load_mnist
from utils import OptionError, ScriptError

pytestmark = pytest.mark.usefixtures("tiny")


def test_without_a_writable_folder_it_goes_on_from_memory(tmp_path, mirrors, capfd):
    # A file in place of the folder, as permissions forbid root nothing.
    blocked = tmp_path / "file"
    blocked.write_text("x")
    assert_is_tiny(load_mnist(blocked / "cache"))
    (line,) = capfd.readouterr().err.splitlines()
    assert "--data-dir" in line and "MNIST_CACHE_DIR" in line and str(blocked) in line
    assert blocked.read_text() == "x"


def forbid(monkeypatch, folder):
    """Makes a folder one that may not be read or written; permissions forbid root nothing."""

    def refusing(function):
        def call(path, *args, **options):
            if str(path).startswith(str(folder)):
                raise PermissionError(13, "Permission denied")
            return function(path, *args, **options)

        return call

    for name in ("scandir", "stat", "mkdir", "replace"):
        monkeypatch.setattr(mnist_cache.os, name, refusing(getattr(os, name)))


def bad_folder(kind, tmp_path, monkeypatch):
    folder = tmp_path / kind
    if kind == "file":
        folder.write_text("x")
    elif kind == "broken link":
        folder.symlink_to(tmp_path / "nowhere")
    elif kind == "loop":
        folder.symlink_to(folder)
    else:
        folder.mkdir()
        forbid(monkeypatch, folder)
    return folder


BAD_FOLDERS = {
    "file": "not a folder",
    "broken link": "a broken link",
    "loop": "cannot be read",
    "forbidden": "cannot be read (Permission denied)",
}


@pytest.mark.parametrize("kind", BAD_FOLDERS)
def test_a_cache_that_is_no_folder_is_left_alone(kind, tmp_path, mirrors, monkeypatch, capfd):
    folder = bad_folder(kind, tmp_path, monkeypatch)
    mnist = load_mnist(folder)
    assert_is_tiny(mnist)
    assert not mnist.kept
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"warning: cannot write to {folder} ({BAD_FOLDERS[kind]}")
    assert "--data-dir" in line and "MNIST_CACHE_DIR" in line
    with pytest.raises(DataError) as caught:
        load_mnist(folder, offline=True)
    assert str(caught.value).startswith(f"{folder}: {BAD_FOLDERS[kind]}")
    assert kind != "file" or folder.read_text() == "x"


@pytest.mark.parametrize("kind", BAD_FOLDERS)
def test_data_dir_that_is_no_folder_is_a_bad_option(kind, tmp_path, monkeypatch, mirrors):
    folder = bad_folder(kind, tmp_path, monkeypatch)
    with pytest.raises(OptionError) as caught:
        config.load_data(SimpleNamespace(data_dir=folder, offline=False))
    assert str(caught.value).startswith(f"--data-dir {folder}: {BAD_FOLDERS[kind]}")
    assert not mirrors[0].requests


def test_a_broken_link_in_place_of_a_file_is_replaced(full, mirrors):
    (full / TEST_LABELS).unlink()
    (full / TEST_LABELS).symlink_to(full / "nowhere")
    assert_is_tiny(load_mnist(full))
    assert_folder_is_full(full)


def test_a_link_to_itself_in_place_of_a_file_is_a_bad_file(full, mirrors):
    (full / TEST_LABELS).unlink()
    (full / TEST_LABELS).symlink_to(full / TEST_LABELS)
    with pytest.raises(DataError, match=f"{TEST_LABELS}: cannot be read"):
        load_mnist(full, offline=True)
    assert_is_tiny(load_mnist(full))


def test_an_unwritable_cache_costs_one_download_for_all_processes(
    tmp_path, mirrors, monkeypatch, capfd
):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    options = argparse.Namespace(data_dir=None, offline=False, seed=3)
    monkeypatch.setenv("MNIST_CACHE_DIR", str(blocked))
    with config.data_for_processes(options) as told:
        assert told.seed == 3 and options.data_dir is None
        assert_folder_is_full(told.data_dir)
        for _ in range(3):
            assert_is_tiny(config.load_data(told))
    assert not told.data_dir.exists()
    assert len(mirrors[0].requests) == 4
    assert capfd.readouterr().err.count("warning: ") == 1


def test_a_cache_that_keeps_the_files_is_given_to_the_processes(empty, mirrors):
    options = argparse.Namespace(data_dir=empty, offline=False)
    with config.data_for_processes(options) as told:
        assert told is options
    assert_folder_is_full(empty)


def test_where_no_folder_can_keep_the_files_one_line_says_so(tmp_path, mirrors, monkeypatch):
    def refuse(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    options = argparse.Namespace(data_dir=tmp_path, offline=False)
    told = config.data_for_processes(options)
    with pytest.raises(ScriptError, match=r"No space left on device.*--data-dir.*TMPDIR"):
        told.__enter__()
