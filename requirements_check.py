"""Ends a script in one line if Python or a package is missing or too old. Scripts import it first.

The check runs at the import, as the script's next imports would fail. It takes some milliseconds:
it imports no package, and reads versions off the names of the folders that pip keeps beside them.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec

LEAST_PYTHON = (3, 9)
REQUIREMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requirements.txt")
COMMAND = "python -m pip install -r requirements.txt"


def check() -> None:
    """Ends the process with exit status 1 and a line on stderr, if there is a fault."""
    if sys.version_info < LEAST_PYTHON:
        least = ".".join(map(str, LEAST_PYTHON))
        found = sys.version.split()[0]
        sys.exit(f"error: Python {found} is too old; with {least} or newer, run: {COMMAND}")
    try:
        faults = find_faults(_lines(REQUIREMENTS))
    except OSError as error:
        sys.exit(f"error: cannot read {os.path.basename(error.filename)}: {error.strerror}")
    if faults:
        sys.exit(f"error: needed, but not here: {', '.join(faults)}; run: {COMMAND}")


def find_faults(requirements: list[str]) -> list[str]:
    """Returns what is needed of each package that is not there as it must be.

    JAX's own are checked, too: it needs scipy, and a jaxlib that fits it.

    Args:
        requirements: Such as "numpy>=1.24" or "jaxlib<=0.4.30,>=0.4.27".
    """
    folders = _metadata_folders()
    if "jax" in folders:
        start = "Requires-Dist:"
        lines = _lines(os.path.join(folders["jax"], "METADATA"))
        # After a ";" stands a condition: another Python, or an extra.
        own = [line for line in lines if line.startswith(start) and ";" not in line]
        requirements = requirements + [line[len(start) :].strip() for line in own]
    faults: dict[str, str] = {}
    for requirement in requirements:
        package = re.sub("[-.]", "_", re.match(r"[\w.-]*\w", requirement).group())
        fault = _fault(package, requirement, folders.get(package.lower()))
        if fault:
            faults.setdefault(package, fault)
    return list(faults.values())


def _fault(package: str, requirement: str, folder: str | None) -> str | None:
    try:
        is_there = find_spec(package) is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        return package
    if folder is None:  # something else than pip installed it: nothing tells its version
        return None
    version = re.search(r"-(\d+(\.\d+)*)[^-]*-info$", folder).group(1)
    for sign, bound in re.findall(r"([<>]=)\s*(\d+(?:\.\d+)*)", requirement):
        if sign == ">=" and _numbers(version) < _numbers(bound):
            return f"{package} {bound} or newer (found: {version})"
        if sign == "<=" and _numbers(version) > _numbers(bound):
            return f"{package} {bound} or older (found: {version})"
    return None


def _metadata_folders() -> dict[str, str]:
    # By the package's name. Of two, Python imports what is first on its path.
    folders: dict[str, str] = {}
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in names:
            package = re.match(r"([\w.]+)-\d[^-]*\.dist-info$", name)
            if package:
                folders.setdefault(package.group(1).lower(), os.path.join(place, name))
    return folders


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        lines = [re.sub("#.*", "", line).strip() for line in file]
    return [line for line in lines if line]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.sub(r"(\.0)+$", "", version).split(".")))  # 2.0.0 is 2


check()
