"""What people see while a run goes and when it ends: plain lines that any stream can take."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from proctor.reporting.narration import NameColumn, Warnings, tell_start, tell_trial
from proctor.reporting.screen import StreamScreen, is_terminal, is_unicode, wants_colour
from proctor.reporting.summary import tell_summary, tell_verdicts
from proctor.results.model import Run, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.running.listening import Listener


def choose_terminal(
    stream: TextIO, *, quiet: bool = False, verbose: bool = False, environ: Mapping[str, str] | None = None
) -> Listener:
    """A live display where the stream can show one, plain lines everywhere else."""
    environ = os.environ if environ is None else environ
    movable = is_terminal(stream) and is_unicode(stream) and environ.get("TERM") != "dumb"
    if movable and not quiet:
        from proctor.reporting.live import LiveTerminal

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
