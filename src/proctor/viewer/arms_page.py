"""The page that has the arms of a run side by side: rows are cases, columns are arms."""

from __future__ import annotations

from functools import partial

from proctor.reporting.arms_report import arms_view
from proctor.results.score import Outcome
from proctor.viewer.pages import Page, PageRoute, Visit, arms_address, case_address, run_address
from proctor.viewer.sources import NotFound

CASES_PER_PAGE = 200


def arms_page(visit: Visit) -> Page:
    source, row = visit.run()
    number = max(1, visit.number("page") or 1)
    with source.lock:  # the trials are read from the store
        tables = source.cases(row).arm_tables
    if not tables:
        raise NotFound(f"Run {row.id} has one arm; there is nothing to compare side by side.")
    views = arms_view(
        tables,
        limit=CASES_PER_PAGE,
        first=(number - 1) * CASES_PER_PAGE,
        link=partial(case_address, row.id),
    )
    values = {
        "row": row,
        "arms": views,
        "run_address": run_address(row.id),
        "previous_page": arms_address(row.id, number - 1) if number > 1 else "",
        "next_page": arms_address(row.id, number + 1) if any(view.more for view in views) else "",
    }
    outcome = row.stored_verdict.outcome if row.stored_verdict else Outcome.SKIPPED
    return Page("arms.html", f"{row.name or row.id}: arms", values, outcome=outcome)


PAGES = (PageRoute("/runs/{run}/arms", arms_page),)
