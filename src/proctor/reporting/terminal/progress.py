"""Prints a run while it runs: as plain lines, or on a terminal as a progress bar with failures above it.

Both are listeners of the run (`proctor.running.settings.Listener`). `terminal_svg` draws a finished run as a picture.
"""

from __future__ import annotations

import atexit
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, TextIO

from proctor.base.clock import Clock
from proctor.cases.suite import Case
from proctor.reporting.terminal.case_blocks import CaseBlock, CaseBlocks
from proctor.reporting.terminal.eta import Forecast, RestEstimator, rest_text
from proctor.reporting.terminal.run_text import (
    NameColumn,
    WarningFilter,
    print_start,
    print_summary,
    print_trial,
    print_verdicts,
)
from proctor.reporting.terminal.screen import (
    SafeStream,
    Span,
    StreamScreen,
    escape_line,
    is_terminal,
    screen_for,
    supports_unicode,
    wrap_spans,
)
from proctor.reporting.wording import STYLES, count_parts, money, plural
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict
from proctor.running.settings import Listener, WorkerState

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text


def choose_terminal(
    stream: TextIO,
    *,
    quiet: bool = False,
    verbose: bool = False,
    plain: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Listener:
    """A progress bar if the stream is a terminal that can show one, otherwise (or if `plain`) lines."""
    environ = os.environ if environ is None else environ
    movable = is_terminal(stream) and supports_unicode(stream) and environ.get("TERM") != "dumb"
    if movable and not quiet and not plain:
        return LiveTerminal(stream, verbose=verbose, environ=environ)
    return PlainTerminal(stream, quiet=quiet, verbose=verbose, environ=environ)


class TrialPrinter:
    """Prints trials on a screen; a case with several trials is printed once, when its last trial is stored.

    `every` also prints trials that pass; `verbose` does that too, and explains every trial.
    """

    def __init__(self, screen: StreamScreen | RichScreen, *, verbose: bool, every: bool) -> None:
        self._screen = screen
        self.verbose = verbose
        self._every = every or verbose
        self._warnings = WarningFilter()
        self._names = NameColumn(screen)
        self._blocks: CaseBlocks | None = None
        self._explained: set[tuple[str, str]] = set()

    def start(self, run: Run) -> None:
        if run.planned_trials and not self.verbose:
            self._blocks = CaseBlocks(run)

    def print_trial(self, trial: Trial) -> None:
        """Print a trial of a run in progress."""
        warnings = self._warnings.new_in(trial)
        if self._blocks is not None and trial in self._blocks:
            self._print_block(self._blocks.add(trial, warnings, self._warnings.new_reason(trial)))
            return
        is_bad = trial.outcome in (Outcome.FAILED, Outcome.ERROR)
        if not (self._every or warnings or is_bad) or self._was_explained(trial, is_bad):
            return
        reason = self._warnings.new_reason(trial)
        print_trial(self._screen, trial, verbose=self.verbose, warnings=warnings, names=self._names, reason=reason)
        self._screen.flush()

    def print_case(self, trials: Sequence[Trial]) -> None:
        """Print a case of a finished run, from the trials of it that are to be shown."""
        if self._blocks is not None and trials[0] in self._blocks:
            self._print_block(self._blocks.stored_block(trials, self._warnings))
            return
        for trial in trials:
            self.print_trial(trial)

    def finish(self) -> None:
        """Print cases that were not completed, and how many warnings were left out."""
        for block in () if self._blocks is None else self._blocks.incomplete():
            self._print_block(block)
        self._warnings.print_omitted(self._screen)

    def _print_block(self, block: CaseBlock | None) -> None:
        if self._blocks is None or block is None or not (self._every or block.examples or block.warnings):
            return
        self._blocks.print(self._screen, block, self._names)
        self._screen.flush()

    def _was_explained(self, trial: Trial, is_bad: bool) -> bool:
        """Whether this is a re-run of a case whose failure was printed; the gate's summary reports its re-runs."""
        if self.verbose:
            return False
        address = (trial.suite, trial.case.id)
        if trial.number > 1 and address in self._explained:
            return True
        if is_bad:
            self._explained.add(address)
        return False


class PlainTerminal:
    """Prints one line per case, explains failures below it, and prints a summary at the end.

    `quiet` prints only the verdict; `verbose` explains every trial, also those that pass.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        quiet: bool = False,
        verbose: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._screen = screen_for(stream, environ)
        self._quiet = quiet
        self._printer = TrialPrinter(self._screen, verbose=verbose, every=True)

    def started(self, run: Run, planned: int, stored: int) -> None:
        if not self._quiet:
            self._printer.start(run)
            print_start(self._screen, run, planned, stored)
            self._screen.flush()

    def trial_done(self, trial: Trial) -> None:
        if not self._quiet:
            self._printer.print_trial(trial)

    def print_case(self, trials: Sequence[Trial]) -> None:
        """Print a case of a finished run."""
        if not self._quiet:
            self._printer.print_case(trials)

    def workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        """Do nothing: plain lines cannot show what changes all the time."""

    def notice(self, text: str) -> None:
        if not self._quiet:
            self._screen.line((f"note: {text}", "yellow"))
            self._screen.flush()

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        if self._quiet:
            print_verdicts(self._screen, run, verdict)
        else:
            self._printer.finish()
            print_summary(self._screen, run, verdict, verbose=self._printer.verbose)
        self._screen.flush()


def print_finished_run(
    run: Run, stream: TextIO, *, trials: Iterable[Trial] | None = None, quiet: bool = False, verbose: bool = False
) -> None:
    """Print a finished run as it would have been printed while it ran; only these `trials` of it if they are given."""
    counts = Counter((summary.suite, summary.case_id) for summary in run.summaries)
    repeated = {address: count for address, count in counts.items() if count > 1}
    terminal = PlainTerminal(stream, quiet=quiet, verbose=verbose)
    terminal.started(replace(run, planned_trials=repeated), sum(suite.planned for suite in run.suites), 0)
    for _, own in groupby(run.trials if trials is None else trials, key=lambda trial: (trial.suite, trial.case.id)):
        terminal.print_case(list(own))
    terminal.finished(run, run.verdict)


def print_loading(stream: TextIO, references: Iterable[Any], environ: Mapping[str, str] | None = None) -> None:
    """Print which Python files and modules are being loaded, since that may take a while."""
    modules: dict[str, None] = {}
    for reference in references:
        match = re.fullmatch(r"(?:[\w. -]+=)?([^{}=]+):[A-Za-z_]\w*", str(reference))
        if match is not None and match[1] not in ("cmd", "http", "https"):
            modules[match[1].replace("\\", "/").rpartition("/")[2] if match[1].endswith(".py") else match[1]] = None
    if modules:
        screen = screen_for(stream, environ)
        screen.line((f"loading {', '.join(modules)}{'…' if screen.unicode else '...'}", "dim"))
        screen.flush()


BAR_WIDTH = 24
FORECAST_SECONDS = 1.0
"""How long the bar shows a forecast before it is made again."""
MAX_WORKER_LINES = 8
"""If there are more workers, one line shows all of them together."""


class RichScreen:
    """A screen on a rich console. Lines wait for `flush`, so that the progress bar below them is redrawn only once."""

    unicode = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[Text] = []

    @property
    def width(self) -> int | None:
        return self._console.width

    def line(self, *spans: Span, hang: int = 4) -> None:
        self._lines += [rich_text(*line) for line in wrap_spans(spans, self.width, hang)]

    def flush(self) -> None:
        from rich.text import Text

        if self._lines:
            self._console.print(Text("\n").join(self._lines), soft_wrap=True)
            self._lines.clear()


def rich_text(*spans: Span) -> Text:
    """Spans as rich text, with control characters escaped."""
    from rich.text import Text

    text = Text()
    for span in spans:
        content, style = (span, "") if isinstance(span, str) else span
        text.append(escape_line(content), style or None)
    text.rstrip()
    return text


class LiveTerminal:
    """Shows a progress bar and prints failures above it; `verbose` prints the trials that pass as well."""

    def __init__(self, stream: TextIO, *, verbose: bool = False, environ: Mapping[str, str] | None = None) -> None:
        from rich.console import Console

        safe_stream: Any = SafeStream(stream)
        self._console = Console(
            file=safe_stream, force_terminal=True, highlight=False, markup=False, emoji=False, _environ=environ
        )
        self._screen = RichScreen(self._console)
        self._printer = TrialPrinter(self._screen, verbose=verbose, every=False)
        self._counts: Counter[Outcome] = Counter()
        self._cost: float | None = None
        self._planned = self._stored = 0
        self._started_at = 0.0
        self._rest = RestEstimator(0)
        self._forecast: Forecast | None = None
        self._forecast_until = 0.0
        self._live: Any = None
        self._workers: Callable[[], Sequence[WorkerState]] | None = None

    def started(self, run: Run, planned: int, stored: int) -> None:
        from rich.live import Live

        self._printer.start(run)
        print_start(self._screen, run, planned, stored)
        self._screen.flush()
        self._planned = planned
        self._stored = stored
        self._started_at = Clock.monotonic()
        self._rest.planned = planned - stored
        self._live = Live(console=self._console, get_renderable=self._bar, transient=True, refresh_per_second=5)
        self._live.start()
        atexit.register(self._live.stop)

    def trial_started(self, case: Case, number: int) -> None:
        self._rest.start((case.id, number), Clock.monotonic())

    def trial_done(self, trial: Trial) -> None:
        self._rest.finish((trial.case.id, trial.number), Clock.monotonic(), trial.duration_ms / 1000)
        self._counts[trial.outcome] += 1
        self._planned = max(self._planned, self._stored + self._counts.total())  # the gate adds re-runs as it goes
        usage = trial.usage
        if usage is not None and usage.cost_usd is not None:
            self._cost = (self._cost or 0.0) + usage.cost_usd
        self._printer.print_trial(trial)

    def outage(self, *, is_down: bool) -> None:
        now = Clock.monotonic()
        if is_down:
            self._rest.pause(now)
        else:
            self._rest.resume(now)

    def workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        self._workers = states

    def notice(self, text: str) -> None:
        self._screen.line((f"note: {text}", "yellow"))
        self._screen.flush()

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        if self._live is not None:
            self._live.stop()
            atexit.unregister(self._live.stop)
        self._printer.finish()
        print_summary(self._screen, run, verdict, verbose=self._printer.verbose)
        self._screen.flush()

    def _bar(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        done = min(self._planned, self._stored + self._counts.total())
        width = min(BAR_WIDTH, self._console.width // 5)
        bar = ProgressBar(total=max(1, self._planned), completed=done, width=width, complete_style="green")
        line = Table.grid(padding=(0, 2))
        line.add_column(width=width)
        line.add_column(no_wrap=True, overflow="ellipsis")
        room = self._console.width - width - 3
        line.add_row(bar, rich_text(*self._status(done, Clock.monotonic(), room)))
        for name, text in [] if self._workers is None else _worker_lines(self._workers()):
            line.add_row(rich_text(name), rich_text((text, "dim")))
        return line

    def _status(self, done: int, now: float, room: int) -> list[Span]:
        """`12/40  11 passed, 1 failed  2.1/s · $0.03 · 10-15s left`; on a narrow terminal, as much of it as fits.

        For a resumed run it also shows how many trials were stored already.
        """
        parts: list[list[Span]] = [[(f"{done:,}/{self._planned:,}", "bold")]]
        stored: list[tuple[str, str]] = [(f"{self._stored:,} stored", "dim")] if self._stored else []
        counts = [(text, STYLES[outcome]) for text, outcome in count_parts(self._counts)]
        for number, count in enumerate([*stored, *counts]):
            parts.append([", " if number else "  ", count])
        for number, note in enumerate(self._notes(now)):
            parts.append([(f"{' · ' if number else '  '}{note}", "dim")])
        spans: list[Span] = []
        for part in parts:
            room -= sum(len(span if isinstance(span, str) else span[0]) for span in part)
            if room < 0:
                break
            spans += part
        return spans

    def _notes(self, now: float) -> list[str]:
        elapsed, finished = now - self._started_at, self._counts.total()
        if not finished:
            return [f"{elapsed:.0f}s"]
        notes = []
        if elapsed > 0:
            rate = finished / elapsed
            notes.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
        if self._cost is not None:
            notes.append(money(self._cost))
        if now >= self._forecast_until:
            self._forecast = self._rest.forecast(now)
            self._forecast_until = now + FORECAST_SECONDS
        if self._forecast is not None:
            notes.append(rest_text(self._forecast))
        return notes


def _worker_lines(states: Sequence[WorkerState]) -> list[tuple[str, str]]:
    """The state of each worker, or of all together if there are many."""
    if len(states) <= MAX_WORKER_LINES:
        return [(f"worker {state.name}", _worker_text(state)) for state in states]
    ready = [state for state in states if state.status == "ready"]
    sums = [sum(getattr(state, name) for state in states) for name in ("under_way", "done", "failed", "lost")]
    return [(f"{len(ready)} of {len(states)} workers", _worker_text(WorkerState("", *sums)))]


def _worker_text(state: WorkerState) -> str:
    parts = [f"{state.under_way} running, {state.done:,} done"]
    parts += [f"{state.failed:,} without an answer"] if state.failed else []
    parts += [f"connection lost {plural(state.lost, 'time')}"] if state.lost else []
    return ", ".join(parts if state.status == "ready" else [state.status, *parts[1:]])


_REMOTE_FONT = re.compile(r"@font-face\s*{{.*?}}", re.DOTALL)


def terminal_svg(run: Run, verdict: RunVerdict, *, title: str, command: str = "", width: int = 100) -> str:
    """The output of a run on a terminal as SVG: the same for the same run, and without requests to other servers."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        record=True,
        width=width,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    screen = RichScreen(console)
    if command:
        screen.line(("$ ", "dim"), (command, "bold"))
        screen.line()
    print_start(screen, run, sum(info.planned for info in run.suites), 0)
    printer = TrialPrinter(screen, verbose=False, every=True)
    printer.start(replace(run, summaries=[]))
    for trial in run.trials:
        printer.print_trial(trial)
    printer.finish()
    print_summary(screen, run, verdict)
    screen.flush()
    return console.export_svg(
        title=title, code_format=_REMOTE_FONT.sub("", CONSOLE_SVG_FORMAT), unique_id="proctor-terminal"
    )
