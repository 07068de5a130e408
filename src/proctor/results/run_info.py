"""What is kept about a run as a whole: plan, verdict, name, and the state of the git repository it was made in."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from proctor.base.errors import StoreError, UsageError
from proctor.base.json_data import Json, plain
from proctor.base.records import record
from proctor.cases.suite import NOTHING, Criteria
from proctor.results.judge_calls import JudgeSummary
from proctor.results.run import QuarantinedCase, SuiteInfo

if TYPE_CHECKING:
    from proctor.results.verdict import RunVerdict

STATUS_SECONDS = 2.0
"""How long `git status` may take; in a repository where it takes longer, `dirty` stays unknown."""
MOST_BYTES = 10_000_000
"""A file of references that is larger is not read."""


@record
class GitState:
    """What the repository looked like when a run began."""

    commit: str | None = None
    """`None` before the first commit."""
    branch: str | None = None
    """`None` where a commit is checked out by itself."""
    dirty: bool | None = None
    """Whether files that git tracks differ from the commit; `None` where git is missing or took too long."""


def git_state(folder: Path) -> GitState | None:
    """Commit and branch, read from git's own files, which takes no process; `None` outside of a repository."""
    try:
        found = _git_folder(folder)
        return None if found is None else _head(found)
    except (OSError, ValueError):
        return None


class DirtyCheck:
    """Asks git in a thread whether files were changed, so that a run does not wait for it."""

    def __init__(self, folder: Path, state: GitState | None) -> None:
        self._folder = folder
        self._state = state
        self._thread: threading.Thread | None = None
        if state is not None:
            self._thread = threading.Thread(target=self._ask, name="proctor-git-status", daemon=True)
            self._thread.start()

    def result(self) -> GitState | None:
        if self._thread is not None:
            self._thread.join(STATUS_SECONDS + 1)
        return self._state

    def _ask(self) -> None:
        dirty = _is_dirty(self._folder)
        if self._state is not None:
            self._state = replace(self._state, dirty=dirty)


