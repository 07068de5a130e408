"""What becomes of a test with pending checks: it goes on, a failure wins, and at its end the test is pending.

`assert_test` and the other assertions record a check that has no result (`base.open_checks`) and return. Skipping there
would lose every assertion after it, and pytest would end with 0. When the test is over, its report becomes `pending`: a
failure, or with `--proctor-pending=skip` a skip, with its own word in pytest's output. A check in a fixture that
several tests share makes each of them pending, as a failure there would break each of them.

pytest loads this file in every session, so it imports nothing heavy before there is a pending check.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from proctor.base.open_checks import UNITTEST, OpenCheck, Undecided, collect_open_checks, headline

MODES = ("fail", "skip")
CHECKS = pytest.StashKey[list[OpenCheck]]()
SUBTEST_CHECKS = pytest.StashKey[int]()
"""The number of checks that belong to subtests which are over."""
HINTS = {"model": "set --proctor-judge", "grade": "use `proctor grade`"}


def pending_mode(config: pytest.Config) -> str:
    """`fail` or `skip`: what a pending test is for pytest's exit code, JUnit and other plugins."""
    mode: str = config.getoption("proctor_pending") or config.getini("proctor_pending")
    if mode not in MODES:
        raise pytest.UsageError(f"proctor_pending must be {' or '.join(MODES)}, not {mode!r}")
    return mode


class PendingTests:
    """A plugin of every session: collects the open checks of each test and changes its report."""

    def __init__(self, config: pytest.Config) -> None:
        self.mode = pending_mode(config)
        self._is_called = False
        """Whether a test is being called just now, so that a report is one of its subtests."""
        self._of_fixtures: dict[pytest.FixtureDef[Any], list[OpenCheck]] = {}
        """Checks of fixtures that outlive a test, until the fixture is torn down."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with collect_open_checks() as checks:
            item.stash[CHECKS] = checks
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        _checks(item).clear()  # pytest-rerunfailures runs a test several times; the last time counts
        item.stash[SUBTEST_CHECKS] = 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        self._is_called = True
        try:
            return (yield)
        finally:
            self._is_called = False

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        with collect_open_checks() as checks:
            result = yield
        if checks:
            self._of_fixtures[fixturedef] = checks
        return result

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        self._of_fixtures.pop(fixturedef, None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if self._is_called:
            self._mark_subtest(report, item, call)
            return report
        if report.when == "setup" and report.passed:
            return report  # the test goes on, and may fail
        own = _checks(item)
        checks = [*own]
        own.clear()
        if report.when == "call":
            checks += [check for group in self._fixture_checks(item) for check in group]
        error = None if call.excinfo is None else call.excinfo.value
        if isinstance(error, Undecided):
            checks.append(OpenCheck(summary=_first_line(error), details=str(error)))
        is_open = error is not None and self._is_open(error, checks)
        if checks:
            self._apply(report, item, checks, has_failed=error is not None and not is_open)
        return report

    def _mark_subtest(self, report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Mark the report of a subtest with open checks, unless it failed; its test is pending at its end."""
        seen = item.stash.get(SUBTEST_CHECKS, 0)
        checks = _checks(item)[seen:]
        item.stash[SUBTEST_CHECKS] = seen + len(checks)
        error = None if call.excinfo is None else call.excinfo.value
        if error is not None and self._is_open(error, checks):
            report.outcome, report.longrepr = "passed", None  # as after `assert_test`, the test goes on
        if report.passed and any(not check.is_skipped for check in checks):
            report.proctor_pending = pending_message(checks, self.mode)  # type: ignore[attr-defined]

    def _is_open(self, error: BaseException, checks: Sequence[OpenCheck]) -> bool:
        """Whether the exception that ended a test says that a result is pending.

        With `skip` it is a failure all the same: what came after it in the test did not run.
        """
        is_open = isinstance(error, Undecided) or (
            isinstance(error, AssertionError) and any(_is_raised_at(error, check.place) for check in checks)
        )
        return is_open and self.mode == "fail"

    def _fixture_checks(self, item: pytest.Item) -> Iterable[list[OpenCheck]]:
        names = getattr(item, "fixturenames", ())
        return [checks for fixture, checks in self._of_fixtures.items() if fixture.argname in names]

    def _apply(
        self, report: pytest.TestReport, item: pytest.Item, checks: Sequence[OpenCheck], *, has_failed: bool
    ) -> None:
        """Change the report of a test with open checks, unless it failed or was expected to."""
        pending = [check for check in checks if not check.is_skipped]
        if report.failed and has_failed:
            report.sections += [("pending", _details(pending))] if pending else []
        elif hasattr(report, "wasxfail"):
            # Not strict: neither a pass nor a failure would change anything. It did not pass for certain, though.
            if report.passed:
                report.outcome = "skipped"
        elif pending:
            _set_pending(report, item, pending, self.mode)
        elif not report.skipped:
            _set_skipped(report, item, headline(checks))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> Generator[None, Any, Any]:
        status = yield
        if not is_pending(report):
            return status
        if report.outcome in ("failed", "skipped"):
            return "pending", "P", ("PENDING", {"yellow": True} if report.outcome == "skipped" else {"red": True})
        if report.outcome != "passed":
            return status  # a report that pytest-rerunfailures has turned into a re-run, for example
        category, letter, word = status  # of a subtest
        return category.replace("passed", "pending"), letter, word.replace("PASSED", "PENDING")

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        reports = terminalreporter.getreports("pending")
        if not reports:
            return
        terminalreporter.section("pending", sep="=")
        for report in reports:
            if config.option.tbstyle not in ("no", "line") and report.outcome == "failed":
                terminalreporter.write_sep("_", terminalreporter._getfailureheadline(report), yellow=True)
                terminalreporter._outrep_summary(report)
        for report in reports:
            terminalreporter.write_line(f"PENDING {report.nodeid} - {report.proctor_pending}", yellow=True)


