"""How a run goes, for a person at a terminal or for a log."""

from __future__ import annotations

import datetime
import os
import sys
import time

from proctor.base.errors import UsageError
from proctor.compat.holodeck.test_results import MetricResult, TestResult
from proctor.reporting.terminal.screen import encodable, is_terminal, one_line, wants_colour

RULE = "=" * 60
SLOW_MS = 1000
_COLOURS = {"✓": "32", "✗": "31", "⚠": "33", "•": "2"}


class ProgressIndicator:
    """Counts results as they come, and words them for wherever standard output goes."""

    SPINNER_CHARS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

    def __init__(self, total_tests: int, quiet: bool = False, verbose: bool = False) -> None:
        if not isinstance(total_tests, int) or total_tests < 0:
            raise UsageError(f"total_tests must be a whole number from 0, not {total_tests!r}")
        self.total_tests = total_tests
        self.quiet = quiet
        self.verbose = verbose
        self.current_test = 0
        self.current_test_name: str | None = None
        self.passed = 0
        self.failed = 0
        self.test_results: list[TestResult] = []
        self.start_time = datetime.datetime.now()
        self._started = time.monotonic()
        self._frame = 0

    def start_test(self, test_name: str) -> None:
        self.current_test_name = test_name

    def update(self, result: TestResult) -> None:
        """Count one finished test."""
        self.current_test += 1
        self.test_results.append(result)
        if result.passed:
            self.passed += 1
        else:
            self.failed += 1

    def get_spinner_char(self) -> str:
        """The next frame of the spinner."""
        self._frame += 1
        return self.SPINNER_CHARS[(self._frame - 1) % len(self.SPINNER_CHARS)]

    def get_spinner_line(self) -> str:
        """`⠋ Test 1/5: Running...` at a terminal; nothing elsewhere."""
        if self.quiet or not is_terminal(sys.stdout):
            return ""
        number = min(self.current_test + 1, self.total_tests)
        return _sayable(f"{self.get_spinner_char()} Test {number}/{self.total_tests}: Running...")

    def get_progress_line(self) -> str:
        """The test that was finished last; when quiet, only the very last one is told."""
        if not self.test_results or (self.quiet and self.current_test < self.total_tests):
            return ""
        total = max(self.total_tests, self.current_test)
        told, result = f"Test {self.current_test}/{total}", self.test_results[-1]
        name = _name(result, self.current_test) + self._time(result)
        if is_terminal(sys.stdout):
            return _sayable(f"{told}: {_mark(result.passed)} {name}")
        return _sayable(f"[{told}] {'PASS' if result.passed else 'FAIL'} {name}")

    def get_summary(self) -> str:
        """How many passed, in what time, and, when verbose, what each metric said."""
        total = max(self.total_tests, self.current_test)
        if total == 0:
            return "No tests to execute"
        head = f"Test Results: {self.passed}/{total} passed ({100 * self.passed / total:.1f}%)"
        if is_terminal(sys.stdout):
            head = f"{_painted('✓') if self.passed == total else _painted('⚠')} {head}"
        lines = ["", RULE, head]
        if self.failed:
            lines.append(f"  Failed: {self.failed}")
        if missing := total - self.current_test:
            lines.append(f"  Not run: {missing}")
        lines.append(f"  Duration: {time.monotonic() - self._started:.2f}s")
        if self.verbose and self.test_results:
            lines += ["", "Test Details:"]
            for number, result in enumerate(self.test_results, 1):
                lines += self._details(result, number)
        return _sayable("\n".join([*lines, RULE]))

    def _details(self, result: TestResult, number: int) -> list[str]:
        spent = f" ({result.execution_time_ms}ms)" if isinstance(result.execution_time_ms, int | float) else ""
        lines = [f"  {_mark(result.passed)} {_name(result, number)}{spent}"]
        for metric in result.metric_results:
            lines.append(f"      {_mark(metric.passed)} {one_line(metric.metric_name)}: {_score(metric)}")
            if metric.reasoning:
                lines.append(f"        Reasoning: {one_line(metric.reasoning)}")
        return lines

    def _time(self, result: TestResult) -> str:
        spent = result.execution_time_ms
        if not isinstance(spent, int | float):
            return ""
        if spent >= SLOW_MS:
            return f" ({spent / 1000:.2f}s)"
        return f" ({spent}ms)" if self.verbose else ""


def _name(result: TestResult, number: int) -> str:
    name: object = result.test_name
    return one_line(name) if isinstance(name, str) and name else f"Test {number}"


def _mark(passed: bool | None) -> str:
    return _painted("•" if passed is None else "✓" if passed else "✗")


def _painted(mark: str) -> str:
    return f"\033[{_COLOURS[mark]}m{mark}\033[0m" if wants_colour(sys.stdout, os.environ) else mark


def _score(metric: MetricResult) -> str:
    if metric.score is None:
        return metric.outcome or "not measured"
    return f"{metric.score:.2f}" + ("" if metric.threshold is None else f" (threshold {metric.threshold:g})")


def _sayable(text: str) -> str:
    return encodable(text, getattr(sys.stdout, "encoding", None))
