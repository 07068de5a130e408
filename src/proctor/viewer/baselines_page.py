"""Baselines that were named on the command line: what is usual of each case."""

from __future__ import annotations

from io import StringIO

from proctor.reporting.html.escaping import inline
from proctor.reporting.wording import counted
from proctor.results.baseline import BaselineLine
from proctor.results.statistics import Estimate, wilson
from proctor.viewer.layout import page
from proctor.viewer.library import Library
from proctor.viewer.runs_page import rate_cell

MOST_CASES = 1_000


def baselines_page(library: Library) -> str:
    out = StringIO()
    out.write('<h1 class="plain">Baselines</h1>\n')
    for named in library.baselines:
        cases: dict[tuple[str, str, str], list[BaselineLine]] = {}
        for line in named.baseline.lines:
            cases.setdefault((line.suite, line.case, line.agent), []).append(line)
        out.write(f"<h2>{inline(str(named.path))} <small>{counted(len(cases), 'case')}</small></h2>\n")
        label = f"Cases of {inline(str(named.path))}"
        out.write(
            f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table class="list"><thead><tr>'
        )
        out.write('<th scope="col">Case</th><th scope="col">Suite</th><th scope="col">Agent</th>')
        out.write('<th scope="col">Passes</th><th scope="col" class="number">Trials</th>')
        out.write('<th scope="col" class="number">Runs</th></tr></thead>\n<tbody>\n')
        for (suite, case, agent), lines in list(cases.items())[:MOST_CASES]:
            trials, passes = sum(line.trials for line in lines), sum(line.passes for line in lines)
            runs = len({line.run for line in lines})
            rate = Estimate(passes / trials, *wilson(passes / trials, trials), trials) if trials else None
            out.write(
                f'<tr data-item><th scope="row">{inline(case, 120)}</th><td>{inline(suite, 120)}</td>'
                f'<td>{inline(agent[:12])}</td><td class="rate-cell">{rate_cell(rate)}</td>'
                f'<td class="number">{trials:,}</td><td class="number">{runs:,}</td></tr>\n'
            )
        out.write("</tbody></table></div>\n")
        if len(cases) > MOST_CASES:
            out.write(f'<p class="cut">And {counted(len(cases) - MOST_CASES, "more case")}.</p>\n')
    if not library.baselines:
        out.write('<p class="none">No baseline was named on the command line.</p>\n')
    return page("Baselines", out.getvalue())
