"""The studies' processes, files and options; the measurements themselves are made up here."""

import json
import sys
from contextlib import nullcontext

import pytest
from made_up_studies import STUDIES as MADE_UP

import benchmark
import studies
from benchmark_options import parse_options
from modes import LADDER, process_weight
from result_files import STUDY_PROCESS_FILE
from utils import OptionError

# Writes what a process of the study would, and tells of two steps of its work.
SCRIPT = """
import json, os, sys
from pathlib import Path
words = sys.argv[1:]
print("measured 1/2  a"); print("measured 2/2  b", flush=True)
{change}
result = json.loads(Path({source!r}).read_text())
part = [p for p in result["processes"] if p["part"] == words[1]][0]
part["words"] = words
folder = Path(words[words.index("--results-dir") + 1])
(folder / {file!r}).write_text(json.dumps(part))
"""


class Bar:
    total = 0.0

    def update(self, n):
        self.total += n


@pytest.fixture
def run_study(monkeypatch, tmp_path):
    """Runs a study on made-up processes; returns the StudyRun, its result and its bar."""

    def run(study, *words, change=""):
        source = tmp_path / "source.json"
        source.write_text(json.dumps(MADE_UP[study]()))
        repository = tmp_path / "repository"
        repository.mkdir(exist_ok=True)
        script = SCRIPT.format(source=str(source), file=STUDY_PROCESS_FILE, change=change)
        (repository / "study_script.py").write_text(script)
        monkeypatch.setattr(studies, "REPOSITORY", repository)
        options = parse_options([f"--{study}", "--results-dir", str(tmp_path / "out"), *words])
        bar = Bar()
        run = studies.StudyRun(study, options, bar)
        return run, run.run(), bar

    return run


@pytest.mark.parametrize("study, n", [("range", 3), ("bound", 9), ("drift", 3)])
def test_a_study_runs_its_parts_in_processes_of_their_own(run_study, study, n):
    run, result, bar = run_study(study)
    assert (result["status"], result["study"], result["failures"]) == ("complete", study, [])
    assert [process["order"] for process in result["processes"]] == list(range(n))
    assert {p["part"] for p in result["processes"]} == set(studies.STUDIES[study].parts)
    assert all("--short" not in process["words"] for process in result["processes"])
    weight = studies.study_weight(study, parse_options([f"--{study}"]))
    assert bar.total == pytest.approx(weight)


def test_the_short_form_takes_one_process_of_each_part(run_study):
    _, result, bar = run_study("bound", "--quick")
    assert [process["part"] for process in result["processes"]] == ["modes", "tries"]
    assert result["short"] and all("--short" in p["words"] for p in result["processes"])
    assert bar.total == pytest.approx(2 * studies.STUDIES["bound"].short_weight)


@pytest.mark.parametrize("words, left_out", [((), set()), (("--quick",), {"disable_jit"})])
def test_the_short_form_leaves_out_the_slow_rung(run_study, monkeypatch, words, left_out):
    class Workers:
        failures: dict = {}
        interrupted = False

        def __init__(self, arms, *others):
            self.arms = arms

        def run(self):
            pass

        def result(self, arm):
            return {"mode": self.arms[arm]}

    monkeypatch.setattr(studies, "Workers", Workers)
    _, ladder, _ = run_study("ladder", *words)
    assert ladder["modes"].keys() == LADDER.keys() - left_out
    _, inside, _ = run_study("inside", *words)
    assert {process["part"] for process in inside["processes"]} == LADDER.keys() - left_out


def test_a_failed_process_is_told_and_the_others_kept(run_study):
    change = "if words[1] == 'nn_relu': sys.exit('error: boom')"
    run, result, _ = run_study("drift", change=change)
    assert result["status"] == "failed"
    assert run.failures == ["study_script.py drift nn_relu ended with exit status 1: boom"]
    assert len(result["processes"]) == 2


