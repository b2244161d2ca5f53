"""The report: its words follow the data, for made-up results of every kind."""

import json
import re

import numpy as np
import pytest
from made_up import make_benchmark, make_results, make_run, noisy_runs
from made_up_studies import STUDIES, make_drift, make_ladder, make_range
from test_readme import committed_file, committed_results

import analysis
from comparison import comparison_without
from config import REPOSITORY
from report_sections import ENVIRONMENT_KEYS, Inputs, environment_differences
from result_files import BENCHMARK_FILE, study_file
from study_figures import original_without_growth
from utils import ScriptError

TIMES = "\N{MULTIPLICATION SIGN}"


def report(results, **studies):
    """The report in one line of words, so that line breaks do not matter."""
    text = analysis.report_text(Inputs(results, studies, "../results/"))
    return " ".join(text.split())


def finding(text, number):
    """What the report says of one of the original's findings."""
    start = text.index(f" {number}. *")
    end = text.index(f" {number + 1}. *") if number < 5 else len(text)
    return text[start:end]


def test_a_fast_jit_is_said_to_be_fast():
    text = report(make_benchmark(noisy_runs(4.0), noisy_runs(1.0, seed=1)))
    assert "With JIT, training is 3.9" in text or "With JIT, training is 4.0" in text
    assert "Faster here, too:" in finding(text, 1)
    assert "None failed." in text and "`benchmark.py --check` has no doubt" in text


def test_a_slow_jit_is_said_to_be_slow():
    text = report(make_benchmark(noisy_runs(1.0), noisy_runs(2.0, seed=1)))
    assert "so it is slower" in text and "With JIT, training is" not in text
    assert "Does not hold here:" in finding(text, 1)
    assert "Does not hold here:" in finding(text, 3) and "nothing is saved" in finding(text, 3)
    assert "there is no break-even" in text and "JIT never makes up for its warm-up" in text


def test_a_drift_fails_its_gate_and_is_told():
    text = report(make_benchmark(noisy_runs(4.0, growth=0.06), noisy_runs(1.0, seed=1)))
    assert "**No speedup: gate 'steady state' failed: drift" in text
    assert "1 of 13 failed: no speedup is claimed." in text
    assert "Not decided:" in finding(text, 1)
    assert "Here an eager epoch changes by +6" in text or "changes by +5" in text


@pytest.mark.parametrize(
    "change, gate",
    [
        ({"losses": [2 / epoch for epoch in range(1, 11)]}, "same epoch losses"),
        ({"dtypes": ["float64"]}, "float32 throughout"),
    ],
)
def test_a_failed_gate_leaves_no_speedup_anywhere(change, gate):
    runs = noisy_runs(1.0, seed=1)
    runs[3].update(change)
    text = report(make_benchmark(noisy_runs(4.0), runs))
    assert f"**No speedup: gate '{gate}' failed" in text
    assert f"| {gate} | **failed** |" in text
    assert "training is" not in text and f"3.99{TIMES}" not in text and f"4.0{TIMES}" not in text
    if gate == "same epoch losses":
        assert "Does not hold here: failed gates: same epoch losses" in text.replace("**", "")


def test_one_process_is_preliminary_and_decides_nothing():
    text = report(make_results(), range=make_range(1))
    assert "preliminary, 1 process per mode: no interval" in text
    assert "Doubt: too few processes per mode: 1" in text
    for number in (1, 4, 5):
        assert "Not decided, as one process gives no interval:" in finding(text, number)


def test_wide_intervals_are_no_measurable_difference():
    rng = np.random.default_rng(0)
    no_jit, jit = (
        [make_run([seconds] * 10) for seconds in np.exp(rng.normal(0, 0.3, 10)).tolist()]
        for _ in range(2)
    )
    text = report(make_benchmark(no_jit, jit))
    assert "No measurable difference, as the interval holds 1.0" in text
    assert "as there is no measurable difference:" in finding(text, 1)
    assert "Doubt: without JIT, the total times spread" in text


