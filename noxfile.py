"""The test matrix: `nox` runs the tests and a quick benchmark on pairs of Python and JAX.

Pythons are found by PATH; one that is not there is skipped, and nox says so. The tests fetch MNIST,
if it is not in the cache.
"""

from __future__ import annotations

from pathlib import Path

import nox

LEAST = "least"  # of JAX, and of all that requirements.txt names
NEWEST = "newest"
# Python, and the version of JAX: the ends of both, and some between. 0.4.38 is the version of the
# work that this repository follows; the newest that Python 3.9 can have is the least.
PAIRS = [
    ("3.9", LEAST),
    ("3.10", "0.4.38"),
    ("3.10", "0.6.*"),
    ("3.11", "0.10.*"),
    ("3.12", NEWEST),
    ("3.13", NEWEST),
]

nox.needs_version = ">=2026.2"
nox.options.error_on_missing_interpreters = False  # it would be an error under CI
nox.options.download_python = "never"
nox.options.reuse_venv = "yes"


@nox.session
@nox.parametrize("python,jax", PAIRS)
def tests(session: nox.Session, jax: str) -> None:
    """Runs the whole test suite, then the benchmark in its quick form without the network."""
    session.install("-r", "requirements-dev.txt", *versions(jax))
    session.run("python", "-m", "pytest", "-q", *session.posargs)
    results = Path(session.create_tmp(), "results").resolve()
    words = ["--quick", "--offline", "--results-dir", str(results)]
    session.run("python", "benchmark.py", *words, env={"PYTHONWARNINGS": errors_of_our_own()})


def versions(jax: str) -> list[str]:
    """Returns what pip is asked for beside requirements-dev.txt."""
    if jax == NEWEST:
        return ["--upgrade"]
    if jax == LEAST:
        lines = Path("requirements.txt").read_text(encoding="utf-8").splitlines()
        return [line.replace(">=", "==") for line in lines if line and not line.startswith("#")]
    return [f"jax=={jax}", f"jaxlib=={jax}"]


def errors_of_our_own() -> str:
    """Returns Python's setting that makes an error of each warning that a module of ours causes."""
    modules = ["__main__", *sorted(path.stem for path in Path().glob("*.py"))]
    return ",".join(f"error:::{module}" for module in modules)
