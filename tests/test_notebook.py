"""The notebook as it is committed: whole, with outputs, and with nothing of the machine in them.

.ci/run executes all of it; here, the cells that need no MNIST run, from several folders.
"""

import getpass
import json
import platform
import re
from pathlib import Path

import pytest
from test_readme import committed_results

from config import REPOSITORY
from tables import verdict

PATH = REPOSITORY / "notebooks" / "experiment.ipynb"
NOTEBOOK = json.loads(PATH.read_text(encoding="utf-8"))
LOCAL_PATH = re.compile(r"/(?:home|Users|root|tmp|opt|work|usr|var|private)/|\b[A-Za-z]:\\")
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


def texts(cell):
    """All text that a cell shows."""
    for output in cell["outputs"]:
        yield "".join(output.get("text", ""))
        for kind, content in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield "".join(content)


def run_cells(folder, *marks):
    """Runs the first code cell and those that hold a mark in a kernel in this folder."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    chosen = [CODE[0], *(cell for cell in CODE if any(mark in source(cell) for mark in marks))]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source(cell)) for cell in chosen]
    )
    client = nbclient.NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute().cells


def figures(cell):
    return [output for output in cell["outputs"] if "image/png" in output.get("data", {})]


def test_every_cell_ran_once_from_top_to_bottom():
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert all(cell["outputs"] for cell in CODE)
    assert not any(cell["metadata"] for cell in CODE)  # no times of execution


def test_outputs_hold_no_error_warning_or_trace_of_the_machine():
    private = {str(Path.home()), str(REPOSITORY), platform.node(), "/site-packages/", "/tmp/"}
    if getpass.getuser() != "root":
        private.add(getpass.getuser())
    for cell in CODE:
        for output in cell["outputs"]:
            assert output["output_type"] in ("stream", "display_data")
            assert output.get("name") != "stderr"
        for text in texts(cell):
            assert "warning" not in text.lower()
            for word in private:
                assert word not in text, word
            assert not LOCAL_PATH.search(text)
    assert set(NOTEBOOK["metadata"]) <= {"kernelspec", "language_info"}
    assert PATH.stat().st_size < 400_000


def test_each_part_shows_its_figure():
    shown = [source(cell) for cell in CODE if figures(cell)]
    for part in ("imshow", "handle.update", "loglog", "training_time_figure", "ladder_figure"):
        assert any(part in text for text in shown), part


def test_it_imports_the_modules_and_parses_no_arguments():
    imported = set(re.findall(r"^import (\w+)$", "\n".join(map(source, CODE)), re.MULTILINE))
    ours = {path.stem for path in REPOSITORY.glob("*.py")}
    assert len(imported & ours) >= 10
    assert not imported & {"benchmark", "argparse", "ipywidgets"}


def test_the_committed_results_are_those_that_it_shows():
    (cell,) = [cell for cell in CODE if "training_time_figure" in source(cell)]
    text = "".join(texts(cell))
    assert verdict(committed_results()["comparison"]) in text


@pytest.mark.parametrize("claim", ["535,818 parameters", "no block_until_ready", "ENTRY"])
def test_what_the_text_speaks_of_is_there(claim):
    everything = "".join(map(source, NOTEBOOK["cells"])) + "".join(
        t for c in CODE for t in texts(c)
    )
    assert claim in everything


@pytest.mark.parametrize("place", ["repository", "notebooks", "elsewhere"])
def test_it_finds_the_modules_and_the_results_from_any_folder(place, tmp_path, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", str(PATH))  # Jupyter tells the notebook's path by it
    folders = {"repository": REPOSITORY, "notebooks": PATH.parent, "elsewhere": tmp_path}
    if place != "elsewhere":
        monkeypatch.delenv("JPY_SESSION_NAME")
    cells = run_cells(folders[place], "training_time_figure")
    kinds = [[output["output_type"] for output in cell["outputs"]] for cell in cells]
    assert kinds == [["stream"], ["stream", "display_data"]]
    assert all(output.get("name", "stdout") == "stdout" for c in cells for output in c["outputs"])
    assert figures(cells[1])


def test_without_a_repository_it_says_so_in_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    (cell,) = run_cells(tmp_path)
    (error,) = cell["outputs"]
    assert error["traceback"] == [error["evalue"]]
    assert re.fullmatch("model.py is not at or above .*: start Jupyter .*", error["evalue"])
