"""Which cases run: by an expression, by tags, by ids, or those that failed last time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.base.masking import is_masked, mask
from proctor.cases.suite import Case, Suite
from proctor.results.score import Outcome
from proctor.results.store.store import Store

Predicate = Callable[[str], bool]

MAX_NESTING = 100
"""How many parentheses or negations an expression may have, so that parsing cannot exhaust the stack."""


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Selects the cases that meet every condition."""

    matches: Predicate | None = None
    """The parsed `-k` expression."""
    tags: frozenset[str] = frozenset()
    """A case must have one of them."""
    addresses: frozenset[tuple[str, str]] | None = None
    """(suite, case id) pairs; `None` selects all."""
    ids: tuple[str, ...] = ()
    """From `--case`: a case must have one of these names."""
    locations: tuple[str, ...] = ()
    """From `suite.yaml::case-id`: of these files, only these cases."""
    suites: frozenset[str] = frozenset()
    """Names of suites; a case must be in one of them."""

    def __call__(self, suite: Suite, case: Case) -> bool:
        if self.suites and suite.name not in self.suites:
            return False
        if self.ids and not any(names_case(name, suite.name, suite.path, case.id) for name in self.ids):
            return False
        if self.locations and not self._is_at_location(suite, case):
            return False
        if self.addresses is not None and (suite.name, case.id) not in self.addresses:
            return False
        if self.tags and not self.tags & set(case.tags):
            return False
        text = " ".join((f"{suite.name}/{case.id}", case.description, *case.tags))
        return self.matches is None or self.matches(text.casefold())

    def _is_at_location(self, suite: Suite, case: Case) -> bool:
        in_file = [location for location in self.locations if _is_file_of(location.partition("::")[0], suite.path)]
        return not in_file or any(names_case(location, suite.name, suite.path, case.id) for location in in_file)


