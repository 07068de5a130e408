"""No report passes on characters that control a terminal or reorder text, wherever in a run they are."""

from __future__ import annotations

import io
import re

import pytest
from reporting_samples import ERROR, FAILED, PASSED, make_run, score, trial

from proctor.plugins import load
from proctor.reporting.reporters import reporters
from proctor.reporting.tables import csv_safe
from proctor.reporting.terminal.screen import escape_control
from proctor.results.verdict import verdict

CONTROL = "\x1b[31m\x1b]0;title\x07 \x08 \x7f \x9b2J \x85"
BIDI = "\u061c \u200e \u200f \u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069"
HOSTILE = f"=cmd() {CONTROL} {BIDI}"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("name", [reporter.name for reporter in reporters()])
def test_no_report_has_raw_control_or_reordering_characters(name: str) -> None:
    run = make_run(
        [
            trial(f"id {HOSTILE}", FAILED, HOSTILE, score(reasoning=HOSTILE, outcome=FAILED, value=0.0)),
            trial("broken", ERROR, reason=HOSTILE, warnings=(HOSTILE,)),
            trial("fine", PASSED, HOSTILE),
        ],
        skipped_files={f"a{HOSTILE}.yaml": HOSTILE},
    )
    [reporter] = [reporter for reporter in reporters() if reporter.name == name]
    out = io.StringIO(newline="")
    load(reporter.write)(run, verdict(run), out)
    assert "cmd()" in out.getvalue()
    assert [ascii(line) for line in out.getvalue().split("\n") if UNSAFE.search(line)] == []


def test_the_terminal_and_csv_show_each_of_them_as_an_escape() -> None:
    for character in CONTROL + BIDI:
        if UNSAFE.match(character):
            code = ord(character)
            escape = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
            assert escape_control(f"a{character}b") == f"a{escape}b"
            assert csv_safe(f"a{character}b") == f"a{escape}b"
    assert csv_safe("\x1b=1") == "\\x1b=1"
    assert csv_safe("a\tb\nc") == "a\tb\nc"