def test_ctrl_c_keeps_what_was_finished(run_study, monkeypatch):
    calls = []

    def relay(command, advance, relay=studies.relay):
        calls.append(command)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return relay(command, advance)

    monkeypatch.setattr(studies, "relay", relay)
    run, result, _ = run_study("bound")
    assert run.interrupted and len(calls) == 2
    assert result["status"] == "interrupted" and len(result["processes"]) == 1


def test_nothing_finished_gives_no_file(run_study):
    run, result, _ = run_study("bound", change="sys.exit(3)")
    assert result is None and len(run.failures) == 9


def test_another_python_runs_the_drift_alone(run_study):
    _, result, _ = run_study("drift", "--with-python", sys.executable)
    assert len(result["processes"]) == 6
    options = parse_options(["--range", "--with-python", sys.executable])
    assert studies.study_weight("range", options) == 3 * studies.STUDIES["range"].weight


@pytest.mark.parametrize("python", ["no-such-python", "false"])
def test_a_python_that_cannot_be_used_is_a_bad_option(python):
    with pytest.raises(OptionError, match=f"--with-python {python}"):
        studies.check_pythons(parse_options(["--drift", "--with-python", python]))


def test_hlo_goes_to_a_file_of_its_own(tmp_path):
    result = MADE_UP["inside"]()
    result["processes"][-1]["hlo"] = "HloModule jit_train_step\n"
    paths = studies.write_study(result, tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in paths] == [
        str(studies.HLO_FILE),
        "inside_results.json",
    ]
    text = paths[0].read_text(encoding="utf-8")
    assert text.splitlines()[1] == "HloModule jit_train_step"
    assert text.startswith("// the jitted train_step, optimised by XLA for the cpu, batch 128; JAX")
    assert "hlo" not in json.loads(paths[1].read_text())["processes"][-1]


@pytest.mark.parametrize(
    "words, main_run, chosen, repeats",
    [
        ([], True, [], 3),
        (["--full"], True, list(studies.STUDIES), 10),
        (["--full", "--quick"], True, list(studies.STUDIES), 1),
        (["--drift", "--ladder"], False, ["ladder", "drift"], 3),
        (["--trace", "profiles"], False, ["inside"], 3),
        (["--control"], True, [], 10),
    ],
)
def test_options_choose_the_main_run_and_the_studies(words, main_run, chosen, repeats):
    options = parse_options(words)
    assert (options.main_run, options.studies, options.repeats) == (main_run, chosen, repeats)


@pytest.mark.parametrize("other", [["--control"], ["--check"], ["--compare", "a", "b"]])
def test_a_study_goes_with_no_other_action(other, capsys):
    with pytest.raises(SystemExit) as end:
        parse_options(["--range", *other])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_ladders_processes_are_few_and_the_same_for_every_rung():
    options = studies.ladder_options(parse_options(["--ladder", "--epochs", "7"]))
    assert (options.epochs, options.repeats) == (1, 6)
    short = studies.ladder_options(parse_options(["--ladder", "--quick"]))
    assert (short.epochs, short.repeats) == (1, 1)
    expected = sum(process_weight(mode, 1) for mode in LADDER if mode != "disable_jit")
    assert studies.study_weight("ladder", parse_options(["--ladder", "--quick"])) == expected


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_benchmark_writes_a_study_and_prints_it(monkeypatch, tmp_path, capsys, interrupted):
    class Run:
        failures: list[str] = []

        def __init__(self, study, options, bar):
            self.interrupted = interrupted

        def run(self):
            return {**MADE_UP["range"](), "status": "interrupted" if interrupted else "complete"}

    monkeypatch.setattr(benchmark, "data_for_processes", nullcontext)
    monkeypatch.setattr(benchmark.studies, "StudyRun", Run)
    status = benchmark.main(["--range", "--results-dir", str(tmp_path)])
    out, err = capsys.readouterr()
    names = {path.name for path in tmp_path.iterdir()}
    assert "range_results.json" in names
    if interrupted:
        assert status == 130 and err.startswith("error: interrupted in the study range")
    else:
        assert (status, err) == (0, "")
        assert names == {"range_results.json", "range.png"} and "when does JIT matter" in out