def test_a_failed_or_interrupted_run_says_no_more_than_why():
    results = make_results()
    results.update(jit=None, status="failed", comparison=comparison_without(["boom"]))
    text = report(results)
    assert "No speedup: boom." in text and "The gates" not in text


def test_losses_that_are_not_finite_are_told():
    runs = noisy_runs(1.0, seed=1)
    for run in runs:
        run["losses"] = [1.0] + [None] * 9
    text = report(make_benchmark(noisy_runs(4.0), runs))
    assert "a loss is not finite" in text and "nan" not in text.lower().replace("finance", "")
    assert "| 10 epochs | | n/a |" in text


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_its_section_and_plot(name):
    text = report(make_results(), **{name: STUDIES[name]()})
    assert f"## {name.capitalize()}:" in text
    assert (f"](../results/{name}.png)" in text) == (name != "inside")
    assert "Measured in another environment" not in text and "In short form" not in text


def test_a_study_from_elsewhere_or_unfinished_says_so():
    study = make_range()
    study["processes"][1]["environment"].update(jax="0.4.30", commit="fedcba")
    text = report(make_results(), range={**study, "short": True})
    assert "Measured in another environment than the above: jax 0.10.2, 0.4.30; commit" in text
    assert "In short form" in text
    text = report(make_results(), range={**study, "status": "interrupted"})
    assert "No figures: its status is 'interrupted'." in text and "range.png" not in text


def test_the_ladder_takes_the_answer_apart():
    text = report(make_results(), ladder=make_ladder())
    assert f"6.00{TIMES} (6.00 to 6.00) is 1.50{TIMES} (1.50 to 1.50) for the eager" in text
    same = report(make_results(), ladder=make_ladder(eager_value_and_grad=3.0))
    assert f"is 1.00{TIMES} (1.00 to 1.00) (no measurable difference) for the eager" in same


def test_the_memory_finding_follows_the_runs():
    no_jit, jit = noisy_runs(4.0), noisy_runs(1.0, seed=1)
    rng = np.random.default_rng(0)
    for runs, peak, delta in ((no_jit, 500, 30), (jit, 550, 20)):
        for run in runs:
            noise = rng.uniform(0.99, 1.01)
            run["memory"].update(peak_mb=peak * noise, delta_mb=delta * noise)
    assert "Holds:" in finding(report(make_benchmark(no_jit, jit)), 4)
    swapped = finding(report(make_benchmark(jit, no_jit)), 4)
    assert "Does not hold here:" in swapped and "the peak is lower with JIT" in swapped
    for run in jit:
        run["memory"]["peak_mb"] -= 100
    half = finding(report(make_benchmark(no_jit, jit)), 4)
    assert "Half of it holds:" in half and "the delta is lower with JIT" in half


def test_always_jit_is_decided_by_the_range():
    holds = finding(report(make_results(), range=make_range(), ladder=make_ladder()), 5)
    assert "Holds in what was measured:" in holds and "in 21 of 21 combinations" in holds
    assert "takes 3.3 times that of the eager step" in holds
    short = make_ladder()
    del short["modes"]["disable_jit"]
    text = report(make_results(), range=make_range(), ladder=short)
    assert "Left out: disable_jit." in text and "Under jax.disable_jit" not in finding(text, 5)
    study = make_range()
    for process in study["processes"]:
        for cell in process["cells"]:
            if cell["mode"] == "jit" and cell["batch_size"] == 8192:
                cell["step_s"] = [10 * seconds for seconds in cell["step_s"]]
    assert "Holds in part:" in finding(report(make_results(), range=study), 5)


def test_the_kernels_of_the_program_are_counted():
    text = report(make_results(), inside=STUDIES["inside"]())
    assert "**Does not hold:** a step is 1 program, but the program holds 28 kernels" in text


