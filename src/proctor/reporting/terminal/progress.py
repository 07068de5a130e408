"""Prints a run while it goes: plain lines on any stream; on a terminal, failures above a live bar; or as a picture."""

from __future__ import annotations

import atexit
import io
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from proctor.reporting.terminal.case_blocks import CaseBlock, CaseBlocks
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
from proctor.reporting.wording import STYLES, count_parts, duration, money
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.running.settings import Listener, WorkerState

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text


def choose_terminal(
    stream: TextIO, *, quiet: bool = False, verbose: bool = False, environ: Mapping[str, str] | None = None
) -> Listener:
    """A live display where the stream can show one, plain lines everywhere else."""
    environ = os.environ if environ is None else environ
    movable = is_terminal(stream) and supports_unicode(stream) and environ.get("TERM") != "dumb"
    if movable and not quiet:
        return LiveTerminal(stream, verbose=verbose, environ=environ)
    return PlainTerminal(stream, quiet=quiet, verbose=verbose, environ=environ)


class TrialPrinter:
    """Tells of trials on a screen: a case that is repeated once, in one block, when its last trial is kept."""

    def __init__(self, screen: StreamScreen | RichScreen, *, verbose: bool, every: bool) -> None:
        self._screen = screen
        self.verbose = verbose
        self._every = every or verbose
        """Whether trials that pass are told of too."""
        self._warnings = WarningFilter()
        self._names = NameColumn(screen)
        self._blocks: CaseBlocks | None = None
        self._explained: set[tuple[str, str]] = set()

    def start(self, run: Run) -> None:
        if run.planned_trials and not self.verbose:
            self._blocks = CaseBlocks(run)

    def print_trial(self, trial: TrialResult) -> None:
        fresh = self._warnings.new_in(trial)
        if self._blocks is not None and trial in self._blocks:
            self._print_block(self._blocks.add(trial, fresh))
            return
        is_bad = trial.outcome in (Outcome.FAILED, Outcome.ERROR)
        if not (self._every or fresh or is_bad) or self._was_explained(trial, is_bad):
            return
        print_trial(self._screen, trial, verbose=self.verbose, warnings=fresh, names=self._names)
        self._screen.flush()

    def print_case(self, trials: Sequence[TrialResult]) -> None:
        """Tell of a case of a run that is over, by those of its trials that are to be shown."""
        if self._blocks is not None and trials[0] in self._blocks:
            self._print_block(self._blocks.stored_block(trials, self._warnings))
            return
        for trial in trials:
            self.print_trial(trial)

    def finish(self) -> None:
        """Tell of cases that were not completed, and how many warnings were left out."""
        for block in () if self._blocks is None else self._blocks.incomplete():
            self._print_block(block)
        self._warnings.print_omitted(self._screen)

    def _print_block(self, block: CaseBlock | None) -> None:
        if self._blocks is None or block is None or not (self._every or block.examples or block.warnings):
            return
        self._blocks.print(self._screen, block, self._names)
        self._screen.flush()

    def _was_explained(self, trial: TrialResult, is_bad: bool) -> bool:
        """Whether the gate asked a case again that was told of already: what it makes of that comes at the end."""
        if self.verbose:
            return False
        address = (trial.suite, trial.case.id)
        if trial.number > 1 and address in self._explained:
            return True
        if is_bad:
            self._explained.add(address)
        return False


