"""The README: its figures are those of the committed result files, its links and names exist."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from made_up import make_results
from made_up_studies import make_ladder

import update_readme
from config import REPOSITORY
from modes import MODES
from result_files import BENCHMARK_FILE, mode_file
from utils import ScriptError

README = update_readme.README.read_text(encoding="utf-8")
EMPTY = "\n".join(update_readme.BLOCK.format(name, "") for name in update_readme.BLOCKS)


def committed_file(path):
    """A file's text as Git has it: a user's own run may have written another over it."""

    def git(*words, check=False):
        return subprocess.run(["git", *words], capture_output=True, cwd=REPOSITORY, check=check)

    has_git = (REPOSITORY / ".git").exists() and shutil.which("git")
    if not has_git or git("rev-parse", "--verify", "HEAD").returncode != 0:
        pytest.skip("Git tells no commit: what is committed cannot be told from a user's run")
    return git("show", f":{path}", check=True).stdout.decode("utf-8")


def committed_results(name=BENCHMARK_FILE):
    return json.loads(committed_file(f"results/{name}"))


def made_up(name):
    return make_results() if name == BENCHMARK_FILE else make_ladder()


def test_readme_and_committed_results_agree():
    assert update_readme.with_blocks(README, committed_results) == README


@pytest.mark.parametrize("mode", MODES)
def test_committed_files_are_of_one_run(mode):
    assert committed_results(mode_file(mode)) == committed_results()[mode]


def test_a_changed_figure_is_seen():
    results = committed_results()
    results["jit"]["epochs"][1]["time_s"] += 0.01

    def read(name):
        return results if name == BENCHMARK_FILE else committed_results(name)

    assert update_readme.with_blocks(README, read) != README


def test_share_of_the_second_forward_pass_is_that_of_the_committed_counts():
    results = committed_results()
    flops = [results[mode]["runs"][0]["step_flops"] for mode in MODES]
    assert f"that pass is {100 * (1 - flops[1] / flops[0]):.0f} %" in " ".join(README.split())


def test_blocks_hold_the_figures_of_the_results(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"before\n{EMPTY}\nafter", encoding="utf-8")
    assert update_readme.update(path, made_up) == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter")
    assert "4.00\N{MULTIPLICATION SIGN}" in text and "Made-up CPU" in text
    assert re.search(r"\| *2 \| *0\.5000 \| *95\.00% \| *5\.000 s \|", text)
    update_readme.update(path, made_up)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("readme", ["no block at all", EMPTY + EMPTY])
def test_missing_or_doubled_markers_are_a_named_fault(readme):
    with pytest.raises(ScriptError, match="blocks 'answer'"):
        update_readme.with_blocks(readme, made_up)


def test_every_file_that_the_readme_links_or_names_exists():
    targets = re.findall(r"\]\((?!https?:|#)([^)]+)\)", README)
    targets += re.findall(r"`(\w+\.py|results/|tests/)`", README)
    assert len(targets) > 15
    for target in targets:
        assert (REPOSITORY / target).exists(), target


def test_contents_link_to_the_headings():
    headings = re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    links = re.findall(r"\]\(#([^)]+)\)", README)
    assert links and set(links) <= anchors


def test_every_module_stands_in_the_readme():
    for path in REPOSITORY.glob("*.py"):
        assert f"`{path.name}`" in README, path.name


def test_every_script_and_option_of_the_readme_is_there():
    scripts = set(re.findall(r"\.venv/bin/python (\w+\.py)", README))
    assert {"benchmark.py", "plots.py", "train_no_jit.py", "train_with_jit.py"} <= scripts
    helps = {}
    for script in scripts:
        command = [sys.executable, str(REPOSITORY / script), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        helps[script] = done.stdout
    for option in set(re.findall(r"`(--[a-z-]+)", README)) - {"--help"}:
        assert option in helps["benchmark.py"], option
