"""What the results depend on and the code cannot fix: machine, versions, settings, load.

Never imports JAX. No host name, user name or path is recorded.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import psutil

import machine

GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
PACKAGES = ("jax", "jaxlib", "numpy", "scipy")
# JAX reads its settings from JAX_*: among them are x64, the switch that turns JIT off, a
# compilation cache and another PRNG. Python's debugging aids slow down the eager mode above all.
CLEARED = re.compile(r"JAX_.*|PYTHON(TRACEMALLOC|DEVMODE|MALLOC|ASYNCIODEBUG|PROFILEIMPORTTIME)")
# These are overridden by --platform, whatever they say.
HARMLESS = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")
# A user who sets these wants them, and both modes get them: they are left, recorded and printed.
# No wider: NVIDIA_API_KEY or TF_VAR_... may hold a secret, and results are there to be published.
HONOURED = re.compile(
    r"(XLA|OMP|MKL|OPENBLAS|MALLOC|TCMALLOC)_.*|TF_(XLA|CPP|NUM)_.*|PYTHON[A-Z]*|PYTHON_(GIL|JIT)"
    r"|NPROC|GLIBC_TUNABLES|LD_(PRELOAD|LIBRARY_PATH)|DYLD_(INSERT_LIBRARIES|LIBRARY_PATH)"
    r"|NVIDIA_TF32_OVERRIDE|CUDA_VISIBLE_DEVICES|LIBTPU_INIT_ARGS"
)


def describe_environment(repository: Path) -> dict[str, object]:
    """Returns CPU, cores, system, versions, the settings that are honoured, and the commit.

    Args:
        repository: The folder whose commit is told.
    """
    return {
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES},
        "os": platform.system(),
        "machine": platform.machine(),
        "cpu_model": machine.cpu_model(),
        "cores_visible": os.cpu_count(),
        "cores_usable": machine.usable_cores(),
        "cores_quota": machine.quota_cores(),
        "cpu_governor": machine.first_line(GOVERNOR),
        "settings_honoured": honoured_settings(os.environ),
        **_commit(repository),
    }


def hide_paths(text: str) -> str:
    """Returns a text with PATH in place of each word, or end of a word, that looks like a path."""
    return re.sub(r"[^\s=:'\"]*[/\\][^\s'\"]*", "PATH", text)


def honoured_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that may change the speed and are left as they are.

    What looks like a path in a value stands there as PATH. PYTHONIOENCODING is not among them: the
    benchmark sets it for its processes.
    """
    return {
        name: hide_paths(variables[name])
        for name in sorted(variables)
        if HONOURED.fullmatch(name) and not CLEARED.fullmatch(name) and name != "PYTHONIOENCODING"
    }


def settings_to_clear(variables: Mapping[str, str]) -> list[str]:
    """Returns the names of the variables that would change the benchmark in silence."""
    return sorted(name for name in variables if CLEARED.fullmatch(name) and name not in HARMLESS)


def worker_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables for a process of the benchmark: without those that are cleared."""
    cleared = settings_to_clear(variables)
    return {name: value for name, value in variables.items() if name not in cleared}


def load_average() -> float | None:
    """Returns the system's load over the last minute; None where it has no such figure.

    Windows has none. psutil would make one up there, by a thread that runs while the clock does.
    """
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def steal_seconds() -> float | None:
    """Returns the CPU time that the hypervisor gave to others since the start; None if unknown."""
    return getattr(psutil.cpu_times(), "steal", None)


def _commit(repository: Path) -> dict[str, object]:
    commit = _git(repository, "rev-parse", "HEAD")
    # Only the code: what a run writes is no change of what it measures.
    changes = _git(repository, "status", "--porcelain", "--", "*.py")
    return {"commit": commit, "tree_clean": None if changes is None else not changes}


def _git(repository: Path, *words: str) -> str | None:
    if not (repository / ".git").exists():  # else Git would tell of a repository around this one
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *words], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
