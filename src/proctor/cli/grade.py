"""`proctor grade RUN`: grade scores that need a person. Also the prompts that other commands use to ask people."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.options import json_option, store_option
from proctor.cli.output import say, say_json
from proctor.cli.selection import CaseSelection, case_selection, run_argument
from proctor.config import read_configuration
from proctor.reporting.explain import Fact, as_text, shorten, value_text
from proctor.reporting.terminal.screen import escape_control, escape_line, is_terminal
from proctor.reporting.wording import plural
from proctor.running.review.grading import (
    BadGrade,
    FileRow,
    Grade,
    Gradebook,
    PendingScore,
    grading_row,
    open_gradebook,
    parse_rows,
    read_gradebook,
    read_grades,
    read_score,
)
from proctor.running.review.labelling import calibration_rows
from proctor.running.selection import check_names, names_case


@click.command(
    "grade",
    cls=DocumentedCommand,
    examples=("proctor grade last", "proctor grade last --json", "proctor grade last --from grades.json"),
)
@run_argument
@click.option(
    "--from", "source", metavar="FILE", help="Read grades from a JSON or JSON Lines file; - is standard input."
)
@click.option("--grader", metavar="NAME", help="Who grades, for rows without a name (default: your user name).")
@click.option(
    "--labels", is_flag=True, help="Print people's labels of the run's scores, as rows for `proctor calibrate`."
)
@case_selection(words=False, tags=False, verb="Grade")
@json_option
@store_option
def command(
    run_id: str,
    source: str | None,
    grader: str | None,
    labels: bool,
    selection: CaseSelection,
    as_json: bool,
    store: str | None,
) -> int:
    """Grade the scores of RUN that need a person. RUN is an id, the beginning of one, a name, last or last~1.

    On a terminal, each answer is shown and you type a score; every grade is stored immediately. Elsewhere, and with
    --json, the scores are only listed. --from reads the rows of --json with `score` and `reasoning` filled in.

    Exits like `proctor test` after grading, and with 0 after listing.
    """
    case_ids = selection.ids
    if as_json and source is not None:
        raise UsageError("--json lists ungraded scores and --from grades them; use one of them")
    if case_ids and source is not None:
        raise UsageError("--from already names the cases; remove --case")
    folder = read_configuration().store(store)
    if labels:
        if as_json or source is not None:
            raise UsageError("--labels cannot be combined with --json or --from")
        return _print_labels(folder, run_id)
    who = reviewer_name(grader)
    if source is not None:
        with open_gradebook(folder, run_id) as book:
            grades = read_grades(read_rows(source), book, who)
            book.record(grades)
            return _conclude(book, len(grades))
    if as_json or not is_interactive():
        return _list(read_gradebook(folder, run_id), case_ids, as_json)
    with open_gradebook(folder, run_id) as book:
        waiting = _select_scores(book, case_ids)
        return _conclude(book, _ask_all(book, waiting, who)) if waiting else _list(book, case_ids, as_json)


def _print_labels(folder: Path, run_id: str) -> int:
    rows = list(calibration_rows(folder, run_id))
    if not rows:
        raise UsageError(f"no score of {run_id} has a label; add labels in `proctor view` or with `proctor grade`")
    for row in rows:
        say(json.dumps(row))
    return 0


def _select_scores(book: Gradebook, case_ids: tuple[str, ...]) -> list[PendingScore]:
    """The ungraded scores of the named cases, or of all."""
    paths = {info.name: info.path for info in book.run.suites}
    check_names(case_ids, ((item.suite, paths.get(item.suite), item.case_id) for item in book.run.summaries))
    return [
        item
        for item in book.pending
        if not case_ids
        or any(names_case(name, (at := item.address).suite, paths.get(at.suite), at.case) for name in case_ids)
    ]


def _list(book: Gradebook, case_ids: tuple[str, ...], as_json: bool) -> int:
    waiting = _select_scores(book, case_ids)
    if as_json:
        say_json("pending-row", [grading_row(item) for item in waiting])
        return 0
    for item in waiting:
        say(f"{_title(item)}\n{_score_text(item)}\n")
    many = plural(len(waiting), "score needs", "scores need")
    say(f"{many} grading in run {book.run.id}" if waiting else f"no score needs grading in run {book.run.id}")
    return 0


def _ask_all(book: Gradebook, waiting: list[PendingScore], grader: str) -> int:
    """Ask about the scores one by one until all are graded or the person quits; returns how many were graded."""
    say("Type a score from 0 to 1, or pass or fail. Enter skips, q quits.\n")
    done = 0
    for number, item in enumerate(waiting, 1):
        say(f"{number} of {len(waiting)}  {_title(item)}\n{_score_text(item)}")
        score = prompt(f"score (threshold {item.threshold:g}): ", read_score)
        if score is QUIT:
            break
        if isinstance(score, float):
            reasoning = prompt("reason: ", str)
            book.record([Grade(item.address, score, reasoning if isinstance(reasoning, str) else "", grader)])
            done += 1
            if reasoning is QUIT:
                break
        say("")
    return done


def _conclude(book: Gradebook, done: int) -> int:
    verdict = book.verdict()
    left = f"{plural(len(book.pending), 'score')} left" if book.pending else "none left"
    say(f"{plural(done, 'score')} graded, {left}")
    say(f"{verdict.word}: {verdict.reason}")
    return verdict.exit_code


def _title(item: PendingScore) -> str:
    at = item.address
    trial = "" if at.trial == 1 else f" #{at.trial}"
    turn = "" if at.turn is None else f" at turn {at.turn + 1}"
    return escape_line(f"{at.suite}/{at.case}{trial}{turn}  {at.evaluator}")


def _score_text(item: PendingScore) -> str:
    facts = [Fact("  criteria", item.criteria)]
    if item.pending_because and item.criteria not in item.pending_because:
        facts.append(Fact("  pending", item.pending_because))
    facts += [
        Fact(f"  {title.lower()}", "\n".join(map(value_text, value)) if isinstance(value, list) else value_text(value))
        for title, value in item.material.items()
    ]
    facts.append(Fact("  input", value_text(item.question)))
    if item.expected is not UNSET:
        facts.append(Fact("  expected", value_text(item.expected)))
    facts.append(Fact("  answer", value_text(item.answer) or "(an empty answer)"))
    return facts_text(facts)


MAX_TEXT = 4_000
"""How many characters of an input or an answer are shown on the terminal; `--json` has all."""

QUIT = object()
"""The person quits."""


def is_interactive() -> bool:
    """Whether standard input and output are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def prompt(question: str, read: Callable[[str], object]) -> object:
    """Ask a question and return the answer: `None` if it is empty, `QUIT` for q or the end of the input.

    Asks again if `read` raises `BadGrade`. With `read=str`, any text is an answer, even q.
    """
    while True:
        sys.stdout.write(question)
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            say("")
            return QUIT
        text = line.strip()
        if read is not str and text.lower() in ("q", "quit"):
            return QUIT
        if not text:
            return None
        try:
            return read(text)
        except BadGrade as problem:
            say(str(problem))


def read_rows(source: str) -> list[FileRow]:
    """The rows of a JSON or JSON Lines file, or of standard input for `-`."""
    if source == "-":
        return parse_rows(sys.stdin.read(), "standard input")
    try:
        text = Path(source).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{source} is not UTF-8 text") from None
    return parse_rows(text, source)


def facts_text(facts: Iterable[Fact]) -> str:
    """Facts in two columns, long texts shortened and control characters escaped."""
    return escape_control(as_text([Fact(fact.label, shorten(fact.text, MAX_TEXT)) for fact in facts]))


def reviewer_name(option: str | None) -> str:
    """The name on the command line, or the user name."""
    if option and option.strip():
        return option.strip()
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
