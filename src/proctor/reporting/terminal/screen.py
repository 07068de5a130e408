"""Where the terminal's lines go: any stream, whatever its encoding, and never an escape sequence of an agent's."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TextIO
from unicodedata import combining, east_asian_width

Span = str | tuple[str, str]
"""A piece of a line, plain or with a style: `("FAIL", "bold red")`."""

_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
"""Control characters, invisible reordering of text, and halves of surrogate pairs."""

_CI_COMMAND = r"(?m)(^[^\S\n]*:)(:(?=[^\n]*::))|(#)(#(?=\[|[A-Za-z]+\[))"

_ANSI_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}


MAX_UNBROKEN = 40
"""A piece of a line up to this wide is not broken, such as a score with its threshold."""


class Screen(Protocol):
    """Takes one line at a time; `width` is known only where lines should be wrapped to it.

    A line that is too wide goes on below, between two words, indented by `hang` columns.
    """

    @property
    def unicode(self) -> bool: ...

    @property
    def width(self) -> int | None: ...

    def line(self, *spans: Span, hang: int = 4) -> None: ...


def escape_control(text: str) -> str:
    """The text with everything that could act on a terminal or a CI log spelt out; tabs and new lines stay."""
    if not text.isprintable():
        text = re.sub(_UNSAFE, _escape_code, text.replace("\r\n", "\n"))
    return escape_ci_commands(text)


def escape_ci_commands(text: str) -> str:
    """The text with nothing in it that a CI service takes for a command: GitHub, Azure, TeamCity.

    A line that begins with `::name::` and `##vso[` anywhere are torn apart by a space without width. GitLab's section
    markers need control characters, which are spelt out anyway.
    """
    if "::" not in text and "##" not in text:
        return text
    return re.sub(_CI_COMMAND, _split_command, text)


def _split_command(found: re.Match[str]) -> str:
    first, second = found.group(1) or found.group(3), found.group(2) or found.group(4)
    return f"{first}\u200b{second}"


def escape_line(text: str) -> str:
    """The same, and on one line."""
    if text.isprintable():
        return escape_ci_commands(text)
    return escape_control(text).replace("\n", "\\n").replace("\t", "    ")


def display_width(text: str) -> int:
    """How many columns a text takes on a terminal, where some scripts take two for a character."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def cut_middle(text: str, room: int, mark: str = "…") -> str:
    """A name that fits into so many columns: its middle is left out, since names differ at both ends."""
    if display_width(text) <= room:
        return text
    tail = max(1, (room - len(mark)) // 2)
    head = max(1, room - len(mark) - tail)
    while head > 1 and display_width(text[:head]) + display_width(text[-tail:]) > room - len(mark):
        head, tail = head - 1, max(1, tail - 1)
    return f"{text[:head]}{mark}{text[-tail:]}"


def fold(text: str, room: int) -> list[str]:
    """A text of one line in lines of at most `room` columns, broken between words; a word wider than that is cut."""
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
    """How many characters of a word go on a line that is too short for it: up to a sign between two parts, if any."""
    fits, taken = 0, 0
    for sign in word:
        taken += display_width(sign)
        if taken > room:
            break
        fits += 1
    ends = (max(word.rfind(sign, 0, fits) for sign in signs) for signs in ("(,", "=/&;"))
    return next((end + 1 for end in ends if end > 0), max(1, fits))


def wrap_spans(spans: Sequence[Span], width: int | None, hang: int) -> list[list[Span]]:
    """The spans as lines of at most `width` columns, each but the first indented; short spans and words stay whole."""
    pieces = [(escape_line(span), "") if isinstance(span, str) else (escape_line(span[0]), span[1]) for span in spans]
    if width is None or sum(display_width(text) for text, _ in pieces) <= width:
        return [list(pieces)]
    lines: list[list[Span]] = [[]]
    column = 0
    for gap, unit in _unbreakable_parts(pieces):
        wide = sum(display_width(text) for text, _ in unit)
        if lines[-1] and column + gap + wide > width:
            lines.append([" " * hang, *unit])
            column = hang + wide
        else:
            lines[-1] += [" " * gap, *unit]
            column += gap + wide
    return lines


def _unbreakable_parts(pieces: Sequence[tuple[str, str]]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """What must stay on one line, each with the number of spaces before it, at which a line may end."""
    unit: list[tuple[str, str]] = []
    gap = 0
    for text, style in pieces:
        core = text.strip(" ")
        start = text.find(core) if core else len(text)
        whole = display_width(core) <= MAX_UNBROKEN
        parts = [text[:start], core, text[start + len(core) :]] if whole else re.split("( +)", text)
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
    """The text with what `encoding` cannot express spelt out as escapes; a stream without encoding takes everything."""
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
    """On a terminal, unless `NO_COLOR` objects; `FORCE_COLOR` colours also what goes to a file, a pipe or a CI log."""
    if environ.get("NO_COLOR"):
        return False
    if forced := environ.get("FORCE_COLOR"):
        return forced.lower() not in ("0", "false", "no")
    return is_terminal(stream) and environ.get("TERM") != "dumb"


def wrap_width(stream: Any, environ: Mapping[str, str]) -> int | None:
    """How wide to wrap; a file or a pipe keeps its lines whole."""
    if not is_terminal(stream):
        return None
    told = environ.get("COLUMNS", "")
    return int(told) if told.isdecimal() and int(told) else shutil.get_terminal_size().columns


class SafeStream:
    """Writes to a stream until the other end is gone, and then no more: a closed pipe must not end a run."""

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
            except (OSError, ValueError):
                self._give_up()
        return len(text)

    def flush(self) -> None:
        if self._open:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._give_up()

    def isatty(self) -> bool:
        return is_terminal(self._stream)

    def fileno(self) -> int:
        return self._stream.fileno()

    def _give_up(self) -> None:
        """What is left in the buffer goes nowhere, or Python would complain about it when it exits."""
        self._open = False
        try:
            descriptor = self._stream.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
        except (OSError, ValueError, AttributeError):
            return
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


class StreamScreen:
    """A screen on a text stream, with plain ANSI colours if wanted."""

    def __init__(self, stream: TextIO, *, colour: bool = False, width: int | None = None) -> None:
        self._outlet = SafeStream(stream)
        self._colour = colour
        self.unicode = supports_unicode(stream)
        self.width = width

    def line(self, *spans: Span, hang: int = 4) -> None:
        for line in (spans,) if self.width is None else wrap_spans(spans, self.width, hang):
            text = "".join([self._paint(span) for span in line])
            self._outlet.write(text.rstrip(" ") + "\n")

    def flush(self) -> None:
        self._outlet.flush()

    def _paint(self, span: Span) -> str:
        if isinstance(span, str):
            return escape_line(span)
        text, style = span
        if not (self._colour and style and text):
            return escape_line(text)
        codes = ";".join(_ANSI_CODES[word] for word in style.split())
        return f"\x1b[{codes}m{escape_line(text)}\x1b[0m"


def _escape_code(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def screen_for(stream: Any, environ: Mapping[str, str] | None = None) -> StreamScreen:
    """The screen of a stream, coloured and as wide as it and the environment want."""
    environ = os.environ if environ is None else environ
    return StreamScreen(stream, colour=uses_color(stream, environ), width=wrap_width(stream, environ))
