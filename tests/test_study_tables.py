"""The studies' text and plots: from made-up results, their words follow the data."""

import pytest
from made_up_studies import STUDIES, make_drift, make_ladder

import study_plots
import study_tables
from intervals import Ratio
from studies import STUDIES as KNOWN_STUDIES
from tables import CONSOLE_COLUMNS

TIMES = "\N{MULTIPLICATION SIGN}"


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_text_fits_the_console(study, encoding):
    text = study_tables.study_text(study, STUDIES[study](), encoding)
    assert max(map(len, text.splitlines())) <= CONSOLE_COLUMNS
    text.encode(encoding)


def test_every_study_has_a_text_and_a_title():
    assert STUDIES.keys() == KNOWN_STUDIES.keys() == study_tables.STUDY_BLOCKS.keys()
    assert study_tables.STUDY_TITLES.keys() == KNOWN_STUDIES.keys()


@pytest.mark.parametrize(
    "ratio, text",
    [
        (Ratio(2.0, (1.9, 2.1)), f"2.00{TIMES} (1.90 to 2.10) as fast"),
        (Ratio(0.5, (0.4, 0.625)), f"slower: 2.00{TIMES} (1.60 to 2.50) the time"),
        (Ratio(1.01, (0.99, 1.03)), f"no measurable difference: 1.01{TIMES} (0.99 to 1.03)"),
        (Ratio(1.5, None), f"1.50{TIMES} as fast (no interval)"),
    ],
)
def test_a_finding_says_what_the_interval_carries(ratio, text):
    assert study_tables.finding(ratio) == text


def test_ladder_tells_the_headline_in_its_parts():
    text = " ".join(study_tables.study_text("ladder", make_ladder(), "utf-8").split())
    assert f"6.00{TIMES} (6.00 to 6.00) = 1.50{TIMES} (1.50 to 1.50)" in text
    assert f"times 4.00{TIMES} (4.00 to 4.00) for JIT alone" in text
    assert "JIT, donated (the new parameters may take the old ones' memory): no measurable" in text
    assert f"costs 9.224 s; slower: 10.00{TIMES}" in text


def test_a_rung_with_fewer_processes_is_named():
    result = make_ladder()
    assert "processes per mode: 6, epochs" in study_tables.study_text("ladder", result, "utf-8")
    del result["modes"]["disable_jit"]["runs"][2:]
    text = " ".join(study_tables.study_text("ladder", result, "utf-8").split())
    assert "processes per mode: 6 (2 of disable_jit), epochs" in text


def test_a_failed_gate_stands_in_the_ladders_table():
    result = make_ladder()
    result["modes"]["numpy"]["runs"][0]["dtypes"] = ["float64"]
    assert "no: float32 throughout" in study_tables.study_text("ladder", result, "utf-8")


def test_drift_tells_growth_by_version_and_activation():
    lines = study_tables.study_text("drift", make_drift(growth=0.5), "utf-8").splitlines()
    (line,) = [line for line in lines if "0.4.38, nn_relu " in line]
    cells = [cell.strip() for cell in line.strip("\N{BOX DRAWINGS LIGHT VERTICAL}").split("│")]
    assert cells[1:] == ["5.00 ms", "7.50 ms", "1.50", "2.00", "+80.0"]


@pytest.mark.parametrize("study", study_plots.STUDY_PLOTS)
def test_plots_are_written_and_equal_for_equal_results(study, tmp_path):
    (path,) = study_plots.write_study_plots(study, STUDIES[study](), tmp_path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    study_plots.write_study_plots(study, STUDIES[study](), tmp_path)
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == [f"{study}.png"]


def test_ladder_plot_has_each_rungs_time():
    axes = study_plots.ladder_figure(make_ladder()).axes[0]
    texts = [text.get_text().strip() for text in axes.texts]
    assert "10.249 s" in texts and "0.410 s" in texts  # times the mean noise, rounded
    assert any("no measurable difference" in text for text in texts)


def test_drift_plot_has_a_line_for_every_arm_in_each_panel():
    figure = study_plots.drift_figure(make_drift())
    assert [len(axes.lines) for axes in figure.axes] == [6, 6, 6]
    assert list(figure.axes[0].lines[1].get_ydata())[0] == pytest.approx(5.0)


def test_intervals_from_few_processes_say_so():
    text = " ".join(study_tables.study_text("range", STUDIES["range"](), "utf-8").split())
    assert "An interval from 3 processes covers 75% at best." in text
    text = " ".join(study_tables.study_text("ladder", make_ladder(), "utf-8").split())
    assert "at best" not in text  # six processes are enough


def test_what_introduces_a_table_is_a_paragraph_and_what_follows_it_a_list():
    text = study_tables.markdown(study_tables.study_blocks("range", STUDIES["range"]()))
    starts = [line for line in text.splitlines() if "milliseconds per step" in line]
    assert len(starts) == 3 and all(line.startswith("Layers 784-") for line in starts)
    assert "\n- With JIT: a step takes" in text
