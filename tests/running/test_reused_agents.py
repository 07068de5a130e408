"""`--reuse` never gives the answers of another agent: what an agent holds is part of what it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

FACTORY = """\
import threading
from functools import partial

def make(word):
    def agent(question):
        return word
    return agent

good, bad = make("yes"), make("no")

class App:
    def __init__(self, word):
        self.word = word
    def ask(self, question):
        return self.word

good_method, bad_method = App("yes").ask, App("no").ask
good_object, bad_object = App("yes"), App("no")
App.__call__ = App.ask

def with_default(word):
    def agent(question, answer=word):
        return answer
    return agent

good_default, bad_default = with_default("yes"), with_default("no")

def answering(word, question):
    return word

good_partial, bad_partial = partial(answering, "yes"), partial(answering, "no")

def guarded(lock):
    def agent(question):
        with lock:
            return "yes"
    return agent

locked = guarded(threading.Lock())
"""
SUITE = "cases:\n  - {id: one, input: Is it?, expected: 'yes', evaluators: [ExactMatch]}\n"


def reused(folder: Path, agent: str) -> tuple[int, str]:
    (folder / "app.py").write_text(FACTORY)
    (folder / "suite.yaml").write_text(SUITE)
    command = [sys.executable, "-m", "proctor", "test", "suite.yaml", "--agent", f"app.py:{agent}", "--reuse"]
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("PROCTOR_")}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=quiet, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["", "_method", "_object", "_default", "_partial"])
def test_an_agent_that_holds_other_values_is_called_itself(tmp_path: Path, kind: str) -> None:
    assert reused(tmp_path, f"good{kind}")[0] == 0
    assert reused(tmp_path, f"bad{kind}")[0] == 1


def test_the_same_agent_is_not_called_again(tmp_path: Path) -> None:
    reused(tmp_path, "good_partial")
    assert "from an earlier run" in reused(tmp_path, "good_partial")[1]


def test_an_agent_whose_values_cannot_be_compared_is_called_again_with_a_warning(tmp_path: Path) -> None:
    reused(tmp_path, "locked")
    code, printed = reused(tmp_path, "locked")
    assert code == 0
    assert "lock (_thread.lock)" in printed
