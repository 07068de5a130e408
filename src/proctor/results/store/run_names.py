"""Finding a stored run by what a user types: its id, the beginning of one, its name, `last` or `last~1`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from proctor.base.errors import NotInStore, UsageError
from proctor.results.run import Run

LAST = "last"
STANDARD_INPUT = "-"
MAX_NAME = 100

_BACK = re.compile(r"(?P<base>.+)~(?P<steps>[0-9]{1,6})")
_FORBIDDEN = re.compile(r"[~@/\\\x00-\x1f\x7f]")


def find_run(runs: Callable[[int | None], Sequence[Run]], name: str, place: str) -> Run:
    """The run that `name` refers to. `runs` returns the latest runs first and takes how many are needed.

    `last~1` is the run before the last one, and `nightly~1` the second to last of those named nightly.
    """
    match = _BACK.fullmatch(name)
    base, steps = (match["base"], int(match["steps"])) if match else (name, 0)
    known = list(runs(steps + 1 if base == LAST else None))
    if base == LAST:
        return _nth(known, steps, name, "", place)
    exact = [run for run in known if run.id == name]
    named = [run for run in known if base and run.name == base]
    matches = exact or named[steps : steps + 1] or [run for run in known if name and run.id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise NotInStore(f"{name!r} is ambiguous: it could be any of {', '.join(run.id for run in matches[:5])}")
    if named:
        return _nth(named, steps, name, f" named {base!r}", place)
    latest = f"; the latest is {known[0].id}" if known else ""
    raise NotInStore(f"no run {name!r} in {place}{latest}")


def validate_run_name(name: str) -> str:
    """The name, if it is valid for a run; raises `UsageError` if it could be confused with something else."""
    wrong = ""
    if not name.strip() or len(name) > MAX_NAME:
        wrong = f"must have 1 to {MAX_NAME} characters"
    elif name != name.strip() or name == LAST or name.startswith("-") or _FORBIDDEN.search(name):
        wrong = "cannot be 'last', start with - or a space, or contain ~ @ / or \\"
    if wrong:
        raise UsageError(f"the run name {name!r} {wrong}")
    return name


def _nth(runs: Sequence[Run], steps: int, name: str, named: str, place: str) -> Run:
    if steps < len(runs):
        return runs[steps]
    count = "no run" if not runs else "only 1 run" if len(runs) == 1 else f"only {len(runs)} runs"
    raise NotInStore(f"no run {name!r} in {place}: there {'are' if len(runs) > 1 else 'is'} {count}{named}")
