"""`proctor quarantine`: run a case without letting it affect the verdict, until a date."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.cases.quarantine_file import is_date, is_expired, quarantine_path, read_quarantines, write_quarantines
from proctor.cases.suite import Case, Quarantine, Suite
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.options import json_option
from proctor.cli.output import say, say_json
from proctor.cli.suites import load_suites
from proctor.running.selection import names_case, split_locations


@click.command(
    "quarantine",
    cls=DocumentedCommand,
    examples=(
        "proctor quarantine refund --reason 'waits for the new API' --until 2030-01-31",
        "proctor quarantine refund --remove",
    ),
)
@click.argument("case_id", metavar="[CASE]", required=False)
@click.argument("paths", nargs=-1, metavar="[SUITES]...")
@click.option("--reason", metavar="TEXT", help="Why the case is quarantined (required).")
@click.option(
    "--until", metavar="DATE", help="Last day of the quarantine, as YYYY-MM-DD (required); after it, the suite fails."
)
@click.option("--owner", metavar="NAME", help="Who will fix the case.")
@click.option("--remove", is_flag=True, help="Remove the quarantine of the case.")
@click.option("--lift", is_flag=True, hidden=True, help="The old name of --remove.")
@json_option
def command(case_id: str | None, paths: tuple[str, ...], as_json: bool, **options: str | bool | None) -> int:
    """Quarantine CASE: it still runs and is reported, but does not affect the verdict. Without CASE, list quarantines.

    CASE is an id, suite/id or file::id, in SUITES (default: the suites in this folder). Quarantines are stored in
    <suite>.quarantine.jsonl next to the suite; a suite can also have a `quarantine` key in a case.
    """
    if case_id is None:
        return _list(load_suites(paths or [Path()]), as_json)
    files, places = split_locations([case_id])
    suite, case = _find(load_suites(paths or (files if places else [Path()])), case_id)
    if suite.path is None:
        raise UsageError(f"the suite {suite.name!r} is not in a file, so its cases cannot be quarantined")
    path = quarantine_path(suite.path)
    known = read_quarantines(path) if path.is_file() else {}
    key = (suite.name.removesuffix(f" ({suite.path.name})"), case.id)
    if options["lift"]:
        say("note: `--lift` is now `--remove`", err=True)
    if options["remove"] or options["lift"]:
        if key not in known:
            if case.quarantine:
                raise UsageError(f"{case.id!r} is quarantined in {suite.path} itself; remove the key there")
            raise UsageError(f"{case.id!r} is not quarantined")
        del known[key]
        write_quarantines(path, known)
        say(f"{path}: {case.id}: quarantine removed")
        return 0
    known[key] = _quarantine(options["reason"], options["until"], options["owner"])
    write_quarantines(path, known)
    say(f"{path}: {case.id}: quarantined until {known[key].until}")
    return 0


def _quarantine(reason: object, until: object, owner: object) -> Quarantine:
    if not isinstance(reason, str) or not reason.strip():
        raise UsageError("--reason is required: say why the case is quarantined")
    if not isinstance(until, str) or not is_date(until):
        raise UsageError(f"--until must be a date as YYYY-MM-DD, not {until!r}")
    quarantine = Quarantine(reason, until, owner if isinstance(owner, str) and owner.strip() else None)
    if is_expired(quarantine):
        raise UsageError(f"--until {until} is in the past; today is {date.today().isoformat()}")
    return quarantine


def _find(suites: list[Suite], name: str) -> tuple[Suite, Case]:
    """A case by its id, or by suite/id or file::id if several suites have this id."""
    matches = [(s, case) for s in suites for case in s.cases if names_case(name, s.name, s.path, case.id)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(f"{suite.name}/{case.id}" for suite, case in matches)
        raise UsageError(f"several cases are called {name!r}; name one of {names}")
    known = [case.id for suite in suites for case in suite.cases]
    raise UsageError(f"no case {name!r}{did_you_mean(name, known)}")


def _list(suites: list[Suite], as_json: bool) -> int:
    rows = [(suite.name, case.id, case.quarantine) for suite in suites for case in suite.cases if case.quarantine]
    if as_json:
        data = [
            {
                "suite": s,
                "case": c,
                "reason": q.reason,
                "until": q.until,
                "owner": q.owner,
                "expired": is_expired(q),
                "over": is_expired(q),
            }
            for s, c, q in rows
        ]
        say_json("quarantine-row", data)
        return 0
    if not rows:
        say("no case is quarantined")
    for suite, case, item in rows:
        expired = "  EXPIRED: fails the suite" if is_expired(item) else ""
        owner = f"  owner {item.owner}" if item.owner else ""
        say(f"{suite}/{case}  until {item.until}{expired}{owner}  {item.reason}")
    return 0
