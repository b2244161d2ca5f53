"""What users meet: interrupts, broken pipes, full disks, two runs at once, consoles, paths."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from made_up import make_results
from made_up_studies import make_range

import benchmark
import config
import result_files
import utils
import workers
from utils import ScriptError

SLOW_SCRIPT = """
import json, sys, time
from pathlib import Path
sys.path[:0] = {paths!r}
from made_up import make_mode, make_run
import numpy as np
folder = Path(sys.argv[sys.argv.index("--results-dir") + 1])
mode = {mode!r}
run = make_run([1.0, 1.0], memory={{"peak_mb": 1.0, "delta_mb": 1.0, "stages": []}})
(folder / f"{{mode}}_results.json").write_text(json.dumps(make_mode(mode, run)))
np.savez(folder / "first_step.npz", np.zeros(1))
print("epoch 1/1 done", flush=True)
started = Path({started!r})
if started.exists():
    print("sleeping", flush=True)
    time.sleep(120)
started.write_text("")
"""
# benchmark.py with these scripts in place of the real ones, and made-up data.
BENCHMARK = """
import sys
sys.path[:0] = {paths!r}
import config, made_up, modes, workers
config.data_loader.load_mnist = lambda *_, **__: made_up.tiny_mnist()
workers.LADDER = {{
    mode: {{**row, "script": f"{scripts}/{{mode}}.py"}} for mode, row in modes.LADDER.items()
}}
import benchmark
sys.exit(benchmark.main(sys.argv[1:]))
"""


@pytest.fixture
def slow_benchmark(tmp_path):
    """Starts benchmark.py in a process; its first worker ends at once, the second one sleeps."""
    paths = [str(config.REPOSITORY), str(Path(__file__).parent)]
    for mode in ("no_jit", "jit"):
        started = str(tmp_path / "started")
        script = SLOW_SCRIPT.format(paths=paths, mode=mode, started=started)
        (tmp_path / f"{mode}.py").write_text(script)
    code = BENCHMARK.format(paths=paths, scripts=tmp_path.as_posix())
    folder = tmp_path / "results"

    def start(*words):
        command = [sys.executable, "-c", code, "--results-dir", str(folder), *words]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        for line in process.stdout:
            if line == "sleeping\n":
                return process
        raise AssertionError(process.stderr.read())

    start.folder = folder
    return start


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no such signals to one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_writes_what_was_finished_and_leaves_no_process(slow_benchmark, number):
    process = slow_benchmark("--repeats", "2")
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "error: interrupted; written: no_jit_results.json, benchmark_results.json\n"
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    results = json.loads((slow_benchmark.folder / "benchmark_results.json").read_text())
    assert results["status"] == "interrupted" and results["jit"] is None
    assert results["no_jit"]["status"] == "interrupted" and len(results["no_jit"]["runs"]) == 1
    assert results["comparison"]["speedup"] is None


def test_a_killed_worker_is_a_failed_mode(slow_benchmark):
    process = slow_benchmark("--repeats", "1")
    (child,) = psutil.Process(process.pid).children()
    child.kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err.count("\n") == 1
    assert "jit.py" in err and "written: no_jit_results.json" in err


@pytest.mark.skipif(os.name == "nt", reason="a folder cannot be locked there")
def test_a_second_benchmark_in_one_folder_is_refused(slow_benchmark, monkeypatch, capsys):
    process = slow_benchmark()
    try:
        assert benchmark.main(["--results-dir", str(slow_benchmark.folder)]) == 1
    finally:
        process.kill()
        process.communicate()
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "another benchmark writes to" in err
    # The lock went with its process.
    with result_files.exclusive(slow_benchmark.folder):
        pass


def test_windows_locks_a_file(monkeypatch, tmp_path):
    calls = []

    def locking(handle, mode, n):
        calls.append((mode, n))
        if len(calls) > 1:
            raise OSError(errno.EACCES, "locked")

    monkeypatch.setattr(result_files, "fcntl", None)
    windows = SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setattr(result_files, "msvcrt", windows, raising=False)
    with (
        result_files.exclusive(tmp_path),
        pytest.raises(ScriptError, match="another benchmark"),
        result_files.exclusive(tmp_path),
    ):
        pass
    assert calls == [(2, 1), (2, 1)]


def test_a_folder_that_knows_no_locks_is_used_without(monkeypatch, tmp_path):
    def flock(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(result_files, "fcntl", SimpleNamespace(flock=flock, LOCK_EX=2, LOCK_NB=4))
    with result_files.exclusive(tmp_path):
        pass


def test_a_process_that_hangs_is_ended(capsys):
    start = time.monotonic()
    code = "import time; print('one', flush=True); time.sleep(60)"
    with pytest.raises(workers.WorkerError, match="printed nothing for 0.5 s: it was ended"):
        workers.relay([sys.executable, "-c", code], print, silence_s=0.5)
    assert time.monotonic() - start < 30


def test_a_process_that_goes_on_is_left_alone(capsys):
    code = "import time\nfor i in range(4): time.sleep(0.4); print(i, flush=True)"
    status, lines = workers.relay([sys.executable, "-c", code], print, silence_s=10)
    assert (status, lines) == (0, ["0", "1", "2", "3"])


def test_a_nearly_full_disk_is_found_before_training(monkeypatch, tmp_path, capsys):
    usage = SimpleNamespace(free=1_500_000)
    monkeypatch.setattr(result_files.shutil, "disk_usage", lambda folder: usage)
    monkeypatch.setattr(benchmark, "run_all", lambda options: pytest.fail("it ran"))
    assert benchmark.main(["--results-dir", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "1.5 MB left" in err and "--results-dir" in err


def test_a_disk_that_fills_up_leaves_nothing_half_written(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(utils.os, "replace", full)
    with pytest.raises(ScriptError, match="No space left"):
        result_files.write_json(tmp_path / "x.json", {"a": 1})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("study", [None, "range"])
def test_unusable_matplotlib_costs_the_plots_alone(tmp_path, study):
    # A process of its own: an unknown backend makes the import of matplotlib fail.
    result = make_range() if study else make_results()
    (tmp_path / "result.json").write_text(json.dumps(result))
    code = (
        "import benchmark, json, pathlib, sys; folder = pathlib.Path(sys.argv[1]);"
        "result = json.loads((folder / 'result.json').read_text());"
        f"print(benchmark.draw({study!r}, result, folder))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=config.REPOSITORY,
        env={**os.environ, "MPLBACKEND": "no_such_backend"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout[2:].startswith("no plots (") and "no_such_backend" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise there")
@pytest.mark.parametrize("words", [["--check"], ["--compare", "results", "results"]])
def test_a_reader_that_goes_early_leaves_no_traceback(words):
    command = [sys.executable, str(config.REPOSITORY / "benchmark.py"), *words]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_work_goes_on_when_its_reader_has_gone(monkeypatch):
    class Gone:
        encoding = "utf-8"

        def write(self, text):
            raise BrokenPipeError

        flush = write

    monkeypatch.setattr(sys, "stdout", Gone())
    utils.say("one")
    utils.say("two")
    assert sys.stdout.name == os.devnull


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii", "utf-8"])
def test_every_table_prints_on_every_console(encoding, tmp_path):
    code = (
        "import sys; sys.path.insert(0, 'tests'); import made_up, made_up_studies, utils;"
        "from tables import benchmark_text; from study_tables import study_text;"
        "enc = sys.stdout.encoding\n"
        "def main():\n"
        "    utils.say(benchmark_text(made_up.make_results(), enc))\n"
        "    for name, make in made_up_studies.STUDIES.items():\n"
        "        utils.say(study_text(name, make(), enc))\n"
        "    return 0\n"
        "sys.exit(utils.run_script(main))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        cwd=config.REPOSITORY,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    assert "Total Training Time" in text and "\\u" not in text and "\\x" not in text


def test_it_runs_from_a_path_with_spaces_and_letters_and_through_a_link(tmp_path):
    place = tmp_path / "a folder \N{LATIN SMALL LETTER E WITH ACUTE}"
    place.mkdir()
    for path in [*config.REPOSITORY.glob("*.py"), config.REPOSITORY / "requirements.txt"]:
        shutil.copy(path, place)
    shutil.copytree(config.REPOSITORY / "results", place / "results")
    (place / "report").mkdir()
    link = tmp_path / "link"
    link.symlink_to(place, target_is_directory=True)
    for words in (["benchmark.py", "--compare", "results", "results"], ["analysis.py"]):
        command = [sys.executable, str(link / words[0]), *words[1:]]
        done = subprocess.run(command, capture_output=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (place / "report" / "analysis.md").exists()


def test_no_progress_gives_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True, write=print))
    assert utils.progress_bar(3, shown=False).disable
    assert not utils.progress_bar(3, shown=True).disable
