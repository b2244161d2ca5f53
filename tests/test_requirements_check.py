"""A missing or too old package or Python: one line with the command that helps, exit status 1."""

import requirements_check

import ast
import os
import subprocess
import sys
import time

import pytest

from config import REPOSITORY

SCRIPTS = sorted(
    path.name
    for path in REPOSITORY.glob("*.py")
    if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
)
PACKAGES = ["jax", "jaxlib", "numpy", "matplotlib", "psutil", "tabulate", "tqdm", "scipy"]
# Python imports a module of this name at its start: it hides a package.
HIDE = """
import sys
class Hide:
    def find_spec(self, name, *_):
        if name == {package!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hide())
"""


def run(script, first_on_the_path):
    return subprocess.run(
        [sys.executable, str(REPOSITORY / script), "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(first_on_the_path)},
    )


def check_one_line(done, text):
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {text}; run: python -m pip install -r requirements.txt\n"


def add_package(folder, name, version, requires=()):
    metadata = folder / f"{name}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    lines = [f"Name: {name}", *(f"Requires-Dist: {requirement}" for requirement in requires)]
    metadata.write_text("\n".join(lines), encoding="utf-8")
    (folder / f"{name}.py").write_text("")


def test_all_scripts_are_known():
    known = {"benchmark.py", "plots.py", "train_no_jit.py", "train_with_jit.py", "update_readme.py"}
    assert known <= set(SCRIPTS)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_is_one_line(tmp_path, package):
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(package=package))
    check_one_line(run("benchmark.py", tmp_path), f"needed, but not here: {package}")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_too_old_package_is_one_line(tmp_path, package):
    # JAX's own requirements stand in its metadata: that of the made-up one has none but scipy.
    add_package(tmp_path, package, "0.4.9", ["scipy>=1.0"] if package == "jax" else [])
    done = run("benchmark.py", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: needed, but not here: {package} ")
    assert done.stderr.endswith(
        "or newer (found: 0.4.9); run: python -m pip install -r requirements.txt\n"
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_script_checks_before_it_imports_anything_else(tmp_path, script):
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(package="numpy"))
    check_one_line(run(script, tmp_path), "needed, but not here: numpy")
    source = (REPOSITORY / script).read_text(encoding="utf-8")
    # With this syntax, Python 3.7 and 3.8 come as far as the check.
    tree = ast.parse(source, feature_version=(3, 7))
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert imports[0].module == "__future__"
    assert imports[1].names[0].name == "requirements_check"


def test_an_old_python_is_one_line(monkeypatch):
    monkeypatch.setattr(requirements_check.sys, "version_info", (3, 8, 18, "final", 0))
    monkeypatch.setattr(requirements_check.sys, "version", "3.8.18 (default)")
    with pytest.raises(SystemExit) as ended:
        requirements_check.check()
    assert ended.value.code == (
        "error: Python 3.8.18 is too old; with 3.9 or newer, "
        "run: python -m pip install -r requirements.txt"
    )
    source = (REPOSITORY / "requirements_check.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 7))


def test_a_lost_requirements_file_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(requirements_check, "REQUIREMENTS", str(tmp_path / "requirements.txt"))
    with pytest.raises(SystemExit, match=r"^error: cannot read requirements\.txt: No such file"):
        requirements_check.check()


@pytest.mark.parametrize(
    "requirement, fault",
    [
        ("made_up", None),
        ("made-up>=2.10", None),
        ("made.up >=2.9,<=2.10.0", None),
        ("made_up>=2.11", "made_up 2.11 or newer (found: 2.10)"),
        ("made_up<=2.9,>=2.8", "made_up 2.9 or older (found: 2.10)"),
        ("no_such_package>=1", "no_such_package"),
        ("without_metadata>=1", None),
    ],
)
def test_versions_are_compared_as_numbers(monkeypatch, tmp_path, requirement, fault):
    monkeypatch.syspath_prepend(tmp_path)
    add_package(tmp_path, "made_up", "2.10")
    (tmp_path / "without_metadata.py").write_text("")
    faults = requirements_check.find_faults([requirement])
    assert faults == ([fault] if fault else [])


@pytest.mark.parametrize("version", ["0.4.30", "0.4.30.dev20240601", "0.4.30+cuda12", "0.4.30rc1"])
def test_jax_own_requirements_count_but_not_their_extras(monkeypatch, tmp_path, version):
    monkeypatch.syspath_prepend(tmp_path)
    requires = ["jaxlib<=0.0.2,>=0.0.1", 'no_such_package>=1; extra == "cuda"', "no-such-lib"]
    add_package(tmp_path, "jax", version, requires)
    add_package(tmp_path, "jaxlib", "0.0.3")
    faults = requirements_check.find_faults(["jax>=0.4.30", "jaxlib>=0.4.30"])
    # Named twice, jaxlib is told once.
    assert faults == ["jaxlib 0.4.30 or newer (found: 0.0.3)", "no_such_lib"]
    assert requirements_check.find_faults(["jax>=0.4.30"])[0].startswith("jaxlib 0.0.2 or older")


def test_the_check_is_silent_and_cheap():
    code = (
        "import sys, time; import requirements_check; "
        "print([m for m in ('numpy', 'jax', 'importlib.metadata', 'email') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        assert requirements_check.check() is None
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.02