def test_the_drift_tells_its_cause_or_that_there_is_none():
    text = report(make_results(), drift=make_drift(growth=0.5))
    assert "JAX 0.4.38: 2.00 new entries a step with jax.nn.relu" in text
    assert "The time grows by +50% and +0%; where that cache is emptied between the records" in text
    assert "the entries account for 100% of the growth" in text
    # 1.71 / (1 + 0.0005 * 4690 / 2), by hand.
    assert original_without_growth(0.0005) == pytest.approx(1.71 / 2.1725)
    assert f"without that growth would be 0.79{TIMES}" in text
    study = make_drift(growth=0.5)
    for process in study["processes"]:
        if process["part"] == "nn_relu, cleared":
            for record in process["records"]:
                record["step_s"] *= 1 + record["steps"] / 1000
    text = report(make_results(), drift=study)
    assert "so the entries are not the cause" in text and "account for" not in text
    flat = report(make_results(), drift=make_drift(growth=0.0))
    assert "no drift is seen here in so many steps" in flat and "account for" not in flat


def test_the_report_lies_where_its_plots_are_found(tmp_path, monkeypatch, capsys):
    (tmp_path / BENCHMARK_FILE).write_text(json.dumps(make_results()), encoding="utf-8")
    (tmp_path / "drift_results.json").write_text(json.dumps(make_drift()), encoding="utf-8")
    assert analysis.main([str(tmp_path)]) == 0
    text = (tmp_path / "analysis.md").read_text(encoding="utf-8")
    assert "](drift.png)" in text and "](loss_curve.png)" in text
    assert "range" not in text.split("## The original's five findings")[0].split("## Drift")[0]
    monkeypatch.setattr(analysis, "RESULTS", tmp_path)
    monkeypatch.setattr(analysis, "REPORT", tmp_path / "report" / "analysis.md")
    assert analysis.write_report(tmp_path) == 0
    text = (tmp_path / "report" / "analysis.md").read_text(encoding="utf-8")
    assert "](../drift.png)" in text
    assert f"report: {tmp_path}" in capsys.readouterr().out


def test_without_results_there_is_one_line(tmp_path, capsys):
    assert analysis.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    (tmp_path / BENCHMARK_FILE).write_text("[]")
    with pytest.raises(ScriptError, match="not a benchmark's result file"):
        analysis.write_report(tmp_path)


def test_final_parameters_are_compared_bit_by_bit():
    runs = [make_run([1.0, 1.0], final_params_sha256=name) for name in ("a", "a", "b")]
    text = report(make_benchmark([make_run([4.0, 4.0])] * 3, runs))
    assert "With JIT, the final parameters of all processes are of 2 kinds: not bit-equal." in text


def committed_inputs():
    studies = {name: committed_results(study_file(name)) for name in STUDIES}
    return Inputs(committed_results(), studies, "../results/")


def test_report_and_committed_results_agree():
    assert analysis.report_text(committed_inputs()) == committed_file("report/analysis.md")


def test_a_changed_figure_changes_the_report():
    inputs = committed_inputs()
    inputs.studies["bound"]["processes"][0]["samples"][0]["seconds"] = [1e-3, 1e-3]
    assert analysis.report_text(inputs) != committed_file("report/analysis.md")


def test_the_committed_studies_are_of_one_full_run():
    inputs = committed_inputs()
    assert all(study["status"] == "complete" for study in inputs.studies.values())
    assert not any(study["short"] for study in inputs.studies.values())
    environment = inputs.results["jit"]["environment"]
    for study in ("ladder", "range", "bound", "inside"):
        other = environment_differences(environment, inputs.studies[study], ENVIRONMENT_KEYS)
        assert other == []


def test_every_plot_of_the_report_is_committed():
    paths = re.findall(r"\]\(\.\./(results/[^)]+)\)", committed_file("report/analysis.md"))
    assert len(paths) == 7
    for path in paths:
        assert (REPOSITORY / path).exists()
