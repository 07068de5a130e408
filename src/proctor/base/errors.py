"""The exceptions that Proctor raises on purpose, and how any exception is shown in one line."""

from __future__ import annotations

import contextlib
import functools
import sysconfig
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from proctor.base.diagnosis import Diagnosis
    from proctor.base.positions import Position

MESSAGE_SECONDS = 1.0
_PLAIN = frozenset({str, int, float, bool, type(None)})
MAX_REASON_LENGTH = 100_000
"""How many characters of an exception's message are stored."""


ProblemCode = Literal["unknown key", "legacy format"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in one file, and where."""

    message: str
    path: Path | None = None
    line: int | None = None
    where: str = ""
    """The place inside the document, as people write it: `evalCases[3].conversation`."""
    code: ProblemCode | None = None
    """What kind of problem it is, for callers that treat some kinds differently. They never read the message."""

    @classmethod
    def at(cls, position: Position | None, message: str, where: str = "", *, path: Path | None = None) -> Problem:
        """A problem at a position; `path` is the file if there is none."""
        return (
            cls(message, path, where=where) if position is None else cls(message, position.path, position.line, where)
        )

    def __str__(self) -> str:
        place = "" if self.path is None else f"{self.path}:{self.line}: " if self.line else f"{self.path}: "
        subject = f"{self.where} " if self.where else ""
        return f"{place}{subject}{self.message}"


class ProctorError(Exception):
    """Everything Proctor raises on purpose."""


class RenamedWarning(FutureWarning):
    """Something has a new name and is still accepted under the old one; the command line prints it as a note."""


class UnusedExpectation(UserWarning):
    """A case has an expected output that none of its evaluators looks at."""


class UsageError(ProctorError):
    """The command or call itself is wrong; nothing was run."""


class MissingKey(KeyError):
    """A `KeyError` whose message is shown as it is; Python shows the message of a plain one in quotes."""

    def __str__(self) -> str:
        return str(self.args[0])


class Inconclusive(UserWarning):
    """Code looked at the failed cases only, and none failed, but some cases have no verdict."""


class InvalidSuite(ProctorError, ValueError):
    """One or more suite files are invalid; has every problem, not only the first."""

    def __init__(self, problems: Iterable[Problem], partial_suites: Iterable[Any] = ()) -> None:
        self.problems: Sequence[Problem] = tuple(problems)
        self.partial_suites: Sequence[Any] = tuple(partial_suites)
        """The suites as far as they could be read, so that the code they refer to can be checked too."""
        super().__init__("\n".join(str(problem) for problem in self.problems))


class AgentFailed(ProctorError):
    """The agent could not answer.

    A `transient` failure is retried; if it persists, the outcome is an error. An `infrastructure` failure is not the
    agent's either, but a retry would not help. Whose failure any other one is depends on the exception that it was
    raised `from`; without one, it is the agent's.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        infrastructure: bool = False,
        retry_after: float | None = None,
        places: Sequence[str] = (),
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self.transient = transient if diagnosis is None else diagnosis.is_transient
        self.infrastructure = infrastructure
        self.diagnosis = diagnosis
        """Whose failure it is, if the code that raises it has decided that already."""
        self.places = tuple(places)
        """Where in the user's files it happened, the outermost first, if it happened in another process."""
        self.retry_after = retry_after if diagnosis is None else diagnosis.retry_after or None
        """Seconds after which the service allows another request."""
        super().__init__(message)


class AgentRaised(AgentFailed):
    """The agent's code ended in a way that is not an `Exception`, such as `SystemExit`.

    The message has no subject ("raised SystemExit: 3"): the caller knows what to call the code that did it.
    """


class UnreadableReply(ProctorError):
    """The agent answered with something that the adapter cannot turn into a reply: an error, not a failure."""


class JudgeFailed(ProctorError):
    """A judge was needed and gave no usable answer."""


class NeedsModel(JudgeFailed):
    """A judge with a model is needed, and none is configured."""


class BudgetSpent(JudgeFailed):
    """The judge was not called because the budget is spent."""


class HiddenPackage(ProctorError):
    """A file of the project has the name of a package that Proctor needs, so that Proctor cannot import it."""


class StoreError(ProctorError):
    """Results could not be written or read."""


class NotInStore(StoreError, UsageError):
    """The run, the trace or the store that the user names does not exist."""


def one_line(error: BaseException) -> str:
    """An exception in one line: its type and its message."""
    text = " ".join(truncate_middle(_message(error)).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _message(error: BaseException) -> str:
    """`str(error)`, or nothing if that raises or does not end.

    The message of a built-in exception with plain arguments is built by Python itself. Any other one may run code of
    the user's, such as an endless `__str__`, and the caller is often the event loop, which must go on: so it runs in a
    thread and gets a second.
    """
    messages: list[str] = []

    def format_message() -> None:
        with contextlib.suppress(BaseException):
            messages.append(str(error))

    runs_user_code = hasattr(type(error).__str__, "__code__") or not all(type(arg) in _PLAIN for arg in error.args)
    if runs_user_code:
        thread = threading.Thread(target=format_message, daemon=True)
        thread.start()
        thread.join(MESSAGE_SECONDS)
    else:
        format_message()
    return messages[0] if messages else ""


def truncate_middle(text: str) -> str:
    """The text, or the beginning and the end of one that is too long to be kept or shown."""
    if len(text) <= MAX_REASON_LENGTH:
        return text
    half = MAX_REASON_LENGTH // 2
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters left out) … {text[-half:]}"


def user_location(error: BaseException) -> str:
    """The innermost line of the user's own code that an exception passed through, as ` (app.py:12)`, or nothing."""
    location, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_user_file(file):
            location = f" ({Path(file).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return location


def is_user_file(file: str) -> bool:
    """Whether a file of code belongs to the user, and not to Proctor, Python or an installed package."""
    if file.startswith("<"):  # `<string>`, `<frozen importlib._bootstrap>`
        return False
    path = Path(file)
    if "site-packages" in path.parts or "dist-packages" in path.parts:
        return False
    return not any(path.is_relative_to(folder) for folder in _folders_of_others())


@functools.cache
def _folders_of_others() -> tuple[Path, ...]:
    """Proctor's package and the standard library; on some systems users' code is below the prefix of Python too."""
    return (Path(__file__).parents[1], *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")))
