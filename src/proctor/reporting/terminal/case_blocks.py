"""Prints a case that runs several times: one block per case, when its last trial is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proctor.cases.identity import CaseAddress
from proctor.reporting.explain import BRIEF, Fact, explain
from proctor.reporting.failing_cases import FAILED_OR_ERROR, ReasonCounter, trials_text
from proctor.reporting.terminal.facts import INDENT, print_facts
from proctor.reporting.terminal.run_text import NameColumn, WarningFilter, line_start
from proctor.reporting.terminal.screen import Screen, Span
from proctor.reporting.wording import STYLES, flaky_text, plural
from proctor.results.reasons import score_value
from proctor.results.run import Run
from proctor.results.score import Outcome, Score, ScoreRow
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import CaseVerdict, case_outcome

MAX_REASONS = 5


class CaseBlock:
    """The trials of one case: a summary of each, and one example of each distinct reason for failing.

    `stored` are trials that a resumed run has already.
    """

    def __init__(self, suite: str, case_id: str, stored: Sequence[TrialSummary] = ()) -> None:
        self.address = (suite, case_id)
        self.summaries = list(stored)
        self.reasons = ReasonCounter(limit=500)
        self.examples: dict[int, Trial] = {}
        self.warnings: list[str] = []
        self.reason = ""
        """Why the case was skipped or is pending."""
        self.added = self.reused = 0

    def add(self, trial: Trial, warnings: Sequence[str], reason: str) -> None:
        """Add a trial; `reason` is why it was skipped or is pending, empty if that was printed already."""
        self.added += 1
        self.reused += trial.reused
        self.warnings += warnings
        if all(trial.number != summary.number for summary in self.summaries):
            self.summaries.append(TrialSummary.of(trial))
        if trial.outcome in FAILED_OR_ERROR:
            if self.reasons.add(trial):
                self.examples[trial.number] = trial
        elif not self.reason:
            self.reason = reason


class CaseBlocks:
    """Collects the trials of repeated cases until a case is complete, and prints it."""

    def __init__(self, run: Run) -> None:
        self._planned = run.planned_trials
        self._criteria = {info.name: info.criteria for info in run.suites}
        self._stored: dict[CaseAddress, list[TrialSummary]] = {}
        for summary in run.summaries:
            self._stored.setdefault((summary.suite, summary.case_id), []).append(summary)
        self._open: dict[CaseAddress, CaseBlock] = {}

    def __contains__(self, trial: Trial) -> bool:
        """Whether the case of this trial runs several times."""
        return (trial.suite, trial.case.id) in self._planned

    def add(self, trial: Trial, warnings: Sequence[str], reason: str) -> CaseBlock | None:
        """Add a trial; return the block of its case if this was its last trial."""
        address = (trial.suite, trial.case.id)
        stored = self._stored.get(address, ())
        block = self._open.setdefault(address, CaseBlock(*address, stored))
        block.add(trial, warnings, reason)
        if block.added + len(stored) < self._planned[address]:
            return None
        return self._open.pop(address)

    def incomplete(self) -> list[CaseBlock]:
        """Remove and return the blocks of cases whose last trial did not come."""
        blocks, self._open = list(self._open.values()), {}
        return blocks

    def stored_block(self, trials: Sequence[Trial], warnings: WarningFilter) -> CaseBlock:
        """The block of a case of a finished run, from the trials of it that are to be shown."""
        address = (trials[0].suite, trials[0].case.id)
        block = CaseBlock(*address, self._stored.get(address, ()))
        for trial in trials:
            block.add(trial, warnings.new_in(trial), warnings.new_reason(trial))
        return block

    def print(self, screen: Screen, block: CaseBlock, names: NameColumn) -> None:
        """Print the line of a case; below it, its distinct reasons and one example if a trial failed."""
        outcome = case_outcome(block.summaries, self._criteria[block.address[0]])
        screen.line(*_line(block, outcome, self._planned.get(block.address, 0), names), hang=INDENT)
        facts = [*_facts(block), *(Fact("warning", warning, Outcome.ERROR) for warning in block.warnings)]
        if facts:
            print_facts(screen, facts, BRIEF)
            screen.line()


def _line(block: CaseBlock, outcome: Outcome, planned: int, names: NameColumn) -> list[Span]:
    counts = Counter(summary.outcome for summary in block.summaries)
    done = len(block.summaries)
    share = "" if outcome is Outcome.SKIPPED else trials_text(counts)
    mean_ms = sum(summary.duration_ms for summary in block.summaries) / done
    spans = line_start(outcome, "/".join(block.address), mean_ms, names, share)
    separator = "  "
    for text, worst in _score_texts([row for summary in block.summaries for row in summary.scores]):
        spans += [separator, (text, "" if worst is Outcome.PASSED else STYLES[worst])]
        separator = ", "
    case = CaseVerdict(*block.address, outcome, done, counts[Outcome.PASSED], counts[Outcome.FAILED])
    if case.is_flaky:
        spans.append((f"  {flaky_text(case)}", "magenta"))
    if outcome in (Outcome.SKIPPED, Outcome.PENDING) and block.reason:
        spans.append((f"  {block.reason}", "dim"))
    if block.reused:
        spans.append((f"  ({block.reused} from an earlier run)", "dim"))
    if done < planned:
        spans.append((f"  ({done} of {plural(planned, 'trial')} run)", "dim"))
    return spans


def _score_texts(rows: Sequence[ScoreRow]) -> list[tuple[str, Outcome]]:
    """One short text per evaluator over all trials: the score if all are equal, else the range."""
    groups: dict[str, list[ScoreRow]] = {}
    for row in rows:
        groups.setdefault(row.evaluator, []).append(row)
    return [_score_text(name, group) for name, group in groups.items()]


def _score_text(name: str, rows: Sequence[ScoreRow]) -> tuple[str, Outcome]:
    worst = min(rows, key=lambda row: row.outcome.rank)
    note = " (report only)" if worst.report_only else ""
    if len({(row.value, row.outcome) for row in rows}) == 1:
        return f"{name} {score_value(Score(name, worst.outcome, worst.value, worst.threshold))}{note}", worst.outcome
    values = [row.value for row in rows if row.value is not None]
    low, high = (f"{min(values):.2f}", f"{max(values):.2f}") if values else ("", "")
    text = worst.outcome.value if not values else low if low == high else f"{low}..{high}"
    bad = sum(row.outcome is worst.outcome for row in rows)
    share = f" ({bad} of {len(rows)} {worst.outcome.value})" if worst.outcome is not Outcome.PASSED else ""
    return f"{name} {text}{share}{note}", worst.outcome


def _facts(block: CaseBlock) -> list[Fact]:
    reasons = block.reasons.reasons()
    if not reasons:
        return []
    bad = sum(reason.trials for reason in reasons)
    example = f"trial {reasons[0].number}"
    facts = []
    if len(reasons) > 1:
        facts = [Fact(plural(item.trials, "time"), item.text, item.outcome) for item in reasons[:MAX_REASONS]]
        if more := len(reasons) - len(facts):
            facts.append(Fact("", f"and {plural(more, 'more reason')}"))
    elif bad > 1:
        others = "trial" if bad == 2 else str(bad - 1)
        example += f"; the other {others} failed the same way"
    if len(block.summaries) > 1:
        facts.append(Fact("example", example))
    return [*facts, *explain(block.examples[reasons[0].number], BRIEF)]
