"""Suites, patterns and stores that are made to hang, fill the memory or run code are refused with a reason."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND

from proctor.base.regexes import PatternTooSlow, check_pattern, fullmatch, search

Command = Callable[..., Any]

PATTERNS = ("(a+)+$", "(a|a)*$", "(a|aa)+$", "(x+x+)+y|(a*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){20}b")
TEXT = "a" * 60 + "!"


def test_patterns_that_backtrack_end_in_runs_and_in_reports(proctor_process: Command, project: Path) -> None:
    lines = ["name: s", "agent: tooled.py:agent", "cases:"]
    for number, pattern in enumerate(PATTERNS):
        evaluators = f"evaluators: [{{Regex: {{pattern: '{pattern}'}}}}]"
        expected = f"expected: {{tools: [{{name: look, args: {{x: {{$regex: '{pattern}'}}}}}}]}}"
        lines += [f"  - {{id: c{number}, input: '{TEXT}', {expected if number % 2 else evaluators}}}"]
    (project / "tooled.py").write_text(
        "import proctor\n\n@proctor.tool\ndef look(x):\n    return x\n\n\ndef agent(q):\n    look(q)\n    return q\n"
    )
    (project / "suite.yaml").write_text("\n".join(lines) + "\n")
    ended = proctor_process("test", "suite.yaml", "-v")
    assert ended.code in (1, 4)
    assert "6 trials" in ended.out
    assert proctor_process("show", "-v", "--html", "out.html").code == 0


def test_a_bounded_pattern_means_what_it_means_in_python() -> None:
    texts = ["", "a", "A-12", "x{e}", "straße", "a\n", "١٢", "a b", "{", "}", "aaa", "ß", "İ", "\u2028"]
    patterns = [
        "a$", r"\d+", r"\w+", "x{e}", "x{1,2}", "[a-z]+", "a{2}", "{", r"\bb", "(?i)STRASSE", "[[a]", r"\s", "(a)\\1",
        r"[\]{x]", "a{,2}", "a{b,c}", "(?P<n>a)(?P=n)", "(?=a)a", "(?<!b)a", "a++", "^$", r"\Z", ".", "(?s).",
    ]  # fmt: skip
    for pattern, text in itertools.product(patterns, texts):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = re.search(pattern, text)
            whole = re.fullmatch(pattern, text)
        found = search(pattern, text)
        assert (found and found.span()) == (expected and expected.span()), (pattern, text)
        assert bool(fullmatch(pattern, text)) == bool(whole), (pattern, text)


def test_patterns_that_would_fill_the_memory_are_refused_before_they_are_compiled() -> None:
    for pattern in ("((a{1000}){1000}){1000}", "(?:a{99999}){2}", "a" * 20_000):
        with pytest.raises(ValueError, match="limit is"):
            check_pattern(pattern)
    with pytest.raises(PatternTooSlow, match="took more than"):
        search("(a|aa)+$", "a" * 60 + "!")


@pytest.mark.parametrize("levels", [12, 40])
def test_a_merge_bomb_is_refused(proctor_process: Command, project: Path, levels: int) -> None:
    lines = ["a0: &a0 {k: v, l: w, m: x}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, levels)]
    (project / "bomb.yaml").write_text("\n".join(lines) + "\n")
    ended = proctor_process("dataset", "validate", "bomb.yaml", memory=2000)
    assert ended.code == 2
    assert "add more than" in ended.out


def test_ordinary_merges_are_read(proctor: Command, project: Path) -> None:
    (project / "agents.py").write_text("def echo(q):\n    return q\n")
    (project / "suite.yaml").write_text(
        "name: s\nagent: agents.py:echo\ncases:\n  - &base {id: a, input: a, expected: a}\n  - {<<: *base, id: b}\n"
    )
    assert proctor("test", "suite.yaml").code == 0


def test_locating_a_problem_in_a_large_text_takes_little_memory(proctor_process: Command, project: Path) -> None:
    (project / "large.json").write_text('{"cases": [{"input": "' + "x" * 50_000_000 + '", "nonsense": 1}]}')
    ended = proctor_process("dataset", "validate", "large.json", memory=1500)
    assert ended.code == 2
    assert "large.json:1" in ended.out
    assert "nonsense" in ended.out


def test_pipes_and_devices_are_no_suites(proctor_process: Command, project: Path) -> None:
    os.mkfifo(project / "pipe.yaml")
    (project / "zero.json").symlink_to("/dev/zero")
    for name in ("pipe.yaml", "zero.json"):
        ended = proctor_process("dataset", "validate", name, timeout=120, memory=1500)
        assert ended.code == 2
        assert "a pipe or a device" in ended.out
        assert proctor_process("test", name, timeout=120, memory=1500).code == 2
    (project / "suite.yaml").write_text("agent: oracle\ncases: [{input: a, expected: a}]\n")
    assert proctor_process("test", ".").code == 0


@pytest.mark.parametrize("command", [("dataset", "validate"), ("doctor",)])
def test_checking_a_suite_runs_nothing_that_it_names(proctor: Command, project: Path, command: tuple[str, ...]) -> None:
    (project / "marks.py").write_text(
        "from pathlib import Path\nPath('ran.txt').write_text('x')\n\ndef agent(q):\n    return q\n\n\n"
        "def check(evaluable):\n    return 1.0\n"
    )
    (project / "suite.yaml").write_text(
        "agent: marks.py:agent\nevaluators: ['marks.py:check']\n"
        "cases: [{input: a, expected: {tools: [{name: t, args: {x: {$predicate: 'marks.py:check'}}}]}}]\n"
    )
    assert proctor(*command, "suite.yaml").code == 0
    assert not (project / "ran.txt").exists()
    assert proctor(*command, "suite.yaml", "--load").code == 0
    assert (project / "ran.txt").exists()
    assert "--load" in proctor(*command, "--help").out
    (project / "suite.yaml").write_text("agent: marks.py:agnet\ncases: [{input: a, expected: a}]\n")
    ended = proctor(*command, "suite.yaml")
    assert ended.code == 2
    assert "did you mean 'agent'?" in ended.out


def test_problems_of_a_suite_are_reported_and_nothing_it_names_is_run(proctor_process: Command, project: Path) -> None:
    (project / "marks.py").write_text("from pathlib import Path\nPath('ran.txt').write_text('x')\n")
    (project / "suite.yaml").write_text("agent: marks.py:agent\ncases: [{input: a, expected: a, nonsense: 1}]\n")
    ended = proctor_process("test", "suite.yaml")
    assert ended.code == 2
    assert "nothing was run" in ended.err
    assert not (project / "ran.txt").exists()


READ_TWICE = """
import os, shutil, sys, tempfile
from proctor.cli import main

