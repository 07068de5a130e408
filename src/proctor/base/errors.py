"""The one small hierarchy of errors that Proctor raises on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from proctor.base.records import record


@record
class Problem:
    """One thing that is wrong in one file, said so that a person can go and fix it."""

    message: str
    path: Path | None = None
    line: int | None = None
    where: str = ""
    """The place inside the document, as people write it: `evalCases[3].conversation`."""

    def __str__(self) -> str:
        place = "" if self.path is None else f"{self.path}:{self.line}: " if self.line else f"{self.path}: "
        subject = f"{self.where} " if self.where else ""
        return f"{place}{subject}{self.message}"


class ProctorError(Exception):
    """Everything Proctor raises on purpose."""


class UsageError(ProctorError):
    """The command or call itself is wrong; nothing was run."""


class InvalidSuite(ProctorError):
    """One or more files cannot be used; carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem], read: Iterable[Any] = ()) -> None:
        self.problems: Sequence[Problem] = tuple(problems)
        self.read: Sequence[Any] = tuple(read)
        """The suites as far as they could be read, so that what they name can be looked for all the same."""
        super().__init__("\n".join(str(problem) for problem in self.problems))


class AgentFailed(ProctorError):
    """The agent could not answer. `transient` failures are retried and, if they persist, are not held against it."""

    def __init__(self, message: str, *, transient: bool = False, retry_after: float | None = None) -> None:
        self.transient = transient
        self.retry_after = retry_after
        """Seconds after which the service asked to be tried again."""
        super().__init__(message)


class UnreadableReply(ProctorError):
    """The agent answered with something the adapter cannot turn into a reply: the instrument's limit, not a verdict."""


class JudgeFailed(ProctorError):
    """A language-model judge was needed and gave no usable verdict."""


class NeedsModel(JudgeFailed):
    """Nothing that is configured can ever answer an evaluator: an `error`, unless it is left out on purpose."""


class StoreError(ProctorError):
    """Results could not be written or read."""