class PlainTerminal:
    """One line per case, failures explained right below, a summary at the end.

    `quiet` leaves only the verdict; `verbose` explains every trial, also those that pass.
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

    def started(self, run: Run, planned: int, kept: int) -> None:
        if not self._quiet:
            self._printer.start(run)
            print_start(self._screen, run, planned, kept)
            self._screen.flush()

    def trial_done(self, trial: TrialResult) -> None:
        if not self._quiet:
            self._printer.print_trial(trial)

    def print_case(self, trials: Sequence[TrialResult]) -> None:
        """Tell of a case of a run that is over."""
        if not self._quiet:
            self._printer.print_case(trials)

    def workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        """Plain lines have no place for what changes all the time."""

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


def print_loading(stream: TextIO, references: Iterable[Any], environ: Mapping[str, str] | None = None) -> None:
    """Say which Python files and modules are being loaded, which may take long, to a person who watches."""
    found: dict[str, None] = {}
    for reference in references:
        named = re.fullmatch(r"(?:[\w. -]+=)?([^{}=]+):[A-Za-z_]\w*", str(reference))
        if named is not None and named[1] not in ("cmd", "http", "https"):
            found[named[1].replace("\\", "/").rpartition("/")[2] if named[1].endswith(".py") else named[1]] = None
    if found:
        screen = screen_for(stream, environ)
        screen.line((f"loading {', '.join(found)}{'…' if screen.unicode else '...'}", "dim"))
        screen.flush()


BAR_WIDTH = 24
MAX_WORKER_LINES = 8
"""More workers than this are summed up in one line."""


class RichScreen:
    """A screen on a rich console; lines are held until `flush`, so that a display below them is redrawn only once."""

    unicode = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._held: list[Text] = []

    @property
    def width(self) -> int | None:
        return self._console.width

    def line(self, *spans: Span, hang: int = 4) -> None:
        self._held += [rich_text(*line) for line in wrap_spans(spans, self.width, hang)]

    def flush(self) -> None:
        from rich.text import Text

        if self._held:
            self._console.print(Text("\n").join(self._held), soft_wrap=True)
            self._held.clear()


def rich_text(*spans: Span) -> Text:
    """Spans as rich text, made harmless first."""
    from rich.text import Text

    text = Text()
    for span in spans:
        words, style = (span, "") if isinstance(span, str) else span
        text.append(escape_line(words), style or None)
    text.rstrip()
    return text


class LiveTerminal:
    """A progress bar with failures printed above it; `verbose` prints the trials that pass as well."""

    def __init__(self, stream: TextIO, *, verbose: bool = False, environ: Mapping[str, str] | None = None) -> None:
        from rich.console import Console

        outlet: Any = SafeStream(stream)
        self._console = Console(
            file=outlet, force_terminal=True, highlight=False, markup=False, emoji=False, _environ=environ
        )
        self._screen = RichScreen(self._console)
        self._printer = TrialPrinter(self._screen, verbose=verbose, every=False)
        self._counts: Counter[Outcome] = Counter()
        self._cost: float | None = None
        self._planned = self._kept = 0
        self._began = 0.0
        self._live: Any = None
        self._workers: Callable[[], Sequence[WorkerState]] | None = None

    def started(self, run: Run, planned: int, kept: int) -> None:
        from rich.live import Live

        self._printer.start(run)
        print_start(self._screen, run, planned, kept)
        self._screen.flush()
        self._planned, self._kept = planned, kept
        self._began = time.monotonic()
        self._live = Live(console=self._console, get_renderable=self._bar, transient=True, refresh_per_second=5)
        self._live.start()
        atexit.register(self._live.stop)

    def trial_done(self, trial: TrialResult) -> None:
        self._counts[trial.outcome] += 1
        self._planned = max(self._planned, self._kept + self._counts.total())  # the gate asks for more as it goes
        usage = trial.usage
        if usage is not None and usage.cost_usd is not None:
            self._cost = (self._cost or 0.0) + usage.cost_usd
        self._printer.print_trial(trial)

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

        done = min(self._planned, self._kept + self._counts.total())
        wide = min(BAR_WIDTH, self._console.width // 5)
        bar = ProgressBar(total=max(1, self._planned), completed=done, width=wide, complete_style="green")
        line = Table.grid(padding=(0, 2))
        line.add_column(width=wide)
        line.add_column(no_wrap=True, overflow="ellipsis")
        room = self._console.width - wide - 3
        line.add_row(bar, rich_text(*self._status(done, time.monotonic() - self._began, room)))
        for name, text in [] if self._workers is None else _worker_lines(self._workers()):
            line.add_row(rich_text(name), rich_text((text, "dim")))
        return line

    def _status(self, done: int, elapsed: float, room: int) -> list[Span]:
        """`12/40  11 passed, 1 failed  2.1/s · $0.03 · 13s left`; on a narrow terminal, the first of it that fits.

        A resumed run says how many were kept.
        """
        parts: list[list[Span]] = [[(f"{done:,}/{self._planned:,}", "bold")]]
        before: list[tuple[str, str]] = [(f"{self._kept:,} kept", "dim")] if self._kept else []
        counts = [(text, STYLES[outcome]) for text, outcome in count_parts(self._counts)]
        for number, told in enumerate([*before, *counts]):
            parts.append([", " if number else "  ", told])
        for number, note in enumerate(self._notes(done, elapsed)):
            parts.append([(f"{' · ' if number else '  '}{note}", "dim")])
        spans: list[Span] = []
        for part in parts:
            room -= sum(len(span if isinstance(span, str) else span[0]) for span in part)
            if room < 0:
                break
            spans += part
        return spans

    def _notes(self, done: int, elapsed: float) -> list[str]:
        made = self._counts.total()
        if not made:
            return [f"{elapsed:.0f}s"]
        notes = []
        if elapsed > 0:
            rate = made / elapsed
            notes.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
        if self._cost is not None:
            notes.append(money(self._cost))
        if done < self._planned:
            left = math.ceil(elapsed / made * (self._planned - done))
            notes.append(f"{left}s left" if left < 60 else f"{duration(left * 1000)} left")
        return notes


def _worker_lines(states: Sequence[WorkerState]) -> list[tuple[str, str]]:
    """What each worker does, or all together where they are many."""
    if len(states) <= MAX_WORKER_LINES:
        return [(f"worker {state.name}", _worker_text(state)) for state in states]
    ready = [state for state in states if state.status == "ready"]
    sums = [sum(getattr(state, name) for state in states) for name in ("under_way", "done", "failed", "lost")]
    return [(f"{len(ready)} of {len(states)} workers", _worker_text(WorkerState("", *sums)))]


def _worker_text(state: WorkerState) -> str:
    parts = [f"{state.under_way} under way, {state.done:,} done"]
    parts += [f"{state.failed:,} without an answer"] if state.failed else []
    parts += [f"lost {state.lost} x"] if state.lost else []
    return ", ".join(parts if state.status == "ready" else [state.status, *parts[1:]])


_REMOTE_FONT = re.compile(r"@font-face\s*{{.*?}}", re.DOTALL)


def terminal_svg(run: Run, verdict: RunVerdict, *, title: str, command: str = "", width: int = 100) -> str:
    """The run as a terminal shows it, as an SVG that is the same for the same run and loads nothing from elsewhere."""
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