def _is_dirty(folder: Path) -> bool | None:
    import subprocess

    # A file watcher that the repository's own settings name would be a program to run: none is.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain"]
    try:
        done = subprocess.run(
            [*command, "--untracked-files=no"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=STATUS_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return bool(done.stdout.strip()) if done.returncode == 0 else None


def _git_folder(folder: Path) -> Path | None:
    """Where git keeps the repository that `folder` is in; a worktree has a file there that says where."""
    if "GIT_DIR" in os.environ:
        return Path(os.environ["GIT_DIR"])
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir():
            return git
        if git.is_file():
            said = _read(git).partition("gitdir:")[2].strip()
            return place / said if said else None
    return None


def _head(git: Path) -> GitState | None:
    said = _read(git / "HEAD").strip()
    if not said.startswith("ref:"):
        return GitState(_checked(said)) if _checked(said) else None
    reference = said.removeprefix("ref:").strip()
    branch = reference.removeprefix("refs/heads/")
    shared = git / _read(git / "commondir").strip() if (git / "commondir").is_file() else git
    return GitState(_commit(git, shared, reference), branch)


def _commit(git: Path, shared: Path, reference: str) -> str | None:
    """The commit of a branch: in a file of its own, or in the one for branches that rarely move."""
    for folder in (git, shared):
        if (folder / reference).is_file():
            return _checked(_read(folder / reference).strip())
    packed = shared / "packed-refs"
    for line in _read(packed).splitlines() if packed.is_file() else ():
        commit, _, name = line.partition(" ")
        if name == reference:
            return _checked(commit)
    return None


def _checked(commit: str) -> str | None:
    return commit if len(commit) >= 40 and all(digit in "0123456789abcdef" for digit in commit) else None


def _read(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is too large for a file of git's own")
    return path.read_text(encoding="utf-8", errors="replace")


T = TypeVar("T")


@record
class KeptVerdict:
    """What a run came to, as `proctor runs` shows it without reading any trial."""

    outcome: str
    reason: str = ""
    exit_code: int | None = None


@record
class RunInfo:
    """Everything about a run that is neither a trial nor a column."""

    suites: tuple[SuiteInfo, ...] = ()
    options: Mapping[str, Json] = NOTHING
    planned: int | None = None
    """Trials, repeats included."""
    scoring: str | None = None
    """The key of evaluators and criteria: scores of a run with another key cannot be kept when it is resumed."""
    verdict: KeptVerdict | None = None
    counts: Mapping[str, int] | None = None
    """Trials by outcome."""
    note: str = ""
    environment: Mapping[str, str] = NOTHING
    judges: tuple[JudgeSummary, ...] | None = None
    """`None` for a run that was cut off before they were added up."""
    uncounted: str = ""
    rescored: str | None = None
    """The id of the run whose answers were scored anew."""
    git: GitState | None = None
    evaluator_keys: Mapping[str, Mapping[str, str]] = NOTHING
    """By suite and case: what its outcome rests on; the case "" stands for all that are not listed."""
    gate: Mapping[str, Json] | None = None
    """What `--gate` found, as `proctor.results.gate_outcome` writes it."""
    more: Mapping[str, Json] = NOTHING
    """Whatever else is kept of the run, under keys of its own; what a newer program wrote is written back."""

    def judged(self, verdict: RunVerdict) -> RunInfo:
        """The same with what the run came to."""
        kept = KeptVerdict(verdict.outcome.value, verdict.reason, verdict.exit_code)
        counts = {outcome.value: count for outcome, count in verdict.counts.items()}
        return replace(self, verdict=kept, counts=counts)


@record
class RunRow:
    """A run as the store lists it."""

    no: int
    id: str
    started_at: float
    finished_at: float | None
    status: str
    """`running`, `finished` or `interrupted`."""
    plan: str
    """The fingerprint of what was to be run."""
    info: RunInfo
    name: str = ""
    """What the user calls the run."""


def run_info_to_json(info: RunInfo) -> dict[str, Json]:
    """What differs from its default; `more` stands beside the rest."""
    names = (field for field in fields(info) if field.name != "more")
    given = ((field.name, getattr(info, field.name), field.default) for field in names)
    return {
        **info.more,
        **{name: plain(value) for name, value, default in given if value is not default and value != default},
    }


def run_info_from_json(data: Mapping[str, Json]) -> RunInfo:
    """What `run_info_to_json` wrote, in this version or an earlier one."""
    own = _names(RunInfo) - {"more"}
    known = {name: value for name, value in data.items() if name in own}
    more = {name: value for name, value in data.items() if name not in known}
    if "suites" in known:
        known["suites"] = tuple(suite_info(suite) for suite in known["suites"])
    if known.get("judges") is not None:
        known["judges"] = tuple(known_fields(JudgeSummary, judge) for judge in known["judges"])
    for name, made in (("verdict", KeptVerdict), ("git", GitState)):
        if known.get(name) is not None:
            known[name] = known_fields(made, known[name])
    return RunInfo(**known, more=more or NOTHING)


def suite_info(data: Mapping[str, Json]) -> SuiteInfo:
    """A suite of a run out of plain data."""
    quarantined = tuple(known_fields(QuarantinedCase, item) for item in data.get("quarantined", ()))
    criteria = known_fields(Criteria, data["criteria"])
    return known_fields(SuiteInfo, {**data, "criteria": criteria, "quarantined": quarantined})


def known_fields(made: Callable[..., T], data: Mapping[str, Any]) -> T:
    """A record of what is known to it; the rest is from a newer program."""
    names = _names(made)
    return made(**{name: value for name, value in data.items() if name in names})


def _names(made: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(made))


LAST = "last"
STANDARD_INPUT = "-"
LONGEST_NAME = 100

_BACK = re.compile(r"(?P<base>.+)~(?P<steps>[0-9]{1,6})")
_FORBIDDEN = re.compile(r"[~@/\\\x00-\x1f\x7f]")


def find_run(runs: Callable[[int | None], Sequence[RunRow]], wanted: str, place: str) -> RunRow:
    """The run called `wanted` among `runs`, which gives the latest first and takes how many are needed.

    `last~1` is the run before the last one, and `nightly~1` the last but one of those named nightly.
    """
    match = _BACK.fullmatch(wanted)
    base, steps = (match["base"], int(match["steps"])) if match else (wanted, 0)
    known = list(runs(steps + 1 if base == LAST else None))
    if base == LAST:
        return _nth(known, steps, wanted, "", place)
    exact = [run for run in known if run.id == wanted]
    named = [run for run in known if base and run.name == base]
    found = exact or named[steps : steps + 1] or [run for run in known if wanted and run.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise StoreError(f"{wanted!r} could be any of {', '.join(run.id for run in found[:5])}")
    if named:
        return _nth(named, steps, wanted, f" named {base!r}", place)
    latest = f"; the latest is {known[0].id}" if known else ""
    raise StoreError(f"no run {wanted!r} in {place}{latest}")


def check_name(name: str) -> str:
    """A name that a run may be given; one that could be taken for something else is refused."""
    wrong = ""
    if not name.strip() or len(name) > LONGEST_NAME:
        wrong = f"must have 1 to {LONGEST_NAME} characters"
    elif name != name.strip() or name == LAST or name.startswith("-") or _FORBIDDEN.search(name):
        wrong = "may not be 'last', begin with - or a space, or have ~ @ / or \\ in it: it would be taken for another"
    if wrong:
        raise UsageError(f"the name {name!r} of a run {wrong}")
    return name


def _nth(runs: Sequence[RunRow], steps: int, wanted: str, named: str, place: str) -> RunRow:
    if steps < len(runs):
        return runs[steps]
    count = "no run" if not runs else "only 1 run" if len(runs) == 1 else f"only {len(runs)} runs"
    raise StoreError(f"no run {wanted!r} in {place}: there {'are' if len(runs) > 1 else 'is'} {count}{named}")
