"""Notebooks: cells are run by a real kernel, and what they show is what a user sees."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.process

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

PREPARED = """
import warnings
import proctor
from proctor import Case, EvaluatorSpec, Expected, Keywords, Suite, Turn

def agent(question):
    return "<script>alert(1)</script> It is shipped."

def case(name, word):
    return Case(id=name, turns=(Turn("Where is A-17?", Expected(contains=Keywords(any=(word,)))),))

suite = Suite("shop", (case("shipped", "shipped"), case("lost", "refund")))
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The cells of one notebook, executed: each with its outputs."""
    folder = tmp_path_factory.mktemp("notebook")
    sources = [
        PREPARED,
        "run = proctor.run(suite, agent, store='kept'); run",
        "again = await proctor.run_async(suite, 'oracle', progress=False); proctor.compare(run, again)",
        "proctor.compare('last', again, store='kept').to_pandas()[['case', 'group']]",
        "run.to_pandas()[['case', 'outcome', 'score.Contains']]",
        "print(proctor.run(suite, agent, listener=None, progress=False).to_dicts()[1]['outcome'])",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "here", "language": "python"}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(folder / name.lower()))
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return list(notebook.cells)


def shown(cell: Any) -> str:
    """The HTML of the value of a cell."""
    [html] = [output.data["text/html"] for output in cell.outputs if output.output_type == "execute_result"]
    return str(html)


def test_a_run_in_a_cell_needs_no_await_and_shows_itself_without_acting_on_what_agents_say(cells: list[Any]) -> None:
    page = shown(cells[1])

    assert "1 of 2 cases passed" in page
    assert "lost" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_a_notebook_keeps_one_short_line_beside_what_it_shows(cells: list[Any]) -> None:
    for cell, beginning in ((cells[1], "<Run "), (cells[2], "<Comparison of ")):
        [text] = [output.data["text/plain"] for output in cell.outputs if output.output_type == "execute_result"]
        assert text.startswith(beginning)
        assert len(text) < 300


def test_a_bar_tells_of_the_run_while_it_lasts_and_of_the_verdict_at_its_end(cells: list[Any]) -> None:
    [bar] = [output for output in cells[1].outputs if output.output_type == "display_data"]

    assert "failed" in bar.data["text/html"]
    assert "1 of 2 cases passed" in bar.data["text/html"]
    assert not [output for output in cells[2].outputs if output.output_type == "display_data"]


def test_a_comparison_shows_what_became_of_each_case(cells: list[Any]) -> None:
    page = shown(cells[2])

    assert "Fixed: 1 case" in page
    assert "lost" in page


def test_runs_and_comparisons_are_tables_of_pandas(cells: list[Any]) -> None:
    assert "fixed" in shown(cells[3])
    assert "score.Contains" in shown(cells[4])


def test_a_cell_that_shows_nothing_prints_nothing_but_its_own_words(cells: list[Any]) -> None:
    [output] = cells[5].outputs

    assert output.text == "failed\n"
