"""Prints a run while it goes: plain lines on any stream; on a terminal, failures above a live bar."""

from __future__ import annotations

import atexit
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from proctor.reporting.terminal.narration import (
    NameColumn,
    Warnings,
    tell_start,
    tell_summary,
    tell_trial,
    tell_verdicts,
)
from proctor.reporting.terminal.screen import (
    Outlet,
    Span,
    StreamScreen,
    is_terminal,
    is_unicode,
    one_line,
    wants_colour,
)
from proctor.reporting.wording import STYLES, count_parts, duration, money
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.running.options import Listener, WorkerState


def choose_terminal(
    stream: TextIO, *, quiet: bool = False, verbose: bool = False, environ: Mapping[str, str] | None = None
) -> Listener:
    """A live display where the stream can show one, plain lines everywhere else."""
    environ = os.environ if environ is None else environ
    movable = is_terminal(stream) and is_unicode(stream) and environ.get("TERM") != "dumb"
    if movable and not quiet:
        return LiveTerminal(stream, verbose=verbose, environ=environ)
    return PlainTerminal(stream, quiet=quiet, verbose=verbose, environ=environ)


class PlainTerminal:
    """One line per trial, failures explained right below, a summary at the end.

    `quiet` leaves only the verdict; `verbose` explains the trials that pass as well.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        quiet: bool = False,
        verbose: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        colour = wants_colour(stream, os.environ if environ is None else environ)
        self._screen = StreamScreen(stream, colour=colour, width=_width(stream))
        self._quiet = quiet
        self._verbose = verbose
        self._warnings = Warnings()
        self._names = NameColumn()

    def started(self, run: Run, planned: int, kept: int) -> None:
        if not self._quiet:
            tell_start(self._screen, run, planned, kept)
            self._screen.flush()

    def trial_done(self, trial: TrialResult) -> None:
        if self._quiet:
            return
        fresh = self._warnings.fresh(trial)
        tell_trial(self._screen, trial, verbose=self._verbose, warnings=fresh, names=self._names)
        self._screen.flush()

    def workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        """Plain lines have no place for what changes all the time."""

    def notice(self, text: str) -> None:
        if not self._quiet:
            self._screen.line((f"note: {text}", "yellow"))
            self._screen.flush()

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        if self._quiet:
            tell_verdicts(self._screen, run, verdict)
        else:
            self._warnings.tell_rest(self._screen)
            tell_summary(self._screen, run, verdict)
        self._screen.flush()


def _width(stream: TextIO) -> int | None:
    """How wide to wrap; a file or a pipe keeps its lines whole."""
    if not is_terminal(stream):
        return None
    import shutil

    return shutil.get_terminal_size().columns


if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

BAR_WIDTH = 24
MOST_WORKERS = 8
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

    def line(self, *spans: Span) -> None:
        self._held.append(styled(*spans))

    def flush(self) -> None:
        from rich.text import Text

        if self._held:
            self._console.print(Text("\n").join(self._held), soft_wrap=True)
            self._held.clear()


def styled(*spans: Span) -> Text:
    """Spans as rich text, made harmless first."""
    from rich.text import Text

    text = Text()
    for span in spans:
        words, style = (span, "") if isinstance(span, str) else span
        text.append(one_line(words), style or None)
    text.rstrip()
    return text


class LiveTerminal:
    """A progress bar with failures printed above it; `verbose` prints the trials that pass as well."""

    def __init__(self, stream: TextIO, *, verbose: bool = False, environ: Mapping[str, str] | None = None) -> None:
        from rich.console import Console

        outlet: Any = Outlet(stream)
        self._console = Console(
            file=outlet, force_terminal=True, highlight=False, markup=False, emoji=False, _environ=environ
        )
        self._screen = RichScreen(self._console)
        self._verbose = verbose
        self._warnings = Warnings()
        self._names = NameColumn()
        self._counts: Counter[Outcome] = Counter()
        self._cost: float | None = None
        self._planned = self._kept = 0
        self._began = 0.0
        self._live: Any = None
        self._workers: Callable[[], Sequence[WorkerState]] | None = None

    def started(self, run: Run, planned: int, kept: int) -> None:
        from rich.live import Live

        tell_start(self._screen, run, planned, kept)
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
        fresh = self._warnings.fresh(trial)
        if self._verbose or fresh or trial.outcome in (Outcome.FAILED, Outcome.ERROR):
            tell_trial(self._screen, trial, verbose=self._verbose, warnings=fresh, names=self._names)
            self._screen.flush()

    def workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        self._workers = states

    def notice(self, text: str) -> None:
        self._screen.line((f"note: {text}", "yellow"))
        self._screen.flush()

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        if self._live is not None:
            self._live.stop()
            atexit.unregister(self._live.stop)
        self._warnings.tell_rest(self._screen)
        tell_summary(self._screen, run, verdict)
        self._screen.flush()

    def _bar(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        done = min(self._planned, self._kept + self._counts.total())
        bar = ProgressBar(total=max(1, self._planned), completed=done, width=BAR_WIDTH, complete_style="green")
        line = Table.grid(padding=(0, 2))
        line.add_column(width=BAR_WIDTH)
        line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_row(bar, styled(*self._status(done, time.monotonic() - self._began)))
        for name, text in [] if self._workers is None else _worker_lines(self._workers()):
            line.add_row(styled(name), styled((text, "dim")))
        return line

    def _status(self, done: int, elapsed: float) -> list[Span]:
        """`12/40  11 passed, 1 failed  2.1/s · $0.03 · 13s left`."""
        spans: list[Span] = [(f"{done:,}/{self._planned:,}", "bold"), "  "]
        for number, (text, outcome) in enumerate(count_parts(self._counts)):
            spans += [", " if number else "", (text, STYLES[outcome])]
        made = self._counts.total()
        notes = []
        if made and elapsed > 0:
            rate = made / elapsed
            notes.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
        if self._cost is not None:
            notes.append(money(self._cost))
        if made and done < self._planned:
            left = math.ceil(elapsed / made * (self._planned - done))
            notes.append(f"{left}s left" if left < 60 else f"{duration(left * 1000)} left")
        elif not made:
            notes.append(f"{elapsed:.0f}s")
        spans.append((f"  {' · '.join(notes)}", "dim"))
        return spans


def _worker_lines(states: Sequence[WorkerState]) -> list[tuple[str, str]]:
    """What each worker does, or all together where they are many."""
    if len(states) <= MOST_WORKERS:
        return [(f"worker {state.name}", _worker_text(state)) for state in states]
    ready = [state for state in states if state.status == "ready"]
    sums = [sum(getattr(state, name) for state in states) for name in ("under_way", "done", "failed", "lost")]
    return [(f"{len(ready)} of {len(states)} workers", _worker_text(WorkerState("", *sums)))]


def _worker_text(state: WorkerState) -> str:
    parts = [f"{state.under_way} under way, {state.done:,} done"]
    parts += [f"{state.failed:,} without an answer"] if state.failed else []
    parts += [f"lost {state.lost} x"] if state.lost else []
    return ", ".join(parts if state.status == "ready" else [state.status, *parts[1:]])
