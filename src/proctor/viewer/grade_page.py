"""What waits for a person, one after another, and how far people and judges agree."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from urllib.parse import urlencode

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.reporting.html.escaping import block, escape, inline, pretty
from proctor.reporting.html.trial_section import write_body
from proctor.reporting.wording import counted, trial_name
from proctor.results.agreement import JudgeAgreement, judge_agreement
from proctor.results.judge_usage import judge_name
from proctor.results.people_labels import Label, Labels, Place, agreement_of_people
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.store.text_columns import encode_text
from proctor.running.review.grading import GRADED_BY, waiting_score
from proctor.running.review.labelling import calibration_rows, label_score, place_of
from proctor.viewer.layout import case_address, page, run_address, sign, with_levels
from proctor.viewer.library import Library, Source, all_runs

QUEUES = {
    "waiting": "Waiting",
    "second": "Second opinion",
    "judged": "Judged by a model",
}
"""What a person can go through: scores that wait, those that another person gave, those that a judge gave."""
CONDITIONS = {
    "waiting": "s.outcome = 'pending'",
    "second": "json_extract(s.details, '$.graded_by') <> :who",
    "judged": "json_extract(s.details, '$.judge.model') IS NOT NULL AND s.value IS NOT NULL",
}
UNLABELLED = (
    " AND NOT EXISTS (SELECT 1 FROM store.labels l WHERE l.run = :id AND l.suite = t.suite AND l.case_id = t.case_id"
    " AND l.number = t.number AND l.turn IS s.turn AND l.evaluator = s.evaluator AND l.who = :who)"
)
LONGEST_COMMENT = 10_000
MOST_RUNS = 100
PATIENCE_SECONDS = 1.0
"""How long the list of runs to grade may take."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a person is: in which queue, under what name, how many were left for later."""

    what: str = "waiting"
    who: str = ""
    skip: int = 0

    def address(self, run: str, **changes: object) -> str:
        pairs = {"what": self.what, "skip": self.skip, **changes}
        given = {name: value for name, value in pairs.items() if value and value != "waiting"}
        return f"{run_address(run)}/grade" + (f"?{urlencode(given)}" if given else "")


def read_position(given: Mapping[str, str], who: str) -> Position:
    skip = given.get("skip", "0")
    number = int(skip) if skip.isascii() and skip.isdecimal() and len(skip) < 8 else 0
    return Position(given["what"] if given.get("what") in QUEUES else "waiting", who.strip()[:100], number)


def graded_runs_page(library: Library) -> str:
    """The runs in which something waits for a person, or that a person has graded."""
    out = StringIO()
    out.write('<h1 class="plain">Grade</h1>\n')
    rows = []
    until = time.monotonic() + PATIENCE_SECONDS
    for source, row in all_runs(library, MOST_RUNS):
        if source.is_file:
            continue
        if time.monotonic() > until:
            out.write('<p class="quiet">Earlier runs were not looked through: open one to grade it.</p>\n')
            break
        waiting, others = (_count(source, row, Position(what, "")) for what in ("waiting", "judged"))
        if waiting or others:
            told = (
                sign(Outcome.PENDING, f"{waiting:,} waiting") if waiting else '<span class="quiet">nothing waits</span>'
            )
            link = f'<a href="{run_address(row)}/grade">{inline(row.name or row.id)}</a>'
            rows.append(
                f'<tr data-item><th scope="row">{link}</th><td>{told}</td><td class="number">{others:,}</td></tr>\n'
            )
    if not rows:
        out.write('<p class="none">No score waits for a person, and none comes from a judge.</p>\n')
    else:
        out.write('<div class="scroll" role="region" aria-label="Runs" tabindex="0"><table class="list"><thead><tr>')
        out.write('<th scope="col">Run</th><th scope="col">For a person</th><th scope="col" class="number">Judged</th>')
        out.write(f"</tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table></div>\n")
    return page("Grade", out.getvalue(), here="/grade")


