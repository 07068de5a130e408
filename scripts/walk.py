"""Counts the modules of Proctor that one case crosses, and how often the calls change package, for five ways in.

A module is crossed if one of its functions runs between the start of a command and its end. What runs while a module is
being imported does not count, nor do the methods that `@record` makes: a reader who follows a case does not go there.
The process that waits for the command as a guard is left out. `walk.py NAME` walks one way in only, and `--modules`
lists the modules crossed.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

AGENT = "def agent(question):\n    return 'Paris is the capital of France.'\n"
NATIVE = """\
agent: app.py:agent
cases:
  - id: capital
    input: What is the capital of France?
    expected:
      output: Paris is the capital of France.
    evaluators: [ExactMatch]
"""
JUDGED = NATIVE.replace("ExactMatch", "AnswerCorrectness")
ADK = {
    "eval_set_id": "capitals",
    "eval_cases": [
        {
            "eval_id": "capital",
            "conversation": [
                {
                    "user_content": {"parts": [{"text": "What is the capital of France?"}]},
                    "final_response": {"parts": [{"text": "Paris is the capital of France."}]},
                }
            ],
        }
    ],
}
HOLODECK = """\
name: capitals
agent: app.py:agent
model: {provider: openai, name: gpt-4o-mini}
instructions: {inline: Answer.}
evaluations:
  metrics:
    - {type: standard, metric: rouge, threshold: 0.5}
test_cases:
  - name: capital
    input: What is the capital of France?
    ground_truth: Paris is the capital of France.
"""


class Walk:
    """Every call of a function of Proctor, in order, from all threads."""

    def __init__(self) -> None:
        import proctor

        self._root = str(Path(str(proctor.__file__)).parent) + os.sep
        self._importing = threading.local()
        self.modules: list[str] = []

    def __enter__(self) -> Walk:
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>":
            change = {"call": 1, "return": -1}.get(event, 0)
            self._importing.depth = getattr(self._importing, "depth", 0) + change
        elif event == "call" and not getattr(self._importing, "depth", 0) and self._is_ours(code):
            self.modules.append(code.co_filename[len(self._root) : -len(".py")].replace(os.sep, "."))

    def _is_ours(self, code: CodeType) -> bool:
        """Whether it is a function of Proctor; bodies of classes have no fast locals."""
        name = code.co_filename
        generated = Path(name).parts[-2:] == ("base", "records.py")
        return name.startswith(self._root) and not generated and bool(code.co_flags & inspect.CO_OPTIMIZED)

    @property
    def crossed(self) -> list[str]:
        return sorted(set(self.modules))

    @property
    def switches(self) -> int:
        """How often a call goes to another package than the call before it."""
        packages = [module.partition(".")[0] for module in self.modules]
        return sum(one != other for one, other in itertools.pairwise(packages))


def native() -> None:
    Path("suite.yaml").write_text(NATIVE, encoding="utf-8")
    _command("test", "suite.yaml")


def adk() -> None:
    Path("capitals.test.json").write_text(json.dumps(ADK), encoding="utf-8")
    _command("test", "capitals.test.json", "--agent", "app.py:agent")


def judged() -> None:
    Path("suite.yaml").write_text(JUDGED, encoding="utf-8")
    _command("test", "suite.yaml")


def holodeck() -> None:
    Path("agent.yaml").write_text(HOLODECK, encoding="utf-8")
    import asyncio

    from proctor.compat.holodeck import TestExecutor

    report = asyncio.run(TestExecutor("agent.yaml").execute_tests())
    _expect(report.summary.passed == 1, "the case did not pass")


def pytest_item() -> None:
    Path("capital.proctor.yaml").write_text(NATIVE, encoding="utf-8")
    import pytest

    _expect(pytest.main(["-q", "-p", "no:cacheprovider", "capital.proctor.yaml"]) == 0, "the item did not pass")


WAYS: dict[str, Callable[[], None]] = {
    "native case": native,
    "ADK case": adk,
    "judged case": judged,
    "HoloDeck TestExecutor": holodeck,
    "pytest item": pytest_item,
}


def _command(*arguments: str) -> None:
    from proctor.cli import main

    sys.argv = ["proctor", *arguments]
    try:
        main()
    except SystemExit as ended:
        _expect(ended.code == 0, f"the command ended with {ended.code}")


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"walk.py: {otherwise}, so there is nothing to count")


def walk(name: str) -> dict[str, Any]:
    """What one way in crosses, in this process and in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        Path(folder, "app.py").write_text(AGENT, encoding="utf-8")
        before = Path.cwd()
        os.chdir(folder)
        try:
            with Walk() as seen:
                WAYS[name]()
        finally:
            os.chdir(before)
    return {"modules": seen.crossed, "switches": seen.switches}


def walk_apart(name: str) -> dict[str, Any]:
    """The same in a process of its own, where nothing is loaded or cached yet."""
    command = [sys.executable, __file__, "--json", name]
    quiet = {key: value for key, value in os.environ.items() if not key.startswith(("PROCTOR_", "PYTEST_"))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=quiet)
    _expect(done.returncode == 0, f"{name}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    names = [item for item in arguments if not item.startswith("--")] or list(WAYS)
    if "--json" in arguments:
        sys.stdout.write(json.dumps(walk(names[0])))
        return
    _say(f"{'one':<24}{'modules':>8}{'package switches':>18}")
    for name in names:
        found = walk_apart(name)
        _say(f"{name:<24}{len(found['modules']):>8}{found['switches']:>18}")
        if "--modules" in arguments:
            _say("\n".join(f"    {module}" for module in found["modules"]))


if __name__ == "__main__":
    main(sys.argv[1:])
