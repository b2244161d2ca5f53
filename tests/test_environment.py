"""What is recorded of the machine, and what becomes of inherited settings."""

import os
import platform
import subprocess
from pathlib import Path

import jax
import pytest

import environment
import machine
from config import REPOSITORY


def test_environment_names_versions_and_no_private_thing():
    described = environment.describe_environment(REPOSITORY)
    assert described["jax"] == jax.__version__
    assert described["python"] == platform.python_version()
    assert described["cores_visible"] == os.cpu_count()
    assert described["cores_usable"] == machine.usable_cores()
    assert described["cores_quota"] == machine.quota_cores()
    for private in (platform.node(), str(Path.home()), str(REPOSITORY)):
        assert private not in str(described)


def test_no_repository_no_commit():
    described = environment.describe_environment(Path("/nowhere"))
    assert described["commit"] is None and described["tree_clean"] is None


@pytest.mark.parametrize(
    "text, hidden",
    [
        ("cannot write /tmp/a/b.json: full", "cannot write PATH full"),
        ("python: can't open file '/home/me/x.py'", "python: can't open file 'PATH'"),
        (r"cannot write C:\Users\me\x", "cannot write C:PATH"),
        ("loss 0.5 after 3 steps", "loss 0.5 after 3 steps"),
    ],
)
def test_paths_are_hidden(text, hidden):
    assert environment.hide_paths(text) == hidden


def test_settings_are_cleared_honoured_or_left_alone():
    variables = {
        "JAX_ENABLE_X64": "1",
        "JAX_COMPILATION_CACHE_DIR": "/home/me/cache",
        "JAX_PLATFORMS": "cpu",
        "PYTHONTRACEMALLOC": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONOPTIMIZE": "1",
        "XLA_FLAGS": "--xla_dump_to=/home/me/dump --xla_cpu_x=true",
        "OMP_NUM_THREADS": "1",
        "HOME": "/home/me",
        "NVIDIA_API_KEY": "secret",
        "TF_VAR_password": "secret",
        "LDAP_PASSWORD": "secret",
    }
    cleared = ["JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_X64", "PYTHONTRACEMALLOC"]
    assert environment.settings_to_clear(variables) == cleared
    assert environment.honoured_settings(variables) == {
        "OMP_NUM_THREADS": "1",
        "PYTHONOPTIMIZE": "1",
        "XLA_FLAGS": "--xla_dump_to=PATH --xla_cpu_x=true",
    }
    left = environment.worker_variables(variables)
    assert set(variables) - set(left) == set(cleared)


def test_commit_and_clean_tree_are_those_of_git(tmp_path):
    def git(*words):
        identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
        command = ["git", "-C", str(tmp_path), *identity, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "file.py").write_text("1")
    git("add", ".")
    git("commit", "-q", "-m", "first")

    def told():
        described = environment.describe_environment(tmp_path)
        return described["commit"], described["tree_clean"]

    assert told() == (git("rev-parse", "HEAD"), True)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "r.json").write_text("{}")
    assert told()[1] is True  # what a run writes is no change of the code
    (tmp_path / "file.py").write_text("2")
    assert told()[1] is False


@pytest.mark.parametrize("has_call", [True, False])  # macOS may refuse; Windows has no such call
def test_load_and_steal_are_absent_where_the_system_has_none(monkeypatch, has_call):
    def no_load():
        raise OSError

    monkeypatch.setattr(os, "getloadavg", no_load, raising=False)
    if not has_call:
        monkeypatch.delattr(os, "getloadavg")
    monkeypatch.setattr(environment.psutil, "cpu_times", lambda: (1.0, 2.0))
    assert environment.load_average() is None
    assert environment.steal_seconds() is None
