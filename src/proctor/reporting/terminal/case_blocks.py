"""The block of a case that is run several times: told once, when its last trial is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proctor.cases.identity import CaseAddress
from proctor.reporting.explain import BRIEF, Fact, explain
from proctor.reporting.failing_cases import FAILED_OR_ERROR, ReasonCounter, share_text
from proctor.reporting.terminal.facts import INDENT, print_facts
from proctor.reporting.terminal.run_text import NameColumn, WarningFilter, line_start
from proctor.reporting.terminal.screen import Screen, Span
from proctor.reporting.wording import STYLES, flaky_text, plural
from proctor.results.reasons import headline_reason, score_value
from proctor.results.run import Outcome, Run, Score, ScoreRow, TrialResult, TrialSummary
from proctor.results.verdict import CaseVerdict, case_outcome

MAX_REASONS = 5


class CaseBlock:
    """What the trials of one case came to; of those that went wrong, one of each distinct reason is held."""

    def __init__(self, suite: str, case_id: str, kept: Sequence[TrialSummary] = ()) -> None:
        self.address = (suite, case_id)
        self.summaries = list(kept)
        self.reasons = ReasonCounter(limit=500)
        self.examples: dict[int, TrialResult] = {}
        self.warnings: list[str] = []
        self.why = ""
        self.added = self.reused = 0

    def add(self, trial: TrialResult, warnings: Sequence[str]) -> None:
        self.added += 1
        self.reused += trial.reused
        self.warnings += warnings
        if all(trial.number != summary.number for summary in self.summaries):
            self.summaries.append(TrialSummary.of(trial))
        if trial.outcome in FAILED_OR_ERROR:
            if self.reasons.add(trial):
                self.examples[trial.number] = trial
        elif trial.outcome is not Outcome.PASSED and not self.why:
            self.why = headline_reason(trial)


class CaseBlocks:
    """Holds the trials of repeated cases until a case is complete."""

    def __init__(self, run: Run) -> None:
        self._planned = run.planned_trials
        self._criteria = {info.name: info.criteria for info in run.suites}
        self._kept: dict[CaseAddress, list[TrialSummary]] = {}
        for summary in run.summaries:
            self._kept.setdefault((summary.suite, summary.case_id), []).append(summary)
        self._open: dict[CaseAddress, CaseBlock] = {}

    def __contains__(self, trial: TrialResult) -> bool:
        """Whether the case of a trial is one that is repeated."""
        return (trial.suite, trial.case.id) in self._planned

    def add(self, trial: TrialResult, warnings: Sequence[str]) -> CaseBlock | None:
        """Take a trial; the block of its case if this was the last one."""
        address = (trial.suite, trial.case.id)
        kept = self._kept.get(address, ())
        block = self._open.setdefault(address, CaseBlock(*address, kept))
        block.add(trial, warnings)
        if block.added + len(kept) < self._planned[address]:
            return None
        return self._open.pop(address)

    def incomplete(self) -> list[CaseBlock]:
        """The blocks of cases that were not completed."""
        blocks, self._open = list(self._open.values()), {}
        return blocks

    def stored_block(self, trials: Sequence[TrialResult], warnings: WarningFilter) -> CaseBlock:
        """The block of a case of a run that is over, from those of its trials that are to be shown."""
        address = (trials[0].suite, trials[0].case.id)
        block = CaseBlock(*address, self._kept.get(address, ()))
        for trial in trials:
            block.add(trial, warnings.new_in(trial))
        return block

    def print(self, screen: Screen, block: CaseBlock, names: NameColumn) -> None:
        """The line of a case, with its distinct reasons and one example below if a trial went wrong."""
        outcome = case_outcome(block.summaries, self._criteria[block.address[0]])
        screen.line(*_line(block, outcome, self._planned.get(block.address, 0), names), hang=INDENT)
        facts = [*_facts(block), *(Fact("warning", warning, Outcome.ERROR) for warning in block.warnings)]
        if facts:
            print_facts(screen, facts, BRIEF)
            screen.line()


def _line(block: CaseBlock, outcome: Outcome, planned: int, names: NameColumn) -> list[Span]:
    counts = Counter(summary.outcome for summary in block.summaries)
    made = len(block.summaries)
    share = "" if outcome is Outcome.SKIPPED else share_text(outcome, counts)
    mean_ms = sum(summary.duration_ms for summary in block.summaries) / made
    spans = line_start(outcome, "/".join(block.address), mean_ms, names, share)
    separator = "  "
    for text, worst in _score_texts([row for summary in block.summaries for row in summary.scores]):
        spans += [separator, (text, "" if worst is Outcome.PASSED else STYLES[worst])]
        separator = ", "
    case = CaseVerdict(*block.address, outcome, made, counts[Outcome.PASSED], counts[Outcome.FAILED])
    if case.is_flaky:
        spans.append((f"  {flaky_text(case)}", "magenta"))
    if outcome in (Outcome.SKIPPED, Outcome.PENDING) and block.why:
        spans.append((f"  {block.why}", "dim"))
    if block.reused:
        spans.append((f"  ({block.reused} from an earlier run)", "dim"))
    if made < planned:
        spans.append((f"  ({made} of {plural(planned, 'trial')} made)", "dim"))
    return spans


def _score_texts(rows: Sequence[ScoreRow]) -> list[tuple[str, Outcome]]:
    """One short text per evaluator over all trials: the value where it is one, else the range."""
    groups: dict[str, list[ScoreRow]] = {}
    for row in rows:
        groups.setdefault(row.evaluator, []).append(row)
    return [_score_text(name, group) for name, group in groups.items()]


def _score_text(name: str, rows: Sequence[ScoreRow]) -> tuple[str, Outcome]:
    worst = min(rows, key=lambda row: row.outcome.rank)
    note = " (informs)" if worst.report_only else ""
    if len({(row.value, row.outcome) for row in rows}) == 1:
        return f"{name} {score_value(Score(name, worst.outcome, worst.value, worst.threshold))}{note}", worst.outcome
    values = [row.value for row in rows if row.value is not None]
    low, high = (f"{min(values):.2f}", f"{max(values):.2f}") if values else ("", "")
    told = worst.outcome.value if not values else low if low == high else f"{low}..{high}"
    bad = sum(row.outcome is worst.outcome for row in rows)
    share = f" ({bad} of {len(rows)} {worst.outcome.value})" if worst.outcome is not Outcome.PASSED else ""
    return f"{name} {told}{share}{note}", worst.outcome


def _facts(block: CaseBlock) -> list[Fact]:
    reasons = block.reasons.reasons()
    if not reasons:
        return []
    bad = sum(reason.trials for reason in reasons)
    example = f"trial {reasons[0].number}"
    facts = []
    if len(reasons) > 1:
        facts = [Fact(plural(one.trials, "time"), one.text, one.outcome) for one in reasons[:MAX_REASONS]]
        if more := len(reasons) - len(facts):
            facts.append(Fact("", f"and {plural(more, 'more reason')}"))
    elif bad > 1:
        others = "one" if bad == 2 else f"{bad - 1} trials"
        example += f"; the other {others} went wrong in the same way"
    if len(block.summaries) > 1:
        facts.append(Fact("example", example))
    return [*facts, *explain(block.examples[reasons[0].number], BRIEF)]
