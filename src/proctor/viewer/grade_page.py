"""The pages for grading: scores that need a person, one after another, and how well people and judges agree."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json
from proctor.reporting.html.environment import pretty
from proctor.reporting.html.trial_view import MAX_FAILING_TEXT, TrialView, trial_view
from proctor.reporting.wording import judge_title, trial_name
from proctor.results.agreement import JudgeAgreement, judge_agreement
from proctor.results.human_labels import HumanLabel, HumanLabels, ScorePlace, pairwise_agreement
from proctor.results.judge_usage import judge_name
from proctor.results.run import Run
from proctor.results.score import GRADED_BY, JUDGE_DETAIL, NO_SCORES, Outcome, Score
from proctor.results.trial import Trial
from proctor.running.review.grading import pending_score
from proctor.running.review.labelling import calibration_rows, label_score, score_place
from proctor.viewer.pages import Page, PageRoute, Visit, case_address, run_address
from proctor.viewer.sources import Source, latest_runs

QUEUES = {
    "waiting": "Needs grading",
    "second": "Second opinion",
    "judged": "Scored by a judge",
}
"""The queues of scores: those that need a grade, those that another person graded, those that a judge gave."""
MAX_COMMENT = 10_000
MAX_RUNS = 100
LIST_SECONDS = 1.0
"""How long the list of runs to grade may take."""


@dataclass(frozen=True, slots=True)
class GradingPosition:
    """Where a person is while grading: the queue, the name of the grader, and how many scores were skipped."""

    what: str = "waiting"
    who: str = ""
    skip: int = 0

    def address(self, run: str, **changes: object) -> str:
        pairs = {"what": self.what, "skip": self.skip, **changes}
        query = {name: value for name, value in pairs.items() if value and value != "waiting"}
        return f"{run_address(run)}/grade" + (f"?{urlencode(query)}" if query else "")


def read_position(fields: Mapping[str, str], who: str) -> GradingPosition:
    skip = fields.get("skip", "0")
    number = int(skip) if skip.isascii() and skip.isdecimal() and len(skip) < 8 else 0
    return GradingPosition(fields["what"] if fields.get("what") in QUEUES else "waiting", who.strip()[:100], number)


def grade_list_page(visit: Visit) -> Page:
    """The runs with scores that need grading or that a judge gave."""
    rows = []
    is_cut = False
    until = time.monotonic() + LIST_SECONDS
    for source, row in latest_runs(visit.sources, MAX_RUNS):
        if source.is_file:
            continue
        if time.monotonic() > until:
            is_cut = True
            break
        waiting, judged = (len(_queue(source, row, GradingPosition(what, ""))) for what in ("waiting", "judged"))
        if waiting or judged:
            rows.append((f"{run_address(row.id)}/grade", row.name or row.id, waiting, judged))
    return Page("grade_list.html", "Grade", {"rows": rows, "is_cut": is_cut})


def grade_page(visit: Visit) -> Page:
    source, row = visit.run()
    position = read_position(visit.query, visit.grader)
    if source.is_file:
        raise UsageError("grades are saved in a store; add this run to one with `proctor runs import`")
    queues = {what: _queue(source, row, GradingPosition(what, position.who)) for what in QUEUES}
    own = queues[position.what]
    tabs = [
        (title, len(queues[what]), position.address(row.id, what=what, skip=0), what == position.what)
        for what, title in QUEUES.items()
    ]
    address = own[position.skip] if position.skip < len(own) else None
    values = {
        "row": row,
        "run_address": run_address(row.id),
        "position": position,
        "tabs": tabs,
        "count": len(own),
        "start_again": position.address(row.id, skip=0),
        "item": None if address is None else _item(source, row, position, address, visit.token),
        **_agreement(source, row),
    }
    return Page("grade.html", f"Grade {row.name or row.id}", values)


def _queue(source: Source, row: Run, position: GradingPosition) -> list[tuple[int, int]]:
    """The scores that a person can go through: the number of the trial, and the place among its scores."""
    store = source.store
    with source.lock:
        if position.what == "waiting":
            return [(no, at) for no, at, _, _ in store.scores(row.no, outcome=Outcome.PENDING)]
        by_person = position.what == "second"
        scores = list(store.scores(row.no, detail=GRADED_BY if by_person else JUDGE_DETAIL))
    labelled: set[ScorePlace] = set()
    if scores:
        with HumanLabels(store.database_path) as labels:
            labelled = {label.place for label in labels.second_opinions(row.id) if label.who == position.who}
    is_queued = _is_graded_by_another if by_person else _is_judged
    return [
        (no, at)
        for no, at, address, score in scores
        if is_queued(score, position.who) and (*address, score.turn, score.evaluator) not in labelled
    ]


def _is_graded_by_another(score: Score, who: str) -> bool:
    return score.details.get(GRADED_BY) not in (None, who)


def _is_judged(score: Score, who: str) -> bool:
    judge = score.details.get(JUDGE_DETAIL)
    return isinstance(judge, Mapping) and judge.get("model") is not None and score.value is not None


@dataclass(frozen=True, slots=True)
class GradedItem:
    """A score to grade, with what a person needs to see, and the form."""

    name: str
    href: str
    evaluator: str
    turn: str
    criteria: str
    """What to look for. The reason that a judge gave is not shown: it could influence the grader."""
    pending_because: str
    material: Sequence[tuple[str, Sequence[str]]]
    """The suite's own criteria, rubric or steps, and the passages to grade against: a title and its texts."""
    texts: Sequence[tuple[str, str, str]]
    """CSS class, title and text of the input, the expected and the actual output."""
    view: TrialView
    """The whole trial without its scores, which could influence the grader."""
    fields: Mapping[str, str]
    """Hidden in the form."""
    later: str


