"""Timing, memory and messages."""

import os
import subprocess
import sys
import types

import numpy as np
import psutil
import pytest

import utils


def test_timer_measures_by_perf_counter(monkeypatch):
    ticks = iter([10.0, 12.5])
    monkeypatch.setattr(utils.time, "perf_counter", lambda: next(ticks))
    with utils.Timer() as timer:
        pass
    assert timer.seconds == 2.5


def test_rss_is_the_systems_in_units_of_a_million_bytes():
    assert utils.rss_mb() == pytest.approx(psutil.Process().memory_info().rss / 1e6, rel=0.05)


def test_tracker_catches_a_peak_between_its_samples():
    tracker = utils.MemoryTracker()
    with tracker.stage("loading"):
        pass
    with tracker.stage("training"):
        np.ones(25_000_000)  # 200 MB, gone when the stage ends
    summary = tracker.summary(delta_of="training")
    loading, training = summary["stages"]
    assert (loading["stage"], training["stage"]) == ("loading", "training")
    assert training["rss_after_mb"] - training["rss_before_mb"] < 100
    if summary["peak_per_stage"]:
        assert 190 < training["peak_mb"] - training["rss_before_mb"] < 260
        assert loading["peak_mb"] - loading["rss_before_mb"] < 100
    for stage in (loading, training):
        assert stage["peak_mb"] > max(stage["rss_before_mb"], stage["rss_after_mb"]) - 5
    assert summary["delta_mb"] == training["peak_mb"] - training["rss_before_mb"]
    assert summary["peak_mb"] >= training["peak_mb"]


def test_peak_does_not_include_the_parents():
    # The parent holds 500 MB while it starts the child; ru_maxrss of the child would tell them.
    code = (
        "import subprocess, sys, numpy\n"
        "block = numpy.ones(62_500_000)\n"
        "child = 'import utils; print(*utils.peak_rss_mb())'\n"
        "subprocess.run([sys.executable, '-c', child])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=os.path.dirname(utils.__file__),
    )
    peak, source = done.stdout.split()
    if source != "ru_maxrss":
        assert float(peak) < 150


@pytest.mark.parametrize("platform, unit", [("darwin", 1), ("freebsd", 1024)])
def test_peak_without_proc_is_ru_maxrss_in_the_systems_unit(monkeypatch, platform, unit):
    def no_proc(*_, **__):
        raise FileNotFoundError

    usage = types.SimpleNamespace(ru_maxrss=3_000_000)
    fake = types.SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: usage)
    monkeypatch.setattr("builtins.open", no_proc)
    monkeypatch.setattr(utils, "resource", fake)
    monkeypatch.setattr(utils.sys, "platform", platform)
    assert utils.peak_rss_mb() == (3 * unit, "ru_maxrss")
    assert not utils.reset_peak_rss()


def test_peak_on_windows_is_that_of_psutil(monkeypatch):
    def no_proc(*_, **__):
        raise FileNotFoundError

    info = types.SimpleNamespace(peak_wset=250_000_000)
    monkeypatch.setattr("builtins.open", no_proc)
    monkeypatch.setattr(utils, "resource", None)
    monkeypatch.setattr(
        utils.psutil, "Process", lambda: types.SimpleNamespace(memory_info=lambda: info)
    )
    assert utils.peak_rss_mb() == (250.0, "PeakWorkingSetSize")


@pytest.mark.parametrize(
    "error, status, line",
    [
        (utils.ScriptError("no such thing"), 1, "error: no such thing\n"),
        (utils.OptionError("no such device"), 2, "error: no such device\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_a_fault_is_one_line_on_stderr_and_a_status(capsys, error, status, line):
    def main():
        raise error

    assert utils.run_script(main) == status
    assert capsys.readouterr() == ("", line)


def test_a_bad_option_is_one_line_on_stderr_and_status_2(capsys):
    with pytest.raises(SystemExit) as ended:
        utils.OptionParser(prog="script.py").parse_args(["--nonsense"])
    assert ended.value.code == 2
    expected = "error: unrecognized arguments: --nonsense; see script.py --help\n"
    assert capsys.readouterr() == ("", expected)


def test_progress_bar_is_silent_without_a_terminal(capfd):
    with utils.progress_bar(2) as bar:
        bar.update()
        utils.say("a line")
    assert capfd.readouterr() == ("a line\n", "")


def test_a_file_is_closed_before_it_is_renamed(monkeypatch, tmp_path):
    # Windows refuses to rename an open file.
    real_replace = os.replace

    def replace(source, target):
        open_now = {os.path.basename(file.path) for file in psutil.Process().open_files()}
        assert os.path.basename(source) not in open_now
        real_replace(source, target)

    monkeypatch.setattr(os, "replace", replace)
    utils.write_whole(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"


def test_a_file_that_cannot_be_renamed_leaves_the_old_one(monkeypatch, tmp_path):
    # On Windows, another program may have it open.
    def replace(source, target):
        raise PermissionError(13, "in use")

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError):
        utils.write_whole(tmp_path / "file", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]
