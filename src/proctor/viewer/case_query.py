"""Which cases of a run a page shows, in what order: read from the address, and asked of SQLite with parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from proctor.cases.encoding import dumps
from proctor.results.run import Outcome, Run
from proctor.results.store.text_columns import decode_text, encode_text
from proctor.viewer.run_index import RunIndex, as_bytes

PAGE = 50
"""Cases on one page."""
LONGEST = 500
"""Characters of an address's value that are looked at."""

SHOWN = {
    "failed": "k.outcome = 'failed'",
    "error": "k.outcome = 'error'",
    "pending": "k.outcome = 'pending'",
    "passed": "k.outcome = 'passed'",
    "skipped": "k.outcome = 'skipped'",
    "flaky": "(k.passed > 0 AND k.failed > 0)",
    "broken": "(p.outcome = 'passed' AND k.outcome IN ('failed', 'error'))",
    "fixed": "(p.outcome IN ('failed', 'error') AND k.outcome = 'passed')",
}
"""What `show` may name, each with its condition."""
RANK = "CASE k.outcome WHEN 'failed' THEN 0 WHEN 'error' THEN 1 WHEN 'pending' THEN 2 ELSE 3 END"
FLAKY_FIRST = "CASE WHEN k.passed > 0 AND k.failed > 0 THEN 0 ELSE 1 END"
SORTS = {
    "worst": f"{RANK}, {FLAKY_FIRST}, k.position",
    "plan": "k.position",
    "case": "k.case_id, k.position",
    "slowest": "k.duration_ms / k.trials DESC, k.position",
    "dearest": "k.cost_usd / k.trials DESC, k.position",
    "flakiest": "abs(0.5 - CAST(k.passed AS REAL) / max(1, k.passed + k.failed)), k.position",
}
GROUPS = {"": "", "tag": "tag_rows", "cluster": "cluster_rows"}


@dataclass(frozen=True, slots=True)
class CaseQuery:
    """The state of a run's page, which stands in its address."""

    show: str = ""
    tag: str = ""
    evaluator: str = ""
    suite: str = ""
    q: str = ""
    cost: str = ""
    """At least so many dollars a trial."""
    slower: str = ""
    """At least so many milliseconds a trial."""
    sort: str = "worst"
    group: str = ""
    plots: str = ""
    """Whether the distributions of a large run are shown."""
    page: int = 1

    @property
    def is_filtered(self) -> bool:
        return any((self.show, self.tag, self.evaluator, self.suite, self.q, self.cost, self.slower))

    def address(self, **changes: Any) -> str:
        """The query part of a link to the same page with changes; what is at its default is left out."""
        changed = replace(self, **{"page": 1, **changes})
        pairs = [(item.name, getattr(changed, item.name), item.default) for item in fields(changed)]
        given = [(name, value) for name, value, default in pairs if value != default]
        return "?" + urlencode(given, errors="surrogatepass") if given else "?"


def read_query(given: Mapping[str, str]) -> CaseQuery:
    """What an address says; what it cannot mean is left out."""
    texts = {name: given.get(name, "")[:LONGEST] for name in ("tag", "evaluator", "suite", "q")}
    page = given.get("page", "1")
    return CaseQuery(
        show=given.get("show", "") if given.get("show") in SHOWN else "",
        **texts,
        cost=_amount(given.get("cost", "")),
        slower=_amount(given.get("slower", "")),
        sort=given["sort"] if given.get("sort") in SORTS else "worst",
        plots="all" if given.get("plots") else "",
        group=given["group"] if given.get("group") in GROUPS else "",
        page=min(int(page), 10**6) or 1 if page.isdecimal() and page.isascii() and len(page) < 8 else 1,
    )