def is_pending(report: Any) -> bool:
    return bool(getattr(report, "proctor_pending", ""))


def _checks(item: pytest.Item) -> list[OpenCheck]:
    return item.stash.setdefault(CHECKS, [])


def _set_pending(report: pytest.TestReport, item: pytest.Item, checks: Sequence[OpenCheck], mode: str) -> None:
    message = pending_message(checks, mode)
    report.proctor_pending = message  # type: ignore[attr-defined]  # reports keep it on their way between processes
    if mode == "skip":
        _set_skipped(report, item, message)
        return
    from proctor.plugin.trial_output import failure_repr  # heavy; Proctor is loaded if there is a pending check

    path, line, _ = item.reportinfo()
    report.outcome = "failed"
    report.longrepr = failure_repr(f"{message}\n{_details(checks)}\n", message, Path(path), (line or 0) + 1)


def _set_skipped(report: pytest.TestReport, item: pytest.Item, message: str) -> None:
    path, line, _ = item.reportinfo()
    report.outcome = "skipped"
    report.longrepr = (str(path), (line or 0) + 1, f"Skipped: {message}")


def pending_message(checks: Sequence[OpenCheck], mode: str = "fail") -> str:
    """`pending: AnswerRelevancy needs a model; set --proctor-judge, or --proctor-pending=skip`."""
    needs = dict.fromkeys(check.need for check in checks)
    other = "" if mode == "skip" else ", or --proctor-pending=skip"
    return f"pending: {headline(checks)}; {', '.join(HINTS[need] for need in needs)}{other}"


def _details(checks: Sequence[OpenCheck]) -> str:
    return "\n\n".join(dict.fromkeys(check.details or headline([check]) for check in checks))


def _is_raised_at(error: BaseException, place: tuple[str, int] | None) -> bool:
    """Whether the statement that raised an exception, which may have several lines, is at this file and line."""
    own = None  # the innermost frame that is none of unittest's `assert` methods
    trace = error.__traceback__
    while trace is not None:
        if UNITTEST not in trace.tb_frame.f_globals:
            own = trace
        trace = trace.tb_next
    if place is None or own is None:
        return False
    code = own.tb_frame.f_code
    first, last, _, _ = next(islice(code.co_positions(), own.tb_lasti // 2, None), (None, None, None, None))
    file, line = place
    return code.co_filename == file and (first or own.tb_lineno) <= line <= (last or own.tb_lineno)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