def grade_page(source: Source, row: Run, position: Position, token: str) -> str:
    if source.is_file:
        raise UsageError("grades are kept in a store: `proctor import` the file first")
    out = StringIO()
    out.write(
        f'<p class="crumbs"><a href="{run_address(row)}" data-up>{inline(row.name or row.id)}</a> / grade</p>\n'
        '<h1 class="plain">Grade</h1>\n<nav class="toggles" aria-label="What is graded">'
    )
    counts = {what: _count(source, row, Position(what, position.who)) for what in QUEUES}
    for what, title in QUEUES.items():
        current = ' aria-current="true"' if what == position.what else ""
        link = escape(position.address(row.id, what=what, skip=0))
        out.write(f'<a class="toggle" href="{link}"{current}>{title} {counts[what]:,}</a>')
    out.write("</nav>\n")
    found = _find(source, row, position)
    if found is None:
        left = " but what you left for later" if counts[position.what] else ""
        out.write(f'<p class="none" role="status">Nothing is left here{left}.</p>\n')
        if counts[position.what]:
            out.write(f'<p><a class="button" href="{escape(position.address(row.id, skip=0))}">Start again</a></p>\n')
        out.write('<div class="grading"><div></div><aside>')
    else:
        _write_item(source, row, position, found, counts[position.what], token, out)
    _write_agreement(source, row, out)
    out.write("</aside></div>\n")
    return page(f"Grade {row.name or row.id}", out.getvalue(), here="/grade")


def _query(position: Position, what: str) -> str:
    return (
        f"SELECT {what} FROM store.trials t JOIN store.scores s ON s.trial = t.no"  # noqa: S608  made of constants
        f" WHERE t.run = :run AND {CONDITIONS[position.what]}{UNLABELLED if position.what != 'waiting' else ''}"
    )


def _values(row: Run, position: Position) -> dict[str, object]:
    return {"run": row.no, "id": row.id, "who": encode_text(position.who)}


def _count(source: Source, row: Run, position: Position) -> int:
    found = source.index.named_rows(_query(position, "count(*)"), _values(row, position))
    return int(found[0][0])


def _find(source: Source, row: Run, position: Position) -> tuple[int, int] | None:
    """The trial and the place of the score that comes next."""
    query = f"{_query(position, 't.no, s.place')} ORDER BY t.position, s.place LIMIT 1 OFFSET :skip"
    found = source.index.named_rows(query, {**_values(row, position), "skip": position.skip})
    return (found[0][0], int(found[0][1])) if found else None


def _write_item(
    source: Source, row: Run, position: Position, found: tuple[int, int], count: int, token: str, out: StringIO
) -> None:
    no, at = found
    with source.lock:
        trial = source.store.trial(no)
    score = trial.scores[at]
    item = waiting_score(trial, score)
    turn = "" if score.turn is None else f" at turn {score.turn + 1}"
    link = escape(case_address(row.id, trial.suite, trial.case.id, trial.number))
    out.write(
        f'<p class="quiet" role="status">{position.skip + 1:,} of {count:,}</p>\n'
        '<div class="grading"><div class="card">'
        f'<h2><a href="{link}">{inline(trial_name(trial.case.id, trial.number), 200)}</a> '
        f"<small>{inline(score.evaluator)}{escape(turn)}</small></h2>\n"
    )
    if position.what == "waiting" and item.criteria:
        out.write(f'<h5 aria-level="3">Criteria</h5>\n<p class="reason">{inline(item.criteria, 4_000)}</p>\n')
    for title, value in (("Question", item.question), ("Expected", item.expected), ("Answer", item.answer)):
        if value is not UNSET and not (title == "Expected" and value is None):
            kind = {"Question": "said user", "Answer": "said agent"}.get(title, "wanted")
            out.write(f'<div class="{kind}"><h5 aria-level="3">{title}</h5>\n{block(pretty(value), 20_000)}</div>\n')
    out.write('<details class="whole"><summary>The whole trial</summary><div class="body">\n')
    body = StringIO()
    write_body(replace(trial, scores=()), body)  # a person should not be led by what others said
    out.write(with_levels(body.getvalue(), 3))
    out.write("</div></details></div>\n<aside>\n")
    _write_form(row, position, no, at, place_of(trial, at), token, out)


