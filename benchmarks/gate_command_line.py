"""How often the gate is red through the command line, with git: `proctor test --gate --against HEAD~1`.

`gate_accuracy.py` simulates the class that decides. Here everything is real but the agent: a repository with two
commits, each version in its own process, 50 cases that pass at random with the rates of the documented mixture, and
the exit code of the command.

    python benchmarks/gate_command_line.py --runs 40
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from gate_accuracy import default_suite
from proctor.results.statistics import share_of

AGENT = """
import random

RATES = {rates!r}


def agent(question):
    right = random.random() < RATES[int(question)]
    return f"{{'Right' if right else 'Wrong'}}, and a number that varies: {{random.random()}}"
"""

EXIT_CODES = {0: "no regression", 1: "regression", 3: "inconclusive", 4: "error"}


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def write_repository(folder: Path, before: list[float], now: list[float]) -> None:
    cases = "".join(f"  - {{id: c{at}, input: '{at}', expected: {{contains: [Right]}}}}\n" for at in range(len(before)))
    (folder / "suite.yaml").write_text(f"name: desk\nagent: app.py:agent\ncases:\n{cases}", encoding="utf-8")
    (folder / ".gitignore").write_text(".proctor\n", encoding="utf-8")
    git(folder, "init", "-q")
    for rates in (before, now):
        (folder / "app.py").write_text(AGENT.format(rates=rates), encoding="utf-8")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", "version")


def exit_code(before: list[float], now: list[float]) -> int:
    """The exit code of the gate on a change from one agent to another."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_repository(folder, before, now)
        words = [sys.executable, "-m", "proctor", "test", "--gate", "--against", "HEAD~1", "-q"]
        environment = {**os.environ, "HOME": name}
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False).returncode


def broken(rng: random.Random, rates: list[float]) -> list[float]:
    chosen = set(rng.sample(range(len(rates)), len(rates) // 10))
    return [0.0 if at in chosen else rate for at, rate in enumerate(rates)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="runs of the command for each row (default 40)")
    options = parser.parse_args()
    print("| change | runs | red [95 % interval] | other exit codes |")
    print("|---|---|---|---|")
    for name in ("nothing changed", "five of fifty broken to 0"):
        codes: Counter[int] = Counter()
        for number in range(options.runs):
            rng = random.Random(number)
            before = default_suite(rng, 50)
            codes[exit_code(before, before if name == "nothing changed" else broken(rng, before))] += 1
        red = share_of(codes[1], options.runs)
        others = ", ".join(
            f"{count} {EXIT_CODES.get(code, code)}" for code, count in sorted(codes.items()) if code != 1
        )
        print(
            f"| {name} | {options.runs} | {red.mean:.1%} [{red.low:.1%}, {red.high:.1%}] | {others or 'none'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
