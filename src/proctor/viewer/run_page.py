"""The page of a run: verdict, changes since the run before, gate, agents, judges, and the cases with their scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from proctor.cases.identity import CaseAddress
from proctor.reporting.arms_report import arms_view
from proctor.reporting.explain import answer_text, input_text
from proctor.reporting.html.run_view import Dot, ScoreCell, agents_text, score_cells
from proctor.reporting.wording import OUTCOME_STYLES, duration, money, plural
from proctor.results.run import Run, RunStatus
from proctor.results.score import Outcome
from proctor.results.verdict import CaseVerdict, verdict_word
from proctor.viewer.cases import (
    CASES_PER_PAGE,
    GROUPS,
    LARGE_RUN,
    SORTS,
    CaseQuery,
    CaseRow,
    RunCases,
    RunTotals,
    changes,
    find_cases,
    read_query,
)
from proctor.viewer.events import live_address
from proctor.viewer.pages import (
    Page,
    PageRoute,
    Visit,
    arms_address,
    case_address,
    compare_address,
    run_address,
    suites_text,
)
from proctor.viewer.runs_page import cost_text, overall_pass_rate, run_progress, run_state, time_text
from proctor.viewer.sources import Source

MAX_ARM_ROWS = 20
"""Cases in the table of arms; the page of the arms has all."""

MAX_COLUMNS = 12
"""Maximum columns of evaluators; the page of a case shows all."""
MAX_DOTS = 12
MAX_SHORT_TEXT = 300
"""Characters of an input or answer in the table; what does not fit into its column is cut by the style sheet."""
FILTER_OUTCOMES = {"broken": Outcome.FAILED, "fixed": Outcome.PASSED, "flaky": Outcome.ERROR}
"""The outcome whose color a filter has that is not an outcome itself."""
QUICK_FILTERS = ("failed", "flaky", "error", "pending", "broken", "fixed", "passed")

EarlierCases = Mapping[CaseAddress, tuple[CaseVerdict, float]]


@dataclass(frozen=True, slots=True)
class Toggle:
    """A filter that is one click away."""

    name: str
    kind: str
    """The outcome whose color it has."""
    symbol: str
    count: int
    href: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class SelectField:
    """A drop-down list of a form."""

    label: str
    name: str
    options: Sequence[tuple[str, str]]
    value: str


@dataclass(frozen=True, slots=True)
class ListedCase:
    """A case in the table."""

    case: CaseVerdict
    href: str
    was: Outcome | None
    """Its outcome in the run before, if that was different."""
    dots: Sequence[Dot]
    more_dots: int
    cells: Sequence[ScoreCell | None]
    time: str
    cost: str
    input: str
    """The input, or the first of several, in short."""
    answer: str
    """The answer of the trial that reports show, in short."""


@dataclass(frozen=True, slots=True)
class CaseTable:
    """The cases of one page."""

    groups: Sequence[tuple[str, Sequence[ListedCase]]]
    evaluators: Sequence[str]
    more_evaluators: int
    has_repeats: bool
    has_costs: bool

    @property
    def width(self) -> int:
        return 4 + self.has_repeats + len(self.evaluators) + self.has_costs


def run_page(visit: Visit) -> Page:
    live = live_address(visit.sources, visit.path["run"])
    source, row = visit.run()
    query = read_query(visit.query)
    with source.lock:  # cached properties read the store when they are first used
        run = source.cases(row)
        earlier = next(iter(source.earlier_runs(row)), None)
        before = None if earlier is None else source.totals(earlier)
        words = source.store.cases_with_words(row.no, query.words) if query.words else None
        matches = find_cases(run, query, {} if before is None else before.cases, words)
        cases = matches[(query.page - 1) * CASES_PER_PAGE : query.page * CASES_PER_PAGE]
        is_complete = row.status is RunStatus.FINISHED and not row.interrupted
        changed = {} if before is None else changes(before, run.totals, is_complete=is_complete)
        values = {
            "row": row,
            "query": query,
            "head": _head(source, row, run),
            "earlier": earlier,
            "earlier_address": "" if earlier is None else run_address(earlier.id),
            "compare_address": "" if earlier is None else compare_address(earlier.id, row.id),
            "changed": ", ".join(f"{count:,} {name}" for name, count in changed.items() if count),
            "suites": _suites(run.totals, query),
            "toggles": list(_toggles(run.totals, changed, query)),
            "choices": _select_fields(query),
            "more_choices": _more_select_fields(run, query),
            "count": len(matches),
            "table": _table(row, cases, {} if before is None else before.cases, _texts(run, cases)),
            "page": query.page,
            "pages": -(-len(matches) // CASES_PER_PAGE),
            "previous_page": f"{query.address(page=query.page - 1)}#cases",
            "next_page": f"{query.address(page=query.page + 1)}#cases",
            # Computed here, while the lock is held.
            "gate": run.gate,
            "arms": arms_view(
                run.arm_tables if run.totals.trials <= LARGE_RUN else (),
                limit=MAX_ARM_ROWS,
                link=partial(case_address, row.id),
                href=arms_address(row.id),
            ),
            "arms_address": arms_address(row.id) if row.compares_agents else "",
            "judges": run.judges,
            "plots": run.plots,
        }
    outcome = row.stored_verdict.outcome if row.stored_verdict else Outcome.SKIPPED
    title = f"{row.name or row.id}: {suites_text(row.suites)}"
    is_live = row.status is not RunStatus.FINISHED and not source.is_file
    return Page("run.html", title, values, outcome=outcome, live=live if is_live else "")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of the page."""

    outcome: Outcome
    """Decides the color."""
    title: str
    symbol: str
    reason: str
    progress: object
    rate: object
    trials: int
    agents: str
    cost: str
    time: str
    pending: str
    """How many cases need grading, in words; empty if none can be graded here."""
    grade_address: str