def _item(source: Source, row: Run, position: GradingPosition, address: tuple[int, int], token: str) -> GradedItem:
    no, at = address
    with source.lock:
        trial = source.store.trial(no)
    score = trial.scores[at]
    item = pending_score(trial, score)
    texts = [("said user", "Input", item.question), ("wanted", "Expected", item.expected)]
    texts.append(("said agent", "Output", item.answer))
    criteria = item.criteria if item.criteria != score.reasoning or position.what == "waiting" else ""
    return GradedItem(
        name=trial_name(trial.case.id, trial.number),
        href=case_address(row.id, trial.suite, trial.case.id, trial.number),
        evaluator=score.evaluator,
        turn="" if score.turn is None else f" at turn {score.turn + 1}",
        criteria=criteria,
        pending_because="" if criteria and criteria in item.pending_because else item.pending_because,
        material=[(title, _entries(value)) for title, value in item.material.items()],
        texts=[
            (kind, title, pretty(value))
            for kind, title, value in texts
            if value is not UNSET and not (title == "Expected" and value is None)
        ],
        view=trial_view(replace(trial, scores=NO_SCORES), limit=MAX_FAILING_TEXT),
        fields={
            "token": token,
            "no": str(no),
            "at": str(at),
            "place": json.dumps(score_place(trial, at)),
            "what": position.what,
            "skip": str(position.skip),
        },
        later=position.address(row.id, skip=position.skip + 1),
    )


def _entries(value: Json) -> list[str]:
    """Passages or steps one by one; anything else as one text."""
    return [pretty(item) for item in value] if isinstance(value, list) else [pretty(value)]


def _agreement(source: Source, row: Run) -> dict[str, Any]:
    """How well people agree with each other, and each judge with people."""
    with HumanLabels(source.store.database_path) as labels:
        run_labels = labels.for_run(row.id)
    lines = [(f"{pair.first} and {pair.second}", pair.agreement) for pair in pairwise_agreement(run_labels)]
    lines += _judges(source, row, run_labels)
    return {
        "labels": len(run_labels),
        "people": ", ".join(sorted({label.who for label in run_labels})),
        "agreements": [(names, agreement_text(agreement)) for names, agreement in lines],
        "labels_address": f"{run_address(row.id)}/labels.jsonl",
    }


def agreement_text(agreement: JudgeAgreement) -> str:
    share = agreement.accuracy
    text = f"agree on {share.mean:.0%} of {agreement.count:,}"
    if agreement.kappa is not None:
        text += f"; kappa {agreement.kappa.value:.2f} [{agreement.kappa.low:.2f}, {agreement.kappa.high:.2f}]"
    return text


def _judges(source: Source, row: Run, human_labels: Sequence[HumanLabel]) -> list[tuple[str, JudgeAgreement]]:
    """The agreement of each judge with the labels that people gave its scores."""
    sides: dict[str, tuple[list[bool], list[bool]]] = {}
    with source.lock:
        keys = source.store.stored_trials(row.no)
        trials: dict[int, Trial] = {}
        for label in human_labels:
            key = keys.get(label.place[:3])
            if key is None:
                continue
            trial = trials.setdefault(key.no, source.store.trial(key.no))
            for at, score in enumerate(trial.scores):
                name = judge_name(score)
                if (
                    name
                    and GRADED_BY not in score.details
                    and score_place(trial, at) == label.place
                    and score.value is not None
                ):
                    verdicts, labels = sides.setdefault(f"{judge_title(name)} and people", ([], []))
                    verdicts.append(score.outcome is Outcome.PASSED)
                    labels.append(label.passed)
    return [(name, judge_agreement(*both)) for name, both in sides.items()]


def save_grade(source: Source, row: Run, form: Mapping[str, str]) -> str:
    """Save the grade in a form, and return the address of the next score."""
    if source.is_file:
        raise UsageError("grades are saved in a store; add this run to one with `proctor runs import`")
    position = read_position(form, form.get("who", ""))
    if not position.who:
        raise UsageError("a grade needs the name of the grader")
    if form.get("verdict") not in ("pass", "fail"):
        raise UsageError("a grade must be pass or fail")
    try:
        no, at = int(form["no"]), int(form["at"])
        suite, case, number, turn, evaluator = json.loads(form["place"])
    except (KeyError, ValueError, TypeError):
        raise UsageError("the form does not name a score; reload the page") from None
    comment = form.get("comment", "")[:MAX_COMMENT].strip()
    with source.lock:
        if no not in {key.no for _, key in source.store.iterate_stored_trials(row.no)}:
            raise UsageError("this score is not part of this run")
    label = HumanLabel((suite, case, number, turn, evaluator), form["verdict"] == "pass", comment, position.who)
    if label_score(source.folder, row.id, no, at, label):
        source.discard(row)
    return position.address(row.id)


def labels_text(source: Source, row: Run) -> str:
    return "".join(json.dumps(line) + "\n" for line in calibration_rows(source.folder, row.id))


PAGES = (
    PageRoute("/grade", grade_list_page, "Grade", menu_place=3),
    PageRoute("/runs/{run}/grade", grade_page, section="/grade"),
)
