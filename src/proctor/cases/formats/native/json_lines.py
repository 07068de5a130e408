"""JSON Lines: one case a line. The cases of a large file are read whenever they are asked for, and never held."""

from __future__ import annotations

import itertools
import os
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import overload

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.fields import Document
from proctor.base.json_data import Json
from proctor.base.source import LARGEST_FILE, Pointer, parse_json
from proctor.cases.formats.native import recognises
from proctor.cases.formats.native.parts import Head
from proctor.cases.formats.native.reader import read_case, read_suite
from proctor.cases.suite import Case, EvaluatorSpec, Suite

LARGE_BYTES = 8_000_000
"""From this size on the cases of a file are not held: some fifty thousand short ones."""
UTF8_MARK = b"\xef\xbb\xbf"


def read_lines(path: Path) -> list[Suite] | None:
    """The suite of a file; `None` where it is none."""
    descriptor = os.open(path, os.O_RDONLY)
    lines = _Lines(path, descriptor)
    weakref.finalize(lines, os.close, descriptor)
    if not any(recognises(path, [row]) for row in lines.rows()):
        return None
    head = lines.look_through()
    document = Document(path, "", head.data, lambda pointer: _line(pointer, lines, head))
    document.problems.extend(head.problems)
    suite = read_suite(document, lambda fields, defaults: _checked(document, LargeCases(lines, defaults)))
    document.finish(suite)
    return [suite]


def _line(pointer: Pointer, lines: _Lines, head: Head) -> int | None:
    first, second = (*pointer, None, None)[:2]
    if first == "cases":
        return lines.numbers[second] if isinstance(second, int) else None
    return head.lines.get(str(first))


def _checked(document: Document, cases: LargeCases) -> Sequence[Case]:
    """The cases, after all that is wrong with any of them is said; ids are compared by their hashes first."""
    hashes, held = array("q"), list[Case]()
    is_large = document.path.stat().st_size >= LARGE_BYTES
    for at in range(len(cases)):
        case = cases.read(at, document)
        hashes.append(hash(case.id))
        if not is_large:
            held.append(case)
    if not len(cases):
        document.problem(("cases",), "is empty; give at least one")
    ordered = sorted(hashes)
    twice = {one for one, next_one in itertools.pairwise(ordered) if one == next_one}
    seen: dict[str, int] = {}
    for at in (at for at, known in enumerate(hashes) if known in twice):
        case_id = cases.read(at, Document(document.path, "", {}, lambda pointer: None)).id
        if case_id in seen:
            document.problem(("cases", at, "id"), f"{case_id!r} is also the id of cases[{seen[case_id]}]")
        seen.setdefault(case_id, at)
    return cases if is_large else tuple(held)


class _Lines:
    """The lines of an open file that hold cases, by their places in it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.starts = array("Q")
        self.numbers = array("Q")
        self._descriptor = descriptor
        self._stamp = self._state()

    def _state(self) -> tuple[int, int]:
        about = os.fstat(self._descriptor)
        return about.st_size, about.st_mtime_ns

    def rows(self) -> Iterator[Json]:
        """What the lines hold; nothing where one is not JSON."""
        for _, number, line in self._filled():
            try:
                yield self._parsed(line, number)
            except InvalidSuite:
                yield None

    def look_through(self) -> Head:
        """Find the lines of cases, and bring together what the others say of all of them."""
        head = Head(self.path)
        for start, number, line in self._filled():
            if b'"suite"' in line or b"\\u" in line:
                try:
                    row = self._parsed(line, number)
                except InvalidSuite:
                    row = None  # told when it is read as a case
                if head.takes(row, number):
                    continue
            self.starts.append(start)
            self.numbers.append(number)
        return head

    def _filled(self) -> Iterator[tuple[int, int, bytes]]:
        start, number = 0, 0
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            while line := file.readline(LARGEST_FILE):
                number += 1
                if len(line) == LARGEST_FILE:
                    raise InvalidSuite([Problem("is too long to be read", self.path, number)])
                if line.strip():
                    yield start, number, line
                start += len(line)

    def row(self, at: int) -> Json:
        """What a line holds; raises `InvalidSuite` where it is not JSON."""
        start = self.starts[at]
        end = self.starts[at + 1] if at + 1 < len(self.starts) else self._stamp[0]
        return self._parsed(_bytes_at(self._descriptor, start, end - start).partition(b"\n")[0], self.numbers[at])

    def check(self) -> None:
        """Raise `InvalidSuite` where the file has been changed since."""
        if self._state() != self._stamp:
            raise InvalidSuite([Problem("was changed while it was read; run it again", self.path)])

    def _parsed(self, line: bytes, number: int) -> Json:
        try:
            return parse_json(self.path, line.removeprefix(UTF8_MARK).decode())
        except UnicodeDecodeError as error:
            raise InvalidSuite([Problem(f"is not UTF-8 text ({error.reason})", self.path, number)]) from None
        except InvalidSuite as error:
            raise InvalidSuite([Problem(p.message, self.path, number) for p in error.problems]) from None


def _bytes_at(descriptor: int, start: int, count: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, count)


class LargeCases(Sequence[Case]):
    """The cases of a large file, each read when it is asked for."""

    def __init__(
        self, lines: _Lines, defaults: tuple[EvaluatorSpec, ...], changes: tuple[Callable[[Case], Case], ...] = ()
    ) -> None:
        self._lines = lines
        self._defaults = defaults
        self._changes = changes
        self._specs: dict[str, EvaluatorSpec] = {}
        self._shared_specs = {id(spec): spec for spec in defaults}

    def __len__(self) -> int:
        return len(self._lines.starts)

    @overload
    def __getitem__(self, at: int) -> Case: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Case, ...]: ...
    def __getitem__(self, at: int | slice) -> Case | tuple[Case, ...]:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(len(self))[at])
        # What is wrong with a line was said when the file was first read; it is the same line still.
        case = self.read(range(len(self))[at], Document(self._lines.path, "", {}, lambda pointer: None))
        self._lines.check()
        for change in self._changes:
            case = change(case)
        return case

    def changed(self, change: Callable[[Case], Case]) -> LargeCases:
        """The cases as `change` makes them."""
        return LargeCases(self._lines, self._defaults, (*self._changes, change))

    def read(self, at: int, document: Document) -> Case:
        """One case as it stands in the file; problems go to `document`."""
        try:
            row = self._lines.row(at)
        except InvalidSuite as error:
            document.problems.extend(error.problems)
            return Case(f"case-{at + 1}", ())
        return self._with_shared_specs(read_case(document, row, ("cases", at), self._defaults))

    def _with_shared_specs(self, case: Case) -> Case:
        """Equal evaluators are one object, however often their case is read: the plan knows them by identity."""
        if not self._are_shared(case.evaluators):
            case = replace(case, evaluators=self._shared(case.evaluators))
        if not all(self._are_shared(turn.evaluators) for turn in case.turns):
            turns = [replace(turn, evaluators=self._shared(turn.evaluators)) for turn in case.turns]
            case = replace(case, turns=tuple(turns))
        return case

    def _are_shared(self, specs: tuple[EvaluatorSpec, ...] | None) -> bool:
        return specs is None or all(id(spec) in self._shared_specs for spec in specs)

    def _shared(self, specs: tuple[EvaluatorSpec, ...] | None) -> tuple[EvaluatorSpec, ...] | None:
        own = None if specs is None else tuple([self._specs.setdefault(repr(spec), spec) for spec in specs])
        self._shared_specs |= {id(spec): spec for spec in own or ()}
        return own
