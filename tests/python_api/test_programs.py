"""Twenty small programs that new users write, each as a script, in pytest, and where it makes sense in a notebook."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from command_line import PYTEST

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
IN_NOTEBOOKS = ("01", "02", "03", "04", "05", "06", "11", "15", "16", "18", "19")


# One of them names only an evaluator that does not look at the expected output.
@pytest.mark.filterwarnings("ignore::proctor.base.errors.UnusedExpectation")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_it_runs_as_a_script(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    variables = runpy.run_path(str(program), run_name="__main__")
    for name, value in variables.items():
        if name.startswith("test_") and callable(value):
            value()


@pytest.mark.process
def test_they_run_in_pytest(tmp_path: Path) -> None:
    for program in PROGRAMS:
        shutil.copy(program, tmp_path / f"test_p{program.name}")
    command = [*PYTEST, "-q", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "4 passed" in done.stdout  # two functions, and a suite of two cases


EDITED = """
import proctor
def agent(question):
    return {answer!r}
def polite(output):
    return {word!r} in output
suite = proctor.Suite("shop", [proctor.Case("Hi")], evaluators=[polite])
run = suite.run(agent, store="kept", reuse=True)
print(run.passed, run.trials[0].reused, suite.evaluators[0].fingerprint)
"""


@pytest.mark.process
def test_they_run_in_a_notebook_and_an_edited_cell_is_another_evaluator(tmp_path: Path) -> None:
    sources = [program.read_text() for program in PROGRAMS if program.name[:2] in IN_NOTEBOOKS]
    edits = [("Please wait.", "Please"), ("Please wait.", "wait!"), ("Wait!", "Wait")]
    sources += [EDITED.format(answer=answer, word=word) for answer, word in edits]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "here", "language": "python"}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(tmp_path / name))
        nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    first, second, third = (_printed(cell).split() for cell in notebook.cells[-3:])
    assert first[:2] == ["True", "False"]
    assert second[:2] == ["False", "True"]  # the same answer, scored by the edited evaluator
    assert third[:2] == ["True", "False"]  # the edited agent is asked again
    assert len({first[2], second[2], third[2]}) == 3


def _printed(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs if output.get("name") == "stdout")
