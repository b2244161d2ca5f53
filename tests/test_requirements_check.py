"""A missing or too old package or Python: one line that names the command, and no traceback."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import requirements_check
from config import REPOSITORY

SCRIPTS = [
    "analysis.py",
    "benchmark.py",
    "plots.py",
    "study_script.py",
    "train_no_jit.py",
    "train_variants.py",
    "train_with_jit.py",
    "update_readme.py",
]
PACKAGES = ["jax", "jaxlib", "numpy", "matplotlib", "psutil", "tabulate", "tqdm", "scipy"]


def test_nothing_is_wrong_here():
    assert requirements_check.find_fault() is None


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_checks_before_it_imports_a_package(script, tmp_path):
    # A path on which there is nothing but Python itself.
    command = [sys.executable, "-I", "-S", str(REPOSITORY / script), "--help"]
    code = f"import runpy, sys; sys.path.insert(0, {str(REPOSITORY)!r}); sys.argv = sys.argv[1:];"
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-I", "-S", "-c", code, str(REPOSITORY / script), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: jax is not installed; install with: python")
    assert done.stderr.endswith(" -m pip install -r requirements.txt\n")


def test_the_list_of_scripts_is_whole():
    assert sorted(SCRIPTS) == sorted(
        path.name
        for path in REPOSITORY.glob("*.py")
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_each_missing_package_is_named(monkeypatch, package):
    version, find_spec = requirements_check.metadata.version, requirements_check.importlib.util

    def without(name):
        if name == package:
            raise requirements_check.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(requirements_check.metadata, "version", without)
    assert requirements_check.find_fault() is None  # it is there, with no metadata
    monkeypatch.setattr(find_spec, "find_spec", lambda name: None)
    assert requirements_check.find_fault() == f"{package} is not installed"


@pytest.mark.parametrize(
    "here, fault",
    [
        ("0.4.29", "jax 0.4.29 is too old, 0.4.30 or newer is needed"),
        ("0.3.99.dev1+local", "jax 0.3.99.dev1+local is too old, 0.4.30 or newer is needed"),
        ("0.4.30", None),
        ("0.10.2rc1", None),
        ("1.0", None),
    ],
)
def test_versions_are_compared_by_their_numbers(monkeypatch, here, fault):
    version = requirements_check.metadata.version
    monkeypatch.setattr(
        requirements_check.metadata,
        "version",
        lambda name: here if name == "jax" else version(name),
    )
    assert requirements_check.find_fault() == fault


def test_an_old_python_is_told(monkeypatch):
    monkeypatch.setattr(requirements_check, "sys", SimpleNamespace(version_info=(3, 8, 18)))
    assert requirements_check.find_fault() == "this is Python 3.8, and 3.9 or newer is needed"
