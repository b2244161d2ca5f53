"""The processes of the benchmark: order, relay of their lines, and why one failed."""

import os
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from made_up import make_mode, make_run

import result_files
import workers
from benchmark_options import parse_options


def python(code):
    return [sys.executable, "-u", "-c", code]


@pytest.mark.parametrize("repeats, order", [(1, "AB"), (2, "ABBA"), (3, "ABBAAB"), (4, "ABBAABBA")])
def test_order_alternates(repeats, order):
    assert "".join(workers.alternating_order("AB", repeats)) == order


def test_relay_repeats_every_line_and_tells_the_share_that_is_done(capsys):
    shares = []
    code = (
        "print('warm-up'); print('epoch  1/20 x'); print('measured 2/4 y'); print('epochs 1/2 z')"
    )
    status, lines = workers.relay(python(code), shares.append)
    assert (status, shares) == (0, [1 / 20, 1 / 4])
    assert lines == ["warm-up", "epoch  1/20 x", "measured 2/4 y", "epochs 1/2 z"]
    assert capsys.readouterr().out.splitlines() == lines


def test_relay_reads_any_letters_and_both_streams(capsys):
    code = "import sys; print('\\u2550'); sys.stderr.write('error: \\u00e9\\n'); sys.exit(3)"
    status, lines = workers.relay(python(code), print)
    assert status == 3 and sorted(lines) == sorted(["\u2550", "\u00e9"])


def test_no_process_outlives_an_interrupted_benchmark():
    def interrupt(share):
        raise KeyboardInterrupt

    before = set(psutil.Process().children())
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        workers.relay(python("import time; print('epoch 1/2 '); time.sleep(60)"), interrupt)
    assert time.monotonic() - start < 30
    assert {p for p in psutil.Process().children() if p not in before} == set()


def test_no_file_is_open_when_the_folder_of_a_process_is_removed(monkeypatch):
    # Windows refuses to remove an open file.
    removed = []

    class Folder(tempfile.TemporaryDirectory):
        def __exit__(self, *_):
            removed.append(self.name)
            name = os.path.basename(self.name)
            assert [file for file in psutil.Process().open_files() if name in file.path] == []
            super().__exit__(None, None, None)

    def relay(command, bar):
        folder = Path(command[command.index("--results-dir") + 1])
        result = make_mode("jit", make_run([1.0]))
        result_files.write_json(folder / result_files.mode_file("jit"), result)
        np.savez(folder / result_files.FIRST_STEP_FILE, np.ones(2))
        return 0, []

    monkeypatch.setattr(workers.tempfile, "TemporaryDirectory", Folder)
    monkeypatch.setattr(workers, "relay", relay)
    options = parse_options(["--repeats", "1"])
    arms = workers.Workers({"jit": "jit"}, options, SimpleNamespace(update=print))
    arms.run()
    assert len(removed) == 1 and not os.path.exists(removed[0])
    assert arms.result("jit")["runs"][0]["first_step_difference"] == 0.0


def test_largest_difference_tells_nan_and_other_shapes():
    a = [np.zeros(3), np.zeros((2, 2))]
    assert workers.largest_difference(a, [np.zeros(3), np.full((2, 2), -0.5)]) == 0.5
    assert np.isnan(workers.largest_difference(a, [np.zeros(3), np.full((2, 2), np.nan)]))
    assert np.isnan(workers.largest_difference(a, a[:1]))
    assert np.isnan(workers.largest_difference(a, [np.zeros(1), np.zeros((2, 2))]))


@pytest.mark.parametrize(
    "status, lines, reason",
    [
        (1, ["epoch 1/2", "no data"], "ended with exit status 1: no data"),
        (1, [], "ended with exit status 1: it printed nothing"),
        (-9, ["epoch 1/2  loss 0.9"], "was ended by signal 9"),
        (
            1,
            ["Traceback:", "jax.errors.JaxRuntimeError: INTERNAL: boom", "", "For simplicity, ..."],
            "ended with exit status 1: jax.errors.JaxRuntimeError: INTERNAL: boom",
        ),
    ],
)
def test_failure_is_told_by_signal_exception_or_last_line(status, lines, reason):
    assert workers.failure_reason(status, lines) == reason