def _write_form(row: Run, position: Position, no: int, at: int, place: Place, token: str, out: StringIO) -> None:
    hidden = {
        "token": token,
        "no": no,
        "at": at,
        "place": json.dumps(place),
        "what": position.what,
        "skip": position.skip,
    }
    fields = "".join(f'<input type="hidden" name="{name}" value="{escape(str(v))}">' for name, v in hidden.items())
    later = escape(position.address(row.id, skip=position.skip + 1))
    out.write(
        f'<form method="post" action="{run_address(row)}/grade" class="card">{fields}\n'
        f'<label>Your name <input name="who" value="{escape(position.who)}" required maxlength="100"></label>\n'
        '<label>Comment <textarea name="comment" maxlength="10000"></textarea></label>\n'
        '<div class="verdicts"><button class="passed" name="verdict" value="pass">✓ Pass <kbd>p</kbd></button>'
        '<button class="failed" name="verdict" value="fail">✗ Fail <kbd>f</kbd></button></div>\n'
        f'<a class="later" href="{later}">Leave for later <kbd>n</kbd></a></form>\n'
    )


def _write_agreement(source: Source, row: Run, out: StringIO) -> None:
    """How far people agree with each other, and each judge with people."""
    with Labels(source.store.database_path) as labels:
        given = labels.of_run(row.id)
    if not given:
        return
    people = sorted({label.who for label in given})
    out.write(
        f'<div class="card"><h2>Labels</h2>\n<p>{counted(len(given), "label")} by {inline(", ".join(people), 300)}.</p>'
    )
    lines = [(f"{pair.first} and {pair.second}", pair.agreement) for pair in agreement_of_people(given)]
    lines += _judges(source, row, given)
    for names, agreement in lines:
        out.write(f'<p class="label">{inline(names)}</p><p>{escape(agreement_text(agreement))}</p>\n')
    link = f"{run_address(row)}/labels.jsonl"
    out.write(f'<p><a href="{link}" download>Rows for <code>proctor calibrate</code></a></p></div>\n')


def agreement_text(agreement: JudgeAgreement) -> str:
    share = agreement.accuracy
    text = f"agree on {share.mean:.0%} of {agreement.count:,}"
    if agreement.kappa is not None:
        text += f"; kappa {agreement.kappa.value:.2f} [{agreement.kappa.low:.2f}, {agreement.kappa.high:.2f}]"
    return text


def _judges(source: Source, row: Run, given: Sequence[Label]) -> list[tuple[str, JudgeAgreement]]:
    """Each judge against what people said of its scores."""
    sides: dict[str, tuple[list[bool], list[bool]]] = {}
    with source.lock:
        keys = source.store.trial_keys(row.no)
        trials: dict[int, TrialResult] = {}
        for label in given:
            key = keys.get(label.place[:3])
            if key is None:
                continue
            trial = trials.setdefault(key.no, source.store.trial(key.no))
            for at, score in enumerate(trial.scores):
                name = judge_name(score)
                if (
                    name
                    and GRADED_BY not in score.details
                    and place_of(trial, at) == label.place
                    and score.value is not None
                ):
                    verdicts, labels = sides.setdefault(f"{name} and people", ([], []))
                    verdicts.append(score.outcome is Outcome.PASSED)
                    labels.append(label.passed)
    return [(name, judge_agreement(*both)) for name, both in sides.items()]


def take_grade(source: Source, row: Run, form: Mapping[str, str]) -> str:
    """Keep what a form says; the address to go on at."""
    if source.is_file:
        raise UsageError("grades are kept in a store: `proctor import` the file first")
    position = read_position(form, form.get("who", ""))
    if not position.who:
        raise UsageError("a grade needs the name of the person who gives it")
    if form.get("verdict") not in ("pass", "fail"):
        raise UsageError("a grade is pass or fail")
    try:
        no, at = int(form["no"]), int(form["at"])
        suite, case, number, turn, evaluator = json.loads(form["place"])
    except (KeyError, ValueError, TypeError):
        raise UsageError("the form does not say which score it is about") from None
    comment = form.get("comment", "")[:LONGEST_COMMENT].strip()
    belongs = source.index.rows("SELECT 1 FROM store.trials WHERE no = ? AND run = ?", (no, row.no))
    if not belongs:
        raise UsageError("that score is not one of this run")
    label = Label((suite, case, number, turn, evaluator), form["verdict"] == "pass", comment, position.who)
    if label_score(source.folder, row.id, no, at, label):
        source.index.forget(row.no)
    return position.address(row.id)


def labels_text(source: Source, row: Run) -> str:
    return "".join(json.dumps(line) + "\n" for line in calibration_rows(source.folder, row.id))
