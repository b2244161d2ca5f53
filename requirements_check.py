"""Ends a script with one line if Python or a package is missing or too old; imported first by each.

Standard library alone, as what it looks for may be missing.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import metadata
from pathlib import Path

LEAST_PYTHON = (3, 9)
REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"
BROUGHT_ALONG = {"scipy": "0"}  # by jax; any version that it brings


def find_fault() -> str | None:
    """Returns what is missing or too old here, in a sentence; None if nothing is."""
    if sys.version_info < LEAST_PYTHON:
        here, least = (
            ".".join(map(str, version[:2])) for version in (sys.version_info, LEAST_PYTHON)
        )
        return f"this is Python {here}, and {least} or newer is needed"
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    least = dict(line.split(">=") for line in lines if ">=" in line and not line.startswith("#"))
    for package, version in {**least, **BROUGHT_ALONG}.items():
        try:
            here = metadata.version(package)
        except metadata.PackageNotFoundError:
            if importlib.util.find_spec(package) is None:
                return f"{package} is not installed"
            continue  # put there by hand: its version is not known
        if _numbers(here) < _numbers(version):
            return f"{package} {here} is too old, {version} or newer is needed"
    return None


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.match(r"[\d.]*", version).group().split(".") if number]


fault = find_fault()
if fault:
    command = f"{Path(sys.executable).name} -m pip install -r requirements.txt"
    sys.exit(f"error: {fault}; install with: {command}")
