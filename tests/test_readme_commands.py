"""Every command of the README's blocks is run: in a copy, with made-up data and made-up processes.

The commands that make the virtual environment are run by .ci/run.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMANDS = [
    line.partition("#")[0].strip()
    for block in BLOCKS
    for line in block.splitlines()
    if line.startswith(".venv/bin/python ") and " -m " not in line
]
# Python imports a module of this name at its start. The processes of a benchmark take minutes:
# what they write is made up, and tested elsewhere; a training script alone runs as it is.
SITECUSTOMIZE = """
import sys
sys.path[:0] = {paths!r}
import data_loader, made_up, made_up_studies, modes, studies, workers
data_loader.load_mnist = lambda *_, **__: made_up.tiny_mnist()
ladder = made_up_studies.make_ladder(1)["modes"]

def run_one(self, arm):
    mode, epochs = self._arms[arm], self._options.epochs
    times = [made_up_studies.EPOCH_S[mode]] * epochs
    flops = ladder[mode]["runs"][0]["step_flops"]
    return made_up.make_mode(mode, made_up.make_run(times, step_flops=flops))

def run_process(self, part, python):
    processes = made_up_studies.STUDIES[self._study]()["processes"]
    return [process for process in processes if process["part"] == part][0]

workers.Workers._run_one = run_one
studies.StudyRun._run_process = run_process
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of what the README speaks of, and two results folders A and B."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in REPOSITORY.iterdir():
        if path.suffix in (".py", ".md", ".txt"):
            shutil.copy(path, folder)
    for name in ("results", "A", "B"):
        shutil.copytree(REPOSITORY / "results", folder / name)
    (folder / "report").mkdir()
    site = folder / "site"
    site.mkdir()
    paths = [str(folder), str(Path(__file__).parent)]
    (site / "sitecustomize.py").write_text(SITECUSTOMIZE.format(paths=paths))
    return folder


def test_the_readme_has_commands():
    scripts = {command.split()[1] for command in COMMANDS}
    assert {"benchmark.py", "analysis.py", "train_no_jit.py", "train_variants.py"} <= scripts
    assert any("--full" in command for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(checkout, command):
    _, *words = shlex.split(command)
    environment = {**os.environ, "PYTHONPATH": str(checkout / "site")}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=checkout, env=environment
    )
    # The control finds two made-up halves equal; what --check doubts is not of this test.
    allowed = (0, 1) if "--check" in words else (0,)
    assert done.returncode in allowed, done.stderr
    assert "Traceback" not in done.stderr