def split_locations(paths: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The files to read, each once, and the paths that name one case of a file: `suite.yaml::case-id`."""
    files: dict[str, None] = {}
    locations: list[str] = []
    for path in paths:
        file, sign, case_id = path.partition("::")
        if not sign or Path(path).exists():
            files[path] = None
        elif not file or not case_id.strip():
            raise UsageError(f"{path!r}: write a file and a case id, such as suite.yaml::case-id")
        else:
            files.setdefault(file)
            locations.append(path)
    whole = {path for path in files if path in paths}
    return list(files), tuple(location for location in locations if location.partition("::")[0] not in whole)


def check_names(names: Sequence[str], cases: Iterable[tuple[str, Path | str | None, str]]) -> None:
    """Raise `UsageError` for a name that no case has, suggesting a similar one; cases are (suite, file, id)."""
    candidates = list(cases)
    for name in names:
        if not any(names_case(name, *case) for case in candidates):
            case_id = name.partition("::")[2] or name
            suggestion = did_you_mean(case_id, [case[2] for case in candidates]) or did_you_mean(
                name, [f"{c[0]}/{c[2]}" for c in candidates]
            )
            raise UsageError(f"no case {name!r}{suggestion}")


def names_case(name: str, suite: str, path: Path | str | None, case_id: str) -> bool:
    """Whether `name` means this case: by its id, by `suite/id` or by `file::id`; `*` in the first two is any text.

    Secrets in ids are masked. Such a case is also found by its id as the file has it, which then means all cases that
    are masked alike.
    """
    if _is_name_of(name, suite, path, case_id):
        return True
    masked = mask(name) if is_masked(case_id) else name
    return masked != name and _is_name_of(masked, suite, path, _NUMBER.sub("", case_id))


_NUMBER = re.compile(r" #[0-9]+\Z")
"""What tells ids apart that are masked alike."""


def _is_name_of(name: str, suite: str, path: Path | str | None, case_id: str) -> bool:
    names = (case_id, f"{suite}/{case_id}")
    if name in names:
        return True
    if "*" in name and "::" not in name:
        pattern = ".*".join(map(re.escape, name.split("*")))
        return any(re.fullmatch(pattern, candidate, re.DOTALL) for candidate in names)
    ending = f"::{case_id}"
    return name.endswith(ending) and _is_file_of(name.removesuffix(ending), path)


def _is_file_of(file: str, path: Path | str | None) -> bool:
    """Whether `file` is the file of a suite, a folder above it, or `file.py:name` of a list in it."""
    if path is None:
        return False
    own, named = Path(path).resolve(), Path(file).resolve()
    if own == named or named in own.parents:
        return True
    python, sign, _ = file.rpartition(":")
    return bool(sign) and Path(python).resolve() == own


def parse_expression(expression: str) -> Predicate:
    """Parse an expression such as `refund and not (slow or flaky)`.

    The predicate searches for the words in a case's suite, id, description and tags.
    """
    tokens = re.findall(r'\(|\)|"[^"]*"|[^\s()]+', expression)
    if not tokens:
        raise UsageError("-k needs an expression, such as: refund and not slow")
    if tokens.count("(") > MAX_NESTING or tokens.count("not") > MAX_NESTING:
        raise UsageError("-k: the expression is nested too deeply")
    predicate, rest = _parse_or(tokens)
    if rest:
        raise UsageError(f"-k {expression!r}: unexpected {rest[0]!r}")
    return predicate


def last_failed(store: Store, cases: Iterable[tuple[str, str]] = ()) -> frozenset[tuple[str, str]]:
    """The cases of the latest run that did not pass; empty if all passed or there is no run.

    A run that was killed has not run all of its cases, and they did not pass either. Which ones they are is not stored:
    they are those of `cases`, the current (suite, id) pairs, that have fewer trials than the run planned for each.
    """
    runs = store.runs(limit=1)
    if not runs:
        return frozenset()
    trials: dict[tuple[str, str], list[Outcome]] = {}
    for summary in store.summaries(runs[0].no):
        trials.setdefault((summary.suite, summary.case_id), []).append(summary.outcome)
    failed = {address for address, outcomes in trials.items() if any(outcome in _NOT_PASSED for outcome in outcomes)}
    for info in runs[0].suites:
        count = sum(len(outcomes) for (suite, _), outcomes in trials.items() if suite == info.name)
        if count < info.planned:
            per_case = math.ceil(info.planned / max(1, info.cases))
            own = [address for address in cases if address[0] == info.name]
            failed |= {address for address in own if len(trials.get(address, ())) < per_case}
    return frozenset(failed)


_NOT_PASSED = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING)


def parse_tags(tags: Iterable[str]) -> frozenset[str]:
    return frozenset(part.strip() for tag in tags for part in tag.split(",") if part.strip())


def _parse_or(tokens: list[str]) -> tuple[Predicate, list[str]]:
    first, tokens = _parse_and(tokens)
    options = [first]
    while tokens and tokens[0] == "or":
        option, tokens = _parse_and(tokens[1:])
        options.append(option)
    return (first if len(options) == 1 else lambda text: any(option(text) for option in options)), tokens


def _parse_and(tokens: list[str]) -> tuple[Predicate, list[str]]:
    first, tokens = _parse_term(tokens)
    parts = [first]
    while tokens and tokens[0] not in ("or", ")"):
        part, tokens = _parse_term(tokens[1:] if tokens[0] == "and" else tokens)
        parts.append(part)
    return (first if len(parts) == 1 else lambda text: all(part(text) for part in parts)), tokens


def _parse_term(tokens: list[str]) -> tuple[Predicate, list[str]]:
    if not tokens or tokens[0] in (")", "and", "or"):
        raise UsageError(f"-k: a word is missing{f' before {tokens[0]!r}' if tokens else ' at the end'}")
    head, rest = tokens[0], tokens[1:]
    if head == "not":
        inner, rest = _parse_term(rest)
        return (lambda text: not inner(text)), rest
    if head == "(":
        inner, rest = _parse_or(rest)
        if not rest or rest[0] != ")":
            raise UsageError("-k: a closing parenthesis is missing")
        return inner, rest[1:]
    word = head.strip('"').casefold()
    return (lambda text: word in text), rest
