"""Warnings that our own modules cause are errors in every test."""

from config import REPOSITORY


def pytest_configure(config):
    """Turns warnings of every category into errors, by the module that they are put down to.

    What JAX and the others warn of within themselves differs from version to version and is not
    ours to mend: an error there would fail the tests of a new JAX for nothing. A call of ours that
    is deprecated, though, is put down to the module of ours that calls.
    """
    modules = "|".join(sorted(path.stem for path in REPOSITORY.glob("*.py")))
    config.addinivalue_line("filterwarnings", rf"error:::({modules}|__main__)\Z")
