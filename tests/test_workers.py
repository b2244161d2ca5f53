"""The processes of the benchmark: order, relay of their lines, and why one failed."""

import sys
import time

import numpy as np
import psutil
import pytest

import workers


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
