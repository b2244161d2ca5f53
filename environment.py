"""What the results depend on and the code cannot fix: machine and versions. Never imports JAX.

No host name, user name or path is recorded.
"""

from __future__ import annotations

import os
import platform
from importlib import metadata

PACKAGES = ("jax", "jaxlib", "numpy", "scipy")


def describe_environment() -> dict[str, object]:
    """Returns CPU model, cores, operating system and the versions of Python and the packages."""
    return {
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES},
        "os": platform.system(),
        "machine": platform.machine(),
        "cpu_model": _cpu_model(),
        "cores_visible": os.cpu_count(),
        "cores_usable": _usable_cores(),
    }


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as cpuinfo:
            for line in cpuinfo:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _usable_cores() -> int | None:
    # macOS and Windows have no affinity call in Python's standard library.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