def _amount(text: str) -> str:
    try:
        number = float(text[:32])
    except ValueError:
        return ""
    return f"{number:g}" if math.isfinite(number) and number > 0 else ""


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case of a run as the page lists it."""

    suite: str
    case_id: str
    position: int
    outcome: Outcome
    trials: int
    passed: int
    failed: int
    tokens: int | None
    cost_usd: float | None
    duration_ms: float
    """Of all of its trials."""
    numbers: tuple[int, ...]
    """Of its trials in the store."""
    quarantined: bool
    before: Outcome | None
    """How it went in the run before."""
    group: str = ""

    @property
    def is_flaky(self) -> bool:
        return self.passed > 0 and self.failed > 0


COLUMNS = (
    "k.suite, k.case_id, k.position, k.outcome, k.trials, k.passed, k.failed, k.tokens, k.cost_usd, k.duration_ms,"
    " k.numbers, k.quarantined, p.outcome"
)
FROM = "FROM case_rows k LEFT JOIN case_rows p ON p.run = ? AND p.suite = k.suite AND p.case_id = k.case_id"


def find_cases(index: RunIndex, row: Run, query: CaseQuery, before: Run | None) -> tuple[list[CaseRow], int]:
    """The cases of one page, and how many there are in all."""
    where, values = _conditions(row.no, query)
    prior = (0 if before is None else before.no,)
    table = GROUPS[query.group]
    way = "LEFT JOIN" if query.group == "tag" else "JOIN"
    joined = f" {way} {table} g ON g.run = k.run AND g.suite = k.suite AND g.case_id = k.case_id" if table else ""
    named = f"g.{query.group}" if table else "''"
    text = f"{FROM}{joined} WHERE {where}"
    order = f"{named} IS NULL, {named}, {SORTS[query.sort]}" if table else SORTS[query.sort]
    if query.evaluator:
        index.ensure_scores(row.no)
    found = index.rows(
        f"SELECT {COLUMNS}, {named}, count(*) OVER () {text} ORDER BY {order} LIMIT ? OFFSET ?",
        (*prior, *values, PAGE, (query.page - 1) * PAGE),
    )
    count = found[0][-1] if found else 0
    if not found and query.page > 1:
        count = index.rows(f"SELECT count(*) {text}", (*prior, *values))[0][0]
    return [_case_row(columns[:-1]) for columns in found], count


def _case_row(columns: Any) -> CaseRow:
    suite, case_id, position, outcome, trials, passed, failed, tokens, cost_usd, duration_ms, *rest = columns
    numbers, quarantined, before, group = rest
    return CaseRow(
        suite=decode_text(suite),
        case_id=decode_text(case_id),
        position=position,
        outcome=Outcome(outcome),
        trials=trials,
        passed=passed,
        failed=failed,
        tokens=tokens,
        cost_usd=cost_usd,
        duration_ms=duration_ms,
        numbers=tuple(sorted(int(number) for number in numbers.split(","))),
        quarantined=bool(quarantined),
        before=None if before is None else Outcome(before),
        group="without a tag" if group is None else str(group),
    )


def _conditions(run: int, query: CaseQuery) -> tuple[str, list[Any]]:
    parts = ["k.run = ?"]
    values: list[Any] = [run]
    if query.show:
        parts.append(SHOWN[query.show])
    if query.suite:
        parts.append("k.suite = ?")
        values.append(encode_text(query.suite))
    if query.tag:
        parts.append(
            "EXISTS (SELECT 1 FROM tag_rows t WHERE t.run = k.run AND t.tag = CAST(? AS TEXT) AND t.suite = k.suite"
            " AND t.case_id = k.case_id)"
        )
        values.append(as_bytes(query.tag))
    if query.evaluator:
        parts.append(
            "EXISTS (SELECT 1 FROM score_rows s WHERE s.run = k.run AND s.suite = k.suite AND s.case_id = k.case_id"
            " AND s.evaluator = CAST(? AS TEXT) AND s.outcome IN ('failed', 'error', 'pending'))"
        )
        values.append(as_bytes(query.evaluator))
    for text, column in ((query.cost, "k.cost_usd / k.trials"), (query.slower, "k.duration_ms / k.trials")):
        if text:
            parts.append(f"{column} >= ?")
            values.append(float(text))
    words = query.q.split()[:10]
    if words:
        parts.append(TEXT.format(words=" AND ".join([WORD] * len(words))))
        values.append(run)
        for word in words:
            values += [_like(word), *[_like(dumps(word)[1:-1])] * 2]
    return " AND ".join(parts), values


TEXT = (
    "(k.suite, k.case_id) IN (SELECT t.suite, t.case_id FROM store.trials t JOIN store.cases c ON c.no = t.case_no"
    " WHERE t.run = ? AND {words})"
)
WORD = "(t.case_id LIKE ? ESCAPE '!' OR t.content LIKE ? ESCAPE '!' OR c.content LIKE ? ESCAPE '!')"
"""A word in the name of a case, in what was answered or in what was asked, as they are kept: as JSON in ASCII."""


def _like(word: str) -> str:
    safe = _plain(word).replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{safe}%"


def _plain(text: str) -> str:
    """Without halves of surrogate pairs, which SQLite does not take."""
    return text.encode("utf-8", "replace").decode()


def tags_of(index: RunIndex, run: int, most: int = 50) -> list[tuple[str, int]]:
    """The tags of a run with how many cases have them, the most common first."""
    query = "SELECT tag, count(*) AS n FROM tag_rows WHERE run = ? GROUP BY tag ORDER BY n DESC, tag LIMIT ?"
    return index.remembered(run, "tags", lambda: index.rows(query, (run, most)))


def evaluators_of(index: RunIndex, run: int, most: int = 50) -> list[tuple[str, int]]:
    """The evaluators of a run with how many of their scores did not pass."""
    query = (
        "SELECT evaluator, sum(CASE WHEN outcome IN ('failed', 'error', 'pending') THEN scores ELSE 0 END)"
        " FROM score_rows WHERE run = ? GROUP BY evaluator LIMIT ?"
    )
    index.ensure_scores(run)
    return index.remembered(run, "evaluators", lambda: index.rows(query, (run, most)))


def changes_of(index: RunIndex, row: Run, before: Run) -> dict[str, int]:
    """How many cases broke, were fixed, are new or gone since an earlier run."""
    broken, fixed, new = index.rows(
        f"SELECT total({SHOWN['broken']}), total({SHOWN['fixed']}), sum(p.outcome IS NULL) {FROM} WHERE k.run = ?",
        (before.no, row.no),
    )[0]
    gone = index.rows(
        "SELECT count(*) FROM case_rows p WHERE p.run = ? AND NOT EXISTS (SELECT 1 FROM case_rows k WHERE k.run = ?"
        " AND k.suite = p.suite AND k.case_id = p.case_id)",
        (before.no, row.no),
    )[0][0]
    return {"broken": int(broken or 0), "fixed": int(fixed or 0), "new": int(new or 0), "gone": int(gone or 0)}


CHANGES = {
    "broken": (SHOWN["broken"], Outcome.FAILED),
    "fixed": (SHOWN["fixed"], Outcome.PASSED),
    "still failing": ("(p.outcome = 'failed' AND k.outcome = 'failed')", Outcome.FAILED),
    "still passing": ("(p.outcome = 'passed' AND k.outcome = 'passed')", Outcome.PASSED),
}


def outcome_groups(
    index: RunIndex, before: int, after: int, most: int
) -> Iterator[tuple[str, Outcome, list[tuple[str, str, str]], int]]:
    """The cases that both runs have, by what became of their outcome: the first of each group, and how many there are.

    Cases that still pass are only counted.
    """
    for group, (condition, outcome) in CHANGES.items():
        rows = index.rows(
            "SELECT k.suite, k.case_id, p.passed, p.passed + p.failed, k.passed, k.passed + k.failed,"
            f" count(*) OVER () {FROM} WHERE k.run = ? AND {condition} ORDER BY k.position LIMIT ?",
            (before, after, most),
        )
        cases = [
            (decode_text(suite), decode_text(case), f"{old}/{of_old} → {new}/{of_new}")
            for suite, case, old, of_old, new, of_new, _ in rows
        ]
        yield group, outcome, [] if group == "still passing" else cases, rows[0][-1] if rows else 0
