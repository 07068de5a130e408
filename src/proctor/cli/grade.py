"""`proctor grade RUN`: the scores that only a person or an agent can give."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import click

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.cli.configuration import read_configuration
from proctor.cli.options_and_output import json_option, say, store_option
from proctor.reporting.explain import Fact, as_text, shorten, shown
from proctor.reporting.terminal.screen import is_terminal, one_line, visible
from proctor.reporting.wording import counted
from proctor.running.people.grading import (
    BadGrade,
    Grade,
    Gradebook,
    Row,
    Waiting,
    look_at,
    open_gradebook,
    parse_rows,
    read_grades,
    read_score,
    row_of,
)

MOST_SHOWN = 4_000
"""How many characters of a question or an answer stand on the terminal; `--json` has all."""

QUIT = object()
"""The person has had enough."""


@click.command("grade")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("--from", "source", metavar="FILE", help="Take grades from a JSON or JSON Lines file, or - for input.")
@click.option("--grader", metavar="NAME", help="Who grades, where a row does not say (default: your user name).")
@json_option
@store_option
def command(run_id: str, source: str | None, grader: str | None, as_json: bool, store: str | None) -> int:
    """Grade what waits for a verdict in RUN: its id, the beginning of one, or `last`.

    On a terminal, each answer is shown and asked about; every grade is kept at once. Elsewhere, and with --json, what
    waits is only listed. The rows of --json, with score and reasoning filled in, are what --from takes.
    Exits as `proctor test` does once something could be graded, and 0 after a mere look.
    """
    if as_json and source is not None:
        raise UsageError("--json lists what waits and --from grades it; use one of them")
    folder = read_configuration().store(store)
    who = (grader or "").strip() or _user()
    if source is not None:
        with open_gradebook(folder, run_id) as book:
            grades = read_grades(_rows(source), book, who)
            book.record(grades)
            return _conclude(book, len(grades))
    if as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        return _list(look_at(folder, run_id), as_json)
    with open_gradebook(folder, run_id) as book:
        return _conclude(book, _ask_all(book, who)) if book.waiting else _list(book, as_json)


def _rows(source: str) -> list[Row]:
    if source != "-":
        try:
            text = Path(source).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise UsageError(f"{source} cannot be read: {error.strerror or error}") from None
        except ValueError:
            raise UsageError(f"{source} is not UTF-8 text") from None
        return parse_rows(text, source)
    return parse_rows(sys.stdin.read(), "input")


def _list(book: Gradebook, as_json: bool) -> int:
    if as_json:
        say(json.dumps([row_of(item) for item in book.waiting], indent=2))
        return 0
    for item in book.waiting:
        say(f"{_title(item)}\n{_described(item)}\n")
    many = counted(len(book.waiting), "score waits", "scores wait")
    say(f"{many} for a grade in run {book.run.id}" if book.waiting else f"nothing waits for a grade in {book.run.id}")
    return 0


def _ask_all(book: Gradebook, grader: str) -> int:
    """Asks about one after the other until all are graded or the person has had enough; returns how many were."""
    waiting = list(book.waiting)
    say("Score each answer from 0 to 1, or pass or fail; nothing leaves it for later, q ends.\n")
    done = 0
    for number, item in enumerate(waiting, 1):
        say(f"{number} of {len(waiting)}  {_title(item)}\n{_described(item)}")
        score = _asked(f"score (passes from {item.threshold:g}): ", read_score)
        if score is QUIT:
            break
        if isinstance(score, float):
            reasoning = _asked("reason: ", str)
            book.record([Grade(item.address, score, reasoning if isinstance(reasoning, str) else "", grader)])
            done += 1
            if reasoning is QUIT:
                break
        say("")
    return done


def _asked(prompt: str, read: Callable[[str], object]) -> object:
    """What the person answers, `None` for nothing, `QUIT` for q or the end of the input; asks again if it must."""
    while True:
        sys.stdout.write(prompt)
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


def _conclude(book: Gradebook, done: int) -> int:
    verdict = book.verdict()
    left = counted(len(book.waiting), "score still waits", "scores still wait") if book.waiting else "nothing waits"
    say(f"{counted(done, 'score')} graded, {left}")
    say(f"{verdict.outcome.value}: {verdict.reason}")
    return verdict.exit_code


def _title(item: Waiting) -> str:
    at = item.address
    trial = "" if at.trial == 1 else f" #{at.trial}"
    turn = "" if at.turn is None else f" at turn {at.turn + 1}"
    return one_line(f"{at.suite}/{at.case}{trial}{turn}  {at.evaluator}")


def _described(item: Waiting) -> str:
    facts = [Fact("  criteria", item.criteria), Fact("  input", shown(item.question))]
    if item.expected is not UNSET:
        facts.append(Fact("  expected", shown(item.expected)))
    facts.append(Fact("  answer", shown(item.answer) or "(an empty answer)"))
    return visible(as_text([Fact(fact.label, shorten(fact.text, MOST_SHOWN)) for fact in facts]))


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