def _head(source: Source, row: Run, run: RunCases) -> Head:
    state = run_state(row)
    is_over = row.stored_verdict is not None and not row.interrupted
    verdict = row.stored_verdict.outcome if is_over and row.stored_verdict is not None else None
    outcome = verdict or (Outcome.SKIPPED if state.is_running else Outcome.ERROR)
    pending = sum(item.outcomes[Outcome.PENDING] for item in run.totals.suites.values())
    return Head(
        outcome=outcome,
        title=verdict_word(verdict).capitalize() if verdict else state.word.capitalize(),
        symbol=OUTCOME_STYLES[verdict].symbol if verdict else "●" if state.is_running else "◼",
        reason=_reason(row),
        progress=None if row.status is RunStatus.FINISHED else run_progress(source, row),
        rate=overall_pass_rate(run.totals),
        trials=run.totals.trials,
        agents=agents_text(row.suites),
        cost=cost_text(run.totals),
        time=time_text(row),
        pending=plural(pending, "case") if pending and not source.is_file else "",
        grade_address=f"{run_address(row.id)}/grade",
    )


def _reason(row: Run) -> str:
    if row.status is RunStatus.RUNNING:
        return "Run in progress; this page updates."
    if row.status is RunStatus.DIED:
        return "The process ended early; finished trials are below."
    if row.stored_verdict is None or row.interrupted:
        return row.note or "The run was interrupted; finished trials are below."
    return row.stored_verdict.reason


def _suites(totals: RunTotals, query: CaseQuery) -> list[tuple[str, object]]:
    """The address and the totals of each suite, if there are several."""
    suites = totals.suites.values()
    return [(f"{query.address(suite=item.suite)}#cases", item) for item in suites] if len(suites) > 1 else []


def _toggles(totals: RunTotals, changed: Mapping[str, int], query: CaseQuery) -> Iterator[Toggle]:
    suites = totals.suites.values()
    counts = {outcome.value: sum(item.outcomes[outcome] for item in suites) for outcome in Outcome}
    counts |= {"flaky": sum(item.flaky for item in suites), **changed}
    yield Toggle("all", "", "", len(totals.cases), query.address(show=""), not query.show)
    for name in QUICK_FILTERS:
        if counts.get(name) or query.show == name:
            kind = FILTER_OUTCOMES.get(name) or Outcome(name)
            symbol = "≈" if name == "flaky" else OUTCOME_STYLES[kind].symbol
            yield Toggle(name, kind.value, symbol, counts.get(name, 0), query.address(show=name), query.show == name)


