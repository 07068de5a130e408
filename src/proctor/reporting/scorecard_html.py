"""The page of a scorecard, made of the pieces of the report: a verdict, evaluators, a grid, and each entry unfolded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from proctor.cases.model import UNSET, Case, Criteria, NamedData
from proctor.evaluators.model import collapse
from proctor.plain import plain
from proctor.reporting.explain import one_line_reason, why_open
from proctor.reporting.html_grid import anchor, write_grids
from proctor.reporting.html_page import page_end, page_head, write_filter
from proctor.reporting.html_summary import write_evaluators
from proctor.reporting.html_text import GLYPHS, badge, block, facts, inline, pretty
from proctor.reporting.html_trial import FAILING_TEXT, PASSING_TEXT, write_scores
from proctor.reporting.wording import counts_text, share, when
from proctor.results.model import Outcome, Run, SuiteInfo, TrialResult, TrialSummary
from proctor.results.verdict import RunVerdict, judge, trial_outcome

if TYPE_CHECKING:
    from proctor.reporting.scorecard import DatasetEntryResult, DatasetScorecard

SECTIONS = {
    "Input": ("eval_input", "input"),
    "Expected": ("expectation", "expected_output"),
    "Answer": ("eval_output", "output"),
}
"""Under which names an entry keeps what everybody looks for first; all else comes after."""

_BAD = (Outcome.FAILED, Outcome.ERROR)
_NAMED = {"name", "value"}


def write(scorecard: DatasetScorecard, out: TextIO) -> None:
    """Write the page."""
    trials = [_trial(scorecard.dataset_name, number, entry) for number, entry in enumerate(scorecard.entries)]
    run = _run(scorecard, trials)
    verdict = judge(run)
    out.write(
        page_head(f"{GLYPHS[verdict.outcome]} {verdict.outcome.value}: {scorecard.dataset_name}", verdict.outcome)
    )
    _write_banner(scorecard, verdict, out)
    out.write("<main>\n")
    write_evaluators(run, verdict, out)
    rows = write_grids(run, verdict, out)
    _write_entries(scorecard, trials, verdict, rows, out)
    note = "A score passes from what its evaluator needs on. Numbers in brackets are 95 % intervals."
    out.write(f"</main>\n<footer><p>{note}</p></footer>\n")
    out.write(page_end())


def _trial(dataset: str, number: int, entry: DatasetEntryResult) -> TrialResult:
    """An entry in the form that verdicts and grids are made of; its number keeps equal labels apart."""
    scores = tuple(
        replace(score, evaluator=str(name)) for name, score in zip(entry.evaluator_names, entry.scores, strict=True)
    )
    outcome, reason = trial_outcome(scores, Criteria())
    case = Case(f"{number + 1}. {entry.input_label}", ())
    return TrialResult(dataset, case, 1, number, entry.outcome or outcome, reason, scores=scores)


def _run(scorecard: DatasetScorecard, trials: list[TrialResult]) -> Run:
    count = len(trials)
    info = SuiteInfo(scorecard.dataset_name, None, "scorecard", "", "", Criteria(), count, count)
    summaries = [TrialSummary.of(trial) for trial in trials]
    return Run("scorecard", scorecard.timestamp.timestamp(), (info,), summaries, trials)


def _write_banner(scorecard: DatasetScorecard, verdict: RunVerdict, out: TextIO) -> None:
    outcome, rate = verdict.outcome, verdict.suites[0].pass_rate
    pairs = [("Entries", f"{len(scorecard.entries):,} <small>({counts_text(verdict.counts)})</small>")]
    if rate is not None:
        pairs.append(("Pass rate", share(rate)))
    pairs.append(("Made", when(scorecard.timestamp.timestamp())))
    out.write(
        f'<header class="banner {outcome.value}">\n<div class="sign" aria-hidden="true">{GLYPHS[outcome]}</div>\n'
        f'<div class="words">\n<p class="kicker">Scorecard of {inline(scorecard.dataset_name, 300)}</p>\n'
        f'<h1>{outcome.value.capitalize()}</h1>\n<p class="reason">{inline(verdict.reason, 2_000)}</p>\n'
        f"{facts(pairs)}</div>\n</header>\n"
        '<nav aria-label="Sections"><a href="#evaluators">Evaluators</a> <a href="#cases">Cases</a> '
        '<a href="#trials">Entries</a></nav>\n'
    )


def _write_entries(
    scorecard: DatasetScorecard,
    trials: list[TrialResult],
    verdict: RunVerdict,
    rows: Mapping[tuple[str, str], int],
    out: TextIO,
) -> None:
    out.write('<section id="trials">\n<h2>Entries</h2>\n')
    write_filter(verdict.counts, out)
    for entry, trial in zip(scorecard.entries, trials, strict=True):
        _write_entry(entry, trial, rows[trial.suite, trial.case.id], out)
    if not trials:
        out.write('<p class="none">The dataset has no entries.</p>\n')
    out.write("</section>\n")


def _write_entry(entry: DatasetEntryResult, trial: TrialResult, row: int, out: TextIO) -> None:
    outcome = trial.outcome
    reason = "" if outcome is Outcome.PASSED else (one_line_reason if outcome in _BAD else why_open)(trial)
    told = f'<span class="why">{inline(reason)}</span>' if reason else ""
    limit = FAILING_TEXT if outcome in _BAD else PASSING_TEXT
    out.write(
        f'<details class="trial {outcome.value}" data-outcome="{outcome.value}" data-row="{row}">\n'
        f"<summary>{badge(outcome)}<h4>{inline(trial.case.id, 200)}</h4>{told}</summary>\n"
        f'<div class="body" id="{anchor(trial.position)}">\n'
    )
    for title, value in _sections(entry.evaluable_dict):
        out.write(f"<h5>{inline(title, 200)}</h5>\n{block(pretty(value), limit)}")
    write_scores(trial.scores, out)
    out.write("</div>\n</details>\n")


def _sections(evaluable: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    left = dict(evaluable)
    for title, names in SECTIONS.items():
        for name in names:
            if name in left and (value := left.pop(name)) is not UNSET:
                yield title, _collapsed(value)
    for name, value in left.items():
        if value is not None and value is not UNSET:
            yield str(name), value


def _collapsed(value: Any) -> Any:
    """Named values as evaluators see them: one as it is, several by name."""
    items = plain(value)
    if isinstance(items, list) and items and all(isinstance(item, dict) and item.keys() == _NAMED for item in items):
        return collapse([NamedData(str(item["name"]), item["value"]) for item in items])
    return items
