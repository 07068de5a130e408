"""The judge session of a running evaluator: its judge, the threshold of its score, and the judges of the run.

It is a context variable, so that evaluators of concurrent trials do not see each other's. The engine sets it for each
evaluator that it calls. An evaluator that Python code calls directly has the session of the process.
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
    """The judge of one running evaluator, and what it needs to ask it."""

    judges: Judges
    sources: JudgeSources = NO_SOURCES
    """The places that may name a judge, for evaluators that this evaluator calls."""
    choice: JudgeChoice | None = None
    """The judge that the plan chose for this evaluator."""
    threshold: float | None = None
    """The threshold of the score; `None` if the caller compares the score itself."""

    def choice_for(self, own: WrittenJudge | None) -> JudgeChoice:
        """The judge of an evaluator with the settings `own`.

        For the evaluator that the engine calls, the plan has chosen it. An evaluator that this one calls has the same
        judge, unless it has its own settings.
        """
        if self.choice is not None and (own is None or own == self.choice.own):
            return self.choice
        return choose_judge(self.sources, own)


_SESSION: ContextVar[JudgeSession | None] = ContextVar("proctor_judge_session", default=None)


@contextmanager
def judge_session(session: JudgeSession) -> Iterator[None]:
    """Use this session for the evaluators called inside."""
    token = _SESSION.set(session)
    try:
        yield
    finally:
        _SESSION.reset(token)


def engine_session() -> JudgeSession | None:
    """The session that the engine set; `None` for an evaluator that Python code calls directly."""
    return _SESSION.get()


def current_session() -> JudgeSession:
    """The engine's session; for an evaluator that Python code calls directly, one with the judges of the process."""
    return engine_session() or JudgeSession(_process_judges(), environment_sources())


@functools.cache
def _process_judges() -> Judges:
    return Judges()
