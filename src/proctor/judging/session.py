"""What holds while an evaluator runs: who judges, the threshold of its score, and what its judges share.

It is a context variable, so that evaluators of concurrent trials never see each other's. The engine sets it for each
evaluator that it calls; an evaluator that Python calls directly has the session of the process.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from proctor.judging.choosing import (
    NO_SOURCES,
    JudgeChoice,
    JudgeSources,
    WrittenJudge,
    choose_judge,
    environment_sources,
)
from proctor.judging.judges import Judges


@dataclass(frozen=True, slots=True)
class JudgeSession:
    """What holds while one evaluator runs."""

    judges: Judges
    sources: JudgeSources = NO_SOURCES
    """Where a judge may be named, for evaluators that an evaluator calls itself."""
    choice: JudgeChoice | None = None
    """Who judges for the evaluator that the engine calls, as the plan decided."""
    threshold: float | None = None
    """The threshold of the score; `None` if the caller will compare with whatever it likes."""

    def choice_for(self, own: WrittenJudge | None) -> JudgeChoice:
        """Who judges for an evaluator that says `own` about its judge.

        That is what the plan decided for this evaluator. One that it calls in turn has the same judge, unless it says
        something about its judge too.
        """
        if self.choice is not None and (own is None or own == self.choice.own):
            return self.choice
        return choose_judge(self.sources, own)


_SESSION: ContextVar[JudgeSession | None] = ContextVar("proctor_judge_session", default=None)


@contextmanager
def judge_session(session: JudgeSession) -> Iterator[None]:
    """Evaluators that are called inside have this session."""
    token = _SESSION.set(session)
    try:
        yield
    finally:
        _SESSION.reset(token)


def engine_session() -> JudgeSession | None:
    """The session that the engine set; `None` for an evaluator that Python calls directly."""
    return _SESSION.get()


def current_session() -> JudgeSession:
    """The engine's session; for an evaluator that Python calls directly, one with the judges of this process."""
    return engine_session() or JudgeSession(_process_judges(), environment_sources())


@functools.cache
def _process_judges() -> Judges:
    return Judges()
