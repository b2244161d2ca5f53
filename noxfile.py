"""The test matrix: the whole suite and a quick benchmark on several Pythons and versions of JAX.

`nox` runs every pair whose Python is on the PATH and says which it skips.
"""

import nox

nox.options.error_on_missing_interpreters = False

# The least and the newest Python and JAX, the version of the README that this project follows
# (0.4.38), and some between; "" is the newest that pip finds.
PAIRS = [
    ("3.9", "==0.4.30"),
    ("3.10", "==0.4.38"),
    ("3.11", "==0.6.2"),
    ("3.11", "==0.10.*"),
    ("3.12", ""),
    ("3.13", ""),
]


@nox.session
@nox.parametrize("python,jax", PAIRS, ids=[f"{python}, jax{jax}" for python, jax in PAIRS])
def tests(session: nox.Session, jax: str) -> None:
    """Installs what requirements-dev.txt names with one version of JAX, and runs everything."""
    session.install("-q", "-r", "requirements-dev.txt", f"jax{jax}", f"jaxlib{jax}")
    session.run("python", "-m", "pytest", "-q", *session.posargs)
    session.run("python", "benchmark.py", "--quick", "--results-dir", session.create_tmp())
