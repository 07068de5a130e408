"""`proctor quarantine`: run a case without counting its result, until a date."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.cases.formats.loading import load
from proctor.cases.quarantine_file import is_date, is_expired, quarantine_path, read_quarantines, write_quarantines
from proctor.cases.suite import Case, Quarantine, Suite
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.options import json_option
from proctor.cli.output import say, say_json
from proctor.running.selection import names_case, split_locations


@click.command(
    "quarantine",
    cls=DocumentedCommand,
    examples=(
        "proctor quarantine refund --reason 'waits for the new API' --until 2030-01-31",
        "proctor quarantine refund --lift",
    ),
)
@click.argument("case_id", metavar="[CASE]", required=False)
@click.argument("paths", nargs=-1, metavar="[SUITES]...")
@click.option("--reason", metavar="TEXT", help="Why it decides nothing for now.")
@click.option("--until", metavar="DATE", help="The last day, as YYYY-MM-DD; after it the case fails.")
@click.option("--owner", metavar="NAME", help="Who is to mend it.")
@click.option("--lift", is_flag=True, help="End the quarantine of the case.")
@json_option
def command(case_id: str | None, paths: tuple[str, ...], as_json: bool, **given: str | bool | None) -> int:
    """Quarantine a case of the suites in this folder, or of SUITES. Without CASE, list what is in quarantine.

    Kept in <suite>.quarantine.jsonl beside the suite. A case may also have a `quarantine` in its own file.
    """
    if case_id is None:
        return _list(load(paths or [Path()]), as_json)
    files, places = split_locations([case_id])
    suite, case = _find(load(paths or (files if places else [Path()])), case_id)
    if suite.path is None:
        raise UsageError(f"the suite {suite.name!r} has no file beside which the quarantine could stand")
    path = quarantine_path(suite.path)
    known = read_quarantines(path) if path.is_file() else {}
    key = (suite.name.removesuffix(f" ({suite.path.name})"), case.id)
    if given["lift"]:
        if key not in known:
            where = f"in {suite.path} itself" if case.quarantine else "nowhere"
            raise UsageError(f"{case.id!r} is quarantined {where}, so that there is nothing to lift in {path}")
        del known[key]
        write_quarantines(path, known)
        say(f"{path}: {case.id} decides again")
        return 0
    known[key] = _quarantine(given["reason"], given["until"], given["owner"])
    write_quarantines(path, known)
    say(f"{path}: {case.id} runs and decides nothing until {known[key].until}")
    return 0


def _quarantine(reason: object, until: object, owner: object) -> Quarantine:
    if not isinstance(reason, str) or not reason.strip():
        raise UsageError("--reason must say why the case decides nothing for now")
    if not isinstance(until, str) or not is_date(until):
        raise UsageError(f"--until must be a day as YYYY-MM-DD, not {until!r}")
    made = Quarantine(reason, until, owner if isinstance(owner, str) and owner.strip() else None)
    if is_expired(made):
        raise UsageError(f"--until {until} has passed already; today is {date.today().isoformat()}")
    return made


def _find(suites: list[Suite], wanted: str) -> tuple[Suite, Case]:
    """A case by its id, or by suite/id or file::id where several suites have one of that id."""
    found = [(s, case) for s in suites for case in s.cases if names_case(wanted, s.name, s.path, case.id)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{suite.name}/{case.id}" for suite, case in found)
        raise UsageError(f"{wanted!r} could be any of {names}")
    known = [case.id for suite in suites for case in suite.cases]
    raise UsageError(f"there is no case {wanted!r}{did_you_mean(wanted, known)}")


def _list(suites: list[Suite], as_json: bool) -> int:
    rows = [(suite.name, case.id, case.quarantine) for suite in suites for case in suite.cases if case.quarantine]
    if as_json:
        data = [
            {"suite": s, "case": c, "reason": q.reason, "until": q.until, "owner": q.owner, "over": is_expired(q)}
            for s, c, q in rows
        ]
        say_json("quarantine-row", data)
        return 0
    if not rows:
        say("no case is in quarantine")
    for suite, case, item in rows:
        over = "  OVER: it fails now" if is_expired(item) else ""
        owner = f"  owner {item.owner}" if item.owner else ""
        say(f"{suite}/{case}  until {item.until}{over}{owner}  {item.reason}")
    return 0
