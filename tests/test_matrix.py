"""Warnings as errors, and the matrix of Pythons and versions of JAX."""

import requirements_check

import re
import warnings

import pytest

from config import REPOSITORY


@pytest.mark.parametrize("category", [DeprecationWarning, FutureWarning, UserWarning])
@pytest.mark.parametrize("module", ["model", "train_with_jit", "__main__"])
def test_a_warning_of_our_own_is_an_error(module, category):
    with pytest.raises(category):
        warnings.warn_explicit("made up", category, f"{module}.py", 1, module)


@pytest.mark.parametrize("module", ["jax._src.model", "models", "not_config"])
def test_a_warning_within_another_package_is_none(module, recwarn):
    warnings.warn_explicit("made up", DeprecationWarning, "x.py", 1, module)
    assert len(recwarn) == 1


def test_the_matrix_has_the_ends_and_only_what_is_supported():
    matrix = pytest.importorskip("noxfile", reason="nox is not installed", exc_type=ImportError)
    pythons = [python for python, _ in matrix.PAIRS]
    assert sorted(set(pythons), key=lambda text: int(text[2:])) == [
        f"3.{minor}" for minor in range(9, 14)
    ]
    assert pythons[0] == ".".join(map(str, requirements_check.LEAST_PYTHON))
    assert matrix.PAIRS[0][1] == matrix.LEAST and matrix.PAIRS[-1][1] == matrix.NEWEST


def test_a_pair_asks_pip_for_its_versions(monkeypatch):
    matrix = pytest.importorskip("noxfile", reason="nox is not installed", exc_type=ImportError)
    monkeypatch.chdir(REPOSITORY)
    least = matrix.versions(matrix.LEAST)
    assert "jax==0.4.30" in least and "jaxlib==0.4.30" in least and len(least) == 7
    assert all(re.fullmatch(r"\w+==[\d.]+", requirement) for requirement in least)
    assert matrix.versions("0.6.*") == ["jax==0.6.*", "jaxlib==0.6.*"]
    assert matrix.versions(matrix.NEWEST) == ["--upgrade"]
    assert "error:::model" in matrix.errors_of_our_own().split(",")