def _select_fields(query: CaseQuery) -> list[SelectField]:
    return [
        _select_field("Sort", "sort", [(name, words) for name, (words, _) in SORTS.items()], query.sort),
        _select_field("Group by", "group", list(GROUPS.items()), query.group),
    ]


def _more_select_fields(run: RunCases, query: CaseQuery) -> list[SelectField]:
    evaluators = [(name, f"{name} ({bad:,} not passed)") for name, bad in run.evaluators]
    choices = [_select_field("Failed evaluator", "evaluator", [("", "any"), *evaluators], query.evaluator)]
    if run.tags:
        tags = [(tag, f"{tag} ({count:,})") for tag, count in run.tags]
        choices.append(_select_field("Tag", "tag", [("", "any"), *tags], query.tag))
    if len(run.totals.suites) > 1:
        suites = [(name, name) for name in run.totals.suites]
        choices.append(_select_field("Suite", "suite", [("", "all"), *suites], query.suite))
    return choices


def _select_field(label: str, name: str, options: Sequence[tuple[str, str]], value: str) -> SelectField:
    """A drop-down list; the value in the address is one of its options, even if no case has it."""
    is_option = value in {option for option, _ in options}
    return SelectField(label, name, options if is_option else [*options, (value, value)], value)


Texts = Mapping[CaseAddress, tuple[str, str]]
"""By case: its input and its answer, in short."""


def _texts(run: RunCases, cases: Sequence[tuple[str, CaseRow]]) -> Texts:
    """The input and the answer of each listed case: of its first trial that did not pass, else of the first."""
    shown: dict[int, CaseAddress] = {}
    for _, case in cases:
        bad = (trial for trial in case.trials if trial.outcome is not Outcome.PASSED)
        shown[next(bad, case.trials[0]).position] = case.address
    texts: dict[CaseAddress, tuple[str, str]] = {}
    for trial in run.run.trials_of(set(shown.values())) if shown else ():
        if trial.position in shown:
            question = input_text(trial.case, trial.case.turns[0]) if trial.case.turns else ""
            answer = answer_text(trial.replies[-1]) if trial.replies else ""
            texts[shown[trial.position]] = question[:MAX_SHORT_TEXT], answer[:MAX_SHORT_TEXT]
    return texts


def _table(row: Run, cases: Sequence[tuple[str, CaseRow]], before: EarlierCases, texts: Texts) -> CaseTable:
    names = dict.fromkeys(score.evaluator for _, case in cases for trial in case.trials for score in trial.scores)
    evaluators = list(names)[:MAX_COLUMNS]
    groups = [
        (group, [_listed_case(row, case, before, evaluators, texts) for _, case in members])
        for group, members in groupby(cases, key=lambda item: item[0])
    ]
    return CaseTable(
        groups=groups,
        evaluators=evaluators,
        more_evaluators=len(names) - len(evaluators),
        has_repeats=any(len(case.trials) > 1 for _, case in cases),
        has_costs=any(case.mean_usd is not None for _, case in cases),
    )


def _listed_case(row: Run, case: CaseRow, before: EarlierCases, evaluators: Sequence[str], texts: Texts) -> ListedCase:
    question, answer = texts.get(case.address, ("", ""))
    suite, case_id = case.address
    was = before[case.address][0].outcome if case.address in before else None
    dots = [
        Dot(trial.number, trial.outcome, case_address(row.id, suite, case_id, trial.number))
        for trial in sorted(case.trials, key=lambda trial: trial.number)
    ]
    return ListedCase(
        case=case.verdict,
        href=case_address(row.id, suite, case_id),
        was=None if was is case.verdict.outcome else was,
        dots=dots[:MAX_DOTS],
        more_dots=max(0, len(dots) - MAX_DOTS),
        cells=score_cells(case.trials, evaluators),
        time=duration(case.mean_ms),
        cost="" if case.mean_usd is None else money(case.mean_usd),
        input=question,
        answer=answer,
    )


PAGES = (PageRoute("/runs/{run}", run_page),)
