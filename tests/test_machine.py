"""The processor, its cores and their limits, on each system: by replaced files and calls."""

import builtins
import io
import os
import subprocess
import types

import pytest

import environment
import machine

V2, V1, SELF = "/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/proc/self/cgroup"


def fake_files(monkeypatch, files):
    real_open = builtins.open

    def fake_open(path, *arguments, **words):
        if str(path).startswith(("/sys/", "/proc/")):
            if str(path) not in files:
                raise FileNotFoundError(path)
            return io.StringIO(files[str(path)])
        return real_open(path, *arguments, **words)

    monkeypatch.setattr(builtins, "open", fake_open)


def quota_v1(folder, quota):
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": "100000\n"}


@pytest.mark.parametrize(
    "files, quota, cores",
    [
        ({}, None, 8),
        ({f"{V2}/cpu.max": "max 100000\n"}, None, 8),
        ({f"{V2}/cpu.max": "150000 100000\n"}, 1.5, 2),
        ({f"{V2}/cpu.max": "50000 100000\n"}, 0.5, 1),
        ({f"{V2}/cpu.max": "9900000 100000\n"}, 99.0, 8),
        ({f"{V2}/cpu.max": "nonsense\n"}, None, 8),
        ({f"{V2}/cpu.max": ""}, None, 8),
        (quota_v1(V1, 200_000), 2.0, 2),
        (quota_v1(V1, 25_000), 0.25, 1),
        (quota_v1(V1, -1), None, 8),
        # Version 2, nested: a service's own limit, and that of a slice above it.
        ({SELF: "0::/a/b\n", f"{V2}/a/b/cpu.max": "300000 100000\n"}, 3.0, 3),
        (
            {
                SELF: "0::/a/b\n",
                f"{V2}/a/b/cpu.max": "max 100000\n",
                f"{V2}/a/cpu.max": "200000 100000\n",
            },
            2.0,
            2,
        ),
        (
            {
                SELF: "0::/a/b\n",
                f"{V2}/a/b/cpu.max": "300000 100000\n",
                f"{V2}/a/cpu.max": "200000 100000\n",
            },
            2.0,
            2,
        ),
        (
            {
                SELF: "0::/a/b\n",
                f"{V2}/a/b/cpu.max": "100000 100000\n",
                f"{V2}/a/cpu.max": "200000 100000\n",
            },
            1.0,
            1,
        ),
        # Another's limit is none of ours.
        ({SELF: "0::/a\n", f"{V2}/b/cpu.max": "100000 100000\n"}, None, 8),
        # Version 1 beside version 2 (hybrid): the cpu controller's own path counts.
        (
            {
                SELF: "5:memory:/m\n4:cpu,cpuacct:/docker/x\n0::/a\n",
                **quota_v1(f"{V1}/docker/x", 150_000),
                **quota_v1(f"{V1}/m", 50_000),
            },
            1.5,
            2,
        ),
        # A container that sees the host's path, but its own group as the topmost.
        ({SELF: "4:cpu,cpuacct:/docker/x\n", **quota_v1(V1, 400_000)}, 4.0, 4),
        ({SELF: "4:cpuset:/x\n", **quota_v1(f"{V1}/x", 100_000)}, None, 8),
        ({SELF: "nonsense\n\n0::/../x\n", f"{V2}/cpu.max": "200000 100000\n"}, 2.0, 2),
    ],
)
def test_usable_cores_heed_affinity_and_the_containers_limit(monkeypatch, files, quota, cores):
    fake_files(monkeypatch, files)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    assert (machine.quota_cores(), machine.usable_cores()) == (quota, cores)


def test_affinity_below_the_limit_counts(monkeypatch):
    fake_files(monkeypatch, {f"{V2}/cpu.max": "400000 100000\n"})
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3}, raising=False)
    assert machine.usable_cores() == 1


@pytest.mark.parametrize("has_affinity, cores", [(True, 3), (False, 6)])  # Windows, macOS
def test_usable_cores_without_the_linux_calls(monkeypatch, has_affinity, cores):
    fake_files(monkeypatch, {})
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    process = type("Process", (), {"cpu_affinity": lambda self: [0, 1, 2]} if has_affinity else {})
    monkeypatch.setattr(machine.psutil, "Process", process)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert machine.usable_cores() == cores


def test_usable_cores_are_unknown_where_nothing_tells(monkeypatch):
    fake_files(monkeypatch, {f"{V2}/cpu.max": "100000 100000\n"})
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(machine.psutil, "Process", type("Process", (), {}))
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.usable_cores() is None


def test_cpu_model_and_governor_on_linux(monkeypatch):
    cpuinfo = "processor : 0\nmodel name\t: Made-up CPU\n"
    fake_files(monkeypatch, {environment.GOVERNOR: "powersave\n", "/proc/cpuinfo": cpuinfo})
    monkeypatch.setattr(machine.sys, "platform", "linux")
    assert machine.cpu_model() == "Made-up CPU"
    assert machine.first_line(environment.GOVERNOR) == "powersave"


@pytest.mark.parametrize("output, name", [("Apple M9\n", "Apple M9"), ("", "arm"), (None, "arm")])
def test_cpu_model_on_macos_is_sysctls(monkeypatch, output, name):
    def run(command, **_):
        assert command == ["sysctl", "-n", "machdep.cpu.brand_string"]
        if output is None:
            raise FileNotFoundError
        return types.SimpleNamespace(stdout=output)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(machine.sys, "platform", "darwin")
    monkeypatch.setattr(machine.platform, "processor", lambda: "arm")
    assert machine.cpu_model() == name


@pytest.mark.parametrize("fault, name", [(None, "Made-up CPU"), (OSError(), "x86 Family 6")])
def test_cpu_model_on_windows_is_the_registrys(monkeypatch, fault, name):
    class Key:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def open_key(hive, path):
        assert (hive, path) == ("HKLM", machine.WINDOWS_CPU)
        if fault:
            raise fault
        return Key()

    registry = types.SimpleNamespace(
        HKEY_LOCAL_MACHINE="HKLM",
        OpenKey=open_key,
        QueryValueEx=lambda key, value: ({"ProcessorNameString": "Made-up CPU  "}[value], 1),
    )
    monkeypatch.setattr(machine, "winreg", registry)
    monkeypatch.setattr(machine.sys, "platform", "win32")
    monkeypatch.setattr(machine.platform, "processor", lambda: "x86 Family 6")
    assert machine.cpu_model() == name


@pytest.mark.parametrize("system", ["linux", "freebsd14"])
def test_cpu_model_is_the_architecture_where_no_system_tells(monkeypatch, system):
    fake_files(monkeypatch, {})
    monkeypatch.setattr(machine.sys, "platform", system)
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "machine", lambda: "riscv64")
    assert machine.cpu_model() == "riscv64"
