"""The processor: its model, its cores, and a container's limit on them. Linux, macOS, Windows."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
from pathlib import PurePosixPath

import psutil

try:
    import winreg
except ImportError:  # not Windows
    winreg = None

CGROUPS = PurePosixPath("/sys/fs/cgroup")
# Where Windows keeps the name of its first processor.
WINDOWS_CPU = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"


def usable_cores() -> int | None:
    """Returns the cores that this process may use: by affinity and by the container's limit.

    A limit of 1.5 cores counts as 2, as XLA can start that many threads at once: see quota_cores.
    """
    cores, quota = _cores_by_affinity(), quota_cores()
    return cores if cores is None or quota is None else min(cores, max(1, math.ceil(quota)))


def quota_cores() -> float | None:
    """Returns the share of CPU time that a container or service may take, in cores.

    It can be a fraction, also below 1; the least limit on the way from this process's own control
    group up to the topmost one that is seen counts. None if there is no limit, or not Linux.
    """
    quotas = [quota for folder in _cgroup_folders() for quota in (_quota(folder),) if quota]
    return min(quotas, default=None)


def cpu_model() -> str:
    """Returns the processor's name as its system tells it, else its architecture."""
    tell = {"darwin": _cpu_model_macos, "win32": _cpu_model_windows}.get(sys.platform)
    try:
        name = tell() if tell else _cpu_model_linux()
    except (OSError, subprocess.SubprocessError):
        name = ""
    return name or platform.processor() or platform.machine()


def first_line(path: str | PurePosixPath) -> str | None:
    """Returns the first line of a file of the system; None if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return None


def _cores_by_affinity() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    if hasattr(psutil.Process, "cpu_affinity"):  # Windows; macOS has no affinity
        return len(psutil.Process().cpu_affinity())
    return os.cpu_count()


def _cgroup_folders() -> list[PurePosixPath]:
    # Lines are "0::/a/b" in version 2 and "4:cpu,cpuacct:/a/b" in version 1. A container may see
    # the host's path there, but its own group as the topmost: a folder that is not there is no
    # fault, and the topmost is always read.
    folders = {CGROUPS: None, CGROUPS / "cpu": None}
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            entries = [line.strip().split(":", 2) for line in file]
    except OSError:
        return list(folders)
    for _, controllers, path in (entry for entry in entries if len(entry) == 3):
        if not controllers or "cpu" in controllers.split(","):
            group = (CGROUPS / "cpu" if controllers else CGROUPS) / path.lstrip("/")
            folders.update(dict.fromkeys([group, *group.parents]))
    return [folder for folder in folders if CGROUPS in (folder, *folder.parents)]


def _quota(folder: PurePosixPath) -> float | None:
    # Version 2 has quota and period in one file ("max" for no quota), version 1 in two (-1).
    quota, _, period = (first_line(folder / "cpu.max") or "").partition(" ")
    if not period:
        quota = first_line(folder / "cpu.cfs_quota_us") or ""
        period = first_line(folder / "cpu.cfs_period_us") or ""
    if not (quota.isdigit() and period.isdigit() and int(period)):
        return None
    return int(quota) / int(period)


def _cpu_model_linux() -> str:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""


def _cpu_model_macos() -> str:
    command = ["sysctl", "-n", "machdep.cpu.brand_string"]
    return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()


def _cpu_model_windows() -> str:
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, WINDOWS_CPU) as key:
        return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