for number in (1, 2):
    for command in ("runs", "show"):
        sys.argv = ["proctor", command]
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, (command, ended.code)
    if number == 1:
        for path in (".proctor/results.db", ".proctor", "."):
            os.chmod(path, 0o555)
        os.getuid() or os.setuid(65534)  # everything is loaded by now, which another user might not be able to
"""


def test_a_store_that_can_only_be_read_is_shown(environment: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "agents.py").write_text("import os\n\ndef agent(q):\n    os._exit(0)\n")
        (project / "suite.yaml").write_text("agent: agents.py:agent\ncases: [{input: a, expected: a}]\n")
        project.chmod(0o755)
        run = {"cwd": project, "env": environment, "capture_output": True, "text": True, "timeout": 120, "check": False}
        assert subprocess.run([*COMMAND, "test"], **run).returncode == 4
        done = subprocess.run([sys.executable, "-c", READ_TWICE], **run)
        project.chmod(0o755)
        (project / ".proctor").chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert (done.stdout.count("died"), done.stdout.count("after 0 of 1 trial;")) == (2, 2)


def test_a_trace_that_never_ends_or_unpacks_beyond_all_bounds_is_refused(
    proctor_process: Command, project: Path
) -> None:
    (project / "bomb.json.gz").write_bytes(gzip.compress(b" " * 300_000_000, 1))
    os.mkfifo(project / "pipe.json")
    for name, said in (("bomb.json.gz", "unpacks to more than 200 MB"), ("pipe.json", "a pipe or a device")):
        for command in (("trace", "import", name), ("format", "--input", name), ("dataset", "convert", name, "o.yaml")):
            ended = proctor_process(*command, memory=900)
            assert (ended.code, said in ended.err) == (2, True), ended


def test_a_hundred_thousand_unknown_keys_are_a_hundred_problems_and_one(
    proctor_process: Command, project: Path
) -> None:
    case = {"id": "a", "input": "x", "expected": "x"}
    native = {"cases": [case], **{f"k{number}": number for number in range(100_000)}}
    (project / "a.json").write_text(json.dumps(native))
    ended = proctor_process("dataset", "validate", "a.json")
    assert (ended.code, "has 99,900 more unknown keys" in ended.out) == (2, True)
    assert "101 problems" in ended.out
