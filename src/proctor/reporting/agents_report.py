"""Cases down, agents across, and what the difference between agents amounts to: for every report of a run."""

from __future__ import annotations

from typing import TextIO

from proctor.base.json_data import Json
from proctor.reporting.comparison_report import passes_text
from proctor.reporting.html.escaping import inline as html_inline
from proctor.reporting.markdown.escaping import inline, row, table_head
from proctor.reporting.terminal.screen import Screen
from proctor.results.compare_runs import AgentTable, agent_tables
from proctor.results.comparison import Comparison
from proctor.results.run import Run

MOST_ROWS = 200
"""Cases in a table that people read; those that agents differ in come first."""


def statement(comparison: Comparison) -> str:
    """What one agent is against another, in one sentence."""
    return f"{comparison.after.agent} against {comparison.before.agent}: {comparison.sentence}"


def shown_rows(table: AgentTable) -> list[tuple[str, list[str]]]:
    """The cases that agents differ in first."""
    ordered = sorted(table.rows, key=lambda item: len(set(item[1])) == 1)
    return [(case_id, [passes_text(passes) for passes in found]) for case_id, found in ordered[:MOST_ROWS]]


def show_agents(run: Run, screen: Screen) -> None:
    """On a terminal: a table per suite, then a sentence per pair."""
    for table in agent_tables(run):
        rows = shown_rows(table)
        heads = [table.suite, *table.agents]
        lines = [heads, *([case_id, *cells] for case_id, cells in rows)]
        widths = [min(40, max(len(line[at]) for line in lines)) for at in range(len(heads))]
        for number, line in enumerate(lines):
            text = "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
            screen.line((text, "bold") if number == 0 else text)
        if len(table.rows) > len(rows):
            screen.line((f"and {len(table.rows) - len(rows):,} more cases", "dim"))
        for comparison in table.comparisons:
            text = statement(comparison)
            screen.line(text if screen.unicode else text.replace("→", "->"))
        screen.line()


def write_agents_markdown(run: Run, out: TextIO) -> None:
    for table in agent_tables(run):
        out.write(f"## {inline(table.suite)}: {len(table.agents)} agents\n\n")
        out.write(table_head("Case", *(inline(agent) for agent in table.agents)))
        for case_id, cells in shown_rows(table):
            out.write(row(inline(case_id), *(inline(cell) for cell in cells)))
        out.write("\n")
        out.writelines(f"- {inline(statement(comparison))}\n" for comparison in table.comparisons)
        out.write("\n")


def write_agents_html(run: Run, out: TextIO) -> None:
    for table in agent_tables(run):
        heads = "".join(f'<th scope="col">{html_inline(name, 120)}</th>' for name in ("Case", *table.agents))
        out.write(f'<section class="agents">\n<h2>{html_inline(table.suite)}: {len(table.agents)} agents</h2>\n')
        out.write(f'<div class="scroll"><table class="grid">\n<thead><tr>{heads}</tr></thead>\n<tbody>\n')
        for case_id, cells in shown_rows(table):
            told = "".join(f"<td>{html_inline(cell)}</td>" for cell in cells)
            out.write(f'<tr><th scope="row">{html_inline(case_id, 120)}</th>{told}</tr>\n')
        out.write("</tbody>\n</table></div>\n")
        out.writelines(f"<p>{html_inline(statement(comparison), 2000)}</p>\n" for comparison in table.comparisons)
        out.write("</section>\n")


def agents_data(run: Run) -> list[Json]:
    """The same as plain data; empty for an ordinary run."""
    return [
        {
            "suite": table.suite,
            "agents": list(table.agents),
            "cases": [
                {
                    "id": case_id,
                    "passed": [None if passes is None else passes.passed for passes in found],
                    "trials": [None if passes is None else passes.trials for passes in found],
                }
                for case_id, found in table.rows
            ],
            "comparisons": [_pair(comparison) for comparison in table.comparisons],
        }
        for table in agent_tables(run)
    ]


def _pair(comparison: Comparison) -> dict[str, Json]:
    data = comparison.to_json()
    names = ("verdict", "sentence", "compared", "before_rate", "after_rate", "difference", "test", "counts")
    ends = {"before": comparison.before.agent, "after": comparison.after.agent}
    return ends | {name: data[name] for name in (*names, "evaluators", "resources")}
