"""Writes lines to a terminal, a file or a pipe, in whatever encoding it has, and escapes what could control it.

Agents and their tools write the texts that are shown. None of their escape sequences, workflow commands of CI services
or right-to-left tricks reaches the terminal or the log: `escape_control` and `escape_line` spell them out.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TextIO
from unicodedata import combining, east_asian_width

Span = str | tuple[str, str]
"""A piece of a line, plain or with a style: `("FAIL", "bold red")`."""

_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
"""Control characters, characters that reorder text, and halves of surrogate pairs."""

_CI_COMMAND = r"(?m)(^[^\S\n]*:)(:(?=[^\n]*::))|(#)(#(?=\[|[A-Za-z]+\[))"

_ANSI_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}


MAX_UNBROKEN = 40
"""A span up to this wide, such as a score with its threshold, is not broken over two lines."""


class Screen(Protocol):
    """Something that lines can be printed on.

    A line wider than `width` continues on the next line, broken between two words and indented by `hang` columns.
    `width` is None if lines should not be wrapped. `unicode` says whether characters outside ASCII can be shown.
    """

    @property
    def unicode(self) -> bool: ...

    @property
    def width(self) -> int | None: ...

    def line(self, *spans: Span, hang: int = 4) -> None: ...


def escape_control(text: str) -> str:
    """The text with everything escaped that could control a terminal or a CI log; tabs and newlines stay."""
    if not text.isprintable():
        text = re.sub(_UNSAFE, _escape_code, text.replace("\r\n", "\n"))
    return escape_ci_commands(text)


def escape_ci_commands(text: str) -> str:
    """The text without anything that GitHub, Azure or TeamCity would run as a command.

    A zero-width space splits `::name::` at the start of a line, and `##vso[` anywhere. GitLab's section markers need
    control characters, which are escaped anyway.
    """
    if "::" not in text and "##" not in text:
        return text
    return re.sub(_CI_COMMAND, _split_command, text)


def _split_command(match: re.Match[str]) -> str:
    first, second = match.group(1) or match.group(3), match.group(2) or match.group(4)
    return f"{first}\u200b{second}"


def escape_line(text: str) -> str:
    """The same as `escape_control`, on one line."""
    if text.isprintable():
        return escape_ci_commands(text)
    return escape_control(text).replace("\n", "\\n").replace("\t", "    ")


def display_width(text: str) -> int:
    """How many columns a text takes on a terminal, where characters of some scripts take two."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def cut_middle(text: str, width: int, ellipsis: str = "…") -> str:
    """A name in at most `width` columns, without its middle if it is longer: names differ at both ends."""
    if display_width(text) <= width:
        return text
    tail = max(1, (width - len(ellipsis)) // 2)
    head = max(1, width - len(ellipsis) - tail)
    while head > 1 and display_width(text[:head]) + display_width(text[-tail:]) > width - len(ellipsis):
        head, tail = head - 1, max(1, tail - 1)
    return f"{text[:head]}{ellipsis}{text[-tail:]}"


def fold(text: str, room: int) -> list[str]:
    """One line of text as lines of at most `room` columns, broken between words; a longer word is cut."""
    lines: list[str] = []
    line, width = "", 0
    for gap, word in re.findall(r"(\s*)(\S+)", text):
        if line and width + display_width(gap) + display_width(word) > room:
            lines.append(line)
            line, width, gap = "", 0, ""
        while display_width(gap) + display_width(word) > room:
            head = _break_position(word, max(1, room - display_width(gap)))
            lines.append(gap + word[:head])
            gap, word = "", word[head:]
        line, width = line + gap + word, width + display_width(gap) + display_width(word)
    return [*lines, line] if line or not lines else lines


def _break_position(word: str, room: int) -> int:
    """How many characters of a long word go on the line: up to the last separator that fits, if there is one."""
    count, width = 0, 0
    for char in word:
        width += display_width(char)
        if width > room:
            break
        count += 1
    ends = (max(word.rfind(separator, 0, count) for separator in group) for group in ("(,", "=/&;"))
    return next((end + 1 for end in ends if end > 0), max(1, count))


def wrap_spans(spans: Sequence[Span], width: int | None, hang: int) -> list[list[Span]]:
    """The spans as lines of at most `width` columns, all but the first indented by `hang`.

    Words and spans up to `MAX_UNBROKEN` columns are not broken.
    """
    pieces = [(escape_line(span), "") if isinstance(span, str) else (escape_line(span[0]), span[1]) for span in spans]
    if width is None or sum(display_width(text) for text, _ in pieces) <= width:
        return [list(pieces)]
    lines: list[list[Span]] = [[]]
    column = 0
    for gap, unit in _unbreakable_parts(pieces):
        unit_width = sum(display_width(text) for text, _ in unit)
        if lines[-1] and column + gap + unit_width > width:
            lines.append([" " * hang, *unit])
            column = hang + unit_width
        else:
            lines[-1] += [" " * gap, *unit]
            column += gap + unit_width
    return lines


def _unbreakable_parts(pieces: Sequence[tuple[str, str]]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """The parts that must stay on one line, each with the number of spaces before it, where a line may end."""
    unit: list[tuple[str, str]] = []
    gap = 0
    for text, style in pieces:
        core = text.strip(" ")
        start = text.find(core) if core else len(text)
        is_unbreakable = display_width(core) <= MAX_UNBROKEN
        parts = [text[:start], core, text[start + len(core) :]] if is_unbreakable else re.split("( +)", text)
        for part in parts:
            if not part.strip(" "):
                if unit and part:
                    yield gap, unit
                    unit, gap = [], 0
                gap += len(part)
            else:
                unit.append((part, style))
    if unit:
        yield gap, unit


def escape_unencodable(text: str, encoding: str | None) -> str:
    """The text with characters that `encoding` does not have as escapes; without an encoding, the text as it is."""
    if text.isascii() or encoding is None:
        return text
    try:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")


def supports_unicode(stream: Any) -> bool:
    encoding = getattr(stream, "encoding", None)
    return encoding is None or str(encoding).lower().replace("-", "").replace("_", "").startswith("utf")


def is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError, OSError):
        return False


def uses_color(stream: Any, environ: Mapping[str, str]) -> bool:
    """Whether to color: on a terminal unless `NO_COLOR` is set; with `FORCE_COLOR` also in files, pipes and CI logs."""
    if environ.get("NO_COLOR"):
        return False
    if forced := environ.get("FORCE_COLOR"):
        return forced.lower() not in ("0", "false", "no")
    return is_terminal(stream) and environ.get("TERM") != "dumb"


def wrap_width(stream: Any, environ: Mapping[str, str]) -> int | None:
    """The width of a terminal, or None for a file or pipe, whose lines are not wrapped."""
    if not is_terminal(stream):
        return None
    columns = environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else shutil.get_terminal_size().columns


LOST_OUTPUT: list[str] = []
"""Why lines for standard output could not be written; a command that exits with 0 has shown its result."""
_STDOUT = 1


class SafeStream:
    """A text stream that escapes what cannot be encoded, and never ends a run.

    A closed pipe is ignored. If the disk is full, the command fails at its end: see `LOST_OUTPUT`.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._open = True

    @property
    def encoding(self) -> str | None:
        return getattr(self._stream, "encoding", None)

    def write(self, text: str) -> int:
        if self._open:
            try:
                self._stream.write(escape_unencodable(text, self.encoding))
            except (OSError, ValueError) as error:
                self._disconnect(error)
        return len(text)

    def flush(self) -> None:
        if self._open:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._disconnect(error)

    def isatty(self) -> bool:
        return is_terminal(self._stream)

    def fileno(self) -> int:
        return self._stream.fileno()

    def _is_closed(self, error: Exception) -> bool:
        """Whether a reader or an agent closed the stream, as opposed to a full disk."""
        has_no_reader = isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.EBADF)
        return has_no_reader or getattr(self._stream, "closed", False) is True

    def _disconnect(self, error: Exception) -> None:
        """Stop writing, and send what is left in the buffer to /dev/null: Python would complain about it at exit."""
        self._open = False
        try:
            descriptor = self._stream.fileno()
            if descriptor == _STDOUT and not self._is_closed(error):
                LOST_OUTPUT.append(str(getattr(error, "strerror", None) or error))
            null = os.open(os.devnull, os.O_WRONLY)
        except (OSError, ValueError, AttributeError):
            return
        os.dup2(null, descriptor)
        os.close(null)


class StreamScreen:
    """A screen on a text stream, with ANSI colors if `color` is set."""

    def __init__(self, stream: TextIO, *, color: bool = False, width: int | None = None) -> None:
        self._stream = SafeStream(stream)
        self._color = color
        self.unicode = supports_unicode(stream)
        self.width = width

    def line(self, *spans: Span, hang: int = 4) -> None:
        for line in (spans,) if self.width is None else wrap_spans(spans, self.width, hang):
            text = "".join([self._styled(span) for span in line])
            self._stream.write(text.rstrip(" ") + "\n")

    def flush(self) -> None:
        self._stream.flush()

    def _styled(self, span: Span) -> str:
        if isinstance(span, str):
            return escape_line(span)
        text, style = span
        if not (self._color and style and text):
            return escape_line(text)
        codes = ";".join(_ANSI_CODES[word] for word in style.split())
        return f"\x1b[{codes}m{escape_line(text)}\x1b[0m"


def _escape_code(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def screen_for(stream: Any, environ: Mapping[str, str] | None = None) -> StreamScreen:
    """A screen on a stream, with the color and width that the stream and the environment ask for."""
    environ = os.environ if environ is None else environ
    return StreamScreen(stream, color=uses_color(stream, environ), width=wrap_width(stream, environ))
