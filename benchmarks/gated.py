"""What the gate itself costs: a large suite through the command line, gated and not, and accepting it as a baseline.

How often the gate is right is another question, which `gate.py` answers.
"""

from __future__ import annotations

import json
from pathlib import Path

from environments import Interpreter
from material import write_jsonl
from measuring import Contender, clean_environment, compare, measure
from table import Row, at_most

SHAKY = '''"""An agent that answers three of ten questions wrong now and then."""

import random
import zlib


def agent(question: str) -> str:
    shaky = zlib.crc32(question.encode()) % 10 < 3
    return "no" if shaky and random.random() < 0.2 else question
'''
RECORDED = 10


def measure_gated(proctor: Interpreter, folder: Path, cases: int, rounds: int) -> list[Row]:
    path = write_jsonl(folder / "suite.jsonl", cases, "echo")
    (folder / "shaky.py").write_text(SHAKY, encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace("agents.py:echo", "shaky.py:agent"), encoding="utf-8")

    def command(name: str, *words: str) -> Contender:
        """Suites fail here, and gates may be in doubt: only an error is one."""
        script = f"{' '.join(proctor.module('proctor'))} {' '.join(words)} -q > {name}.txt; test $? -lt 4"
        return Contender(name, ["sh", "-c", script], folder, clean_environment())

    plain = command("plain", "test", path.name)
    measure(plain)
    accept = Contender("accept", [*proctor.module("proctor"), "baseline", "accept"], folder, clean_environment())
    accepted = measure(accept)
    _lengthen(folder / "suite.baseline.jsonl")
    gated = command("gated", "test", path.name, "--gate")
    costs = compare([plain, gated], rounds, warm_up=False)
    what = f"{cases:,} cases"
    return [
        at_most(f"{what}: gated run / plain run", costs["gated"].cpu / costs["plain"].cpu, 3),
        Row(f"- {what}: CPU of a plain run", f"{costs['plain'].cpu:.1f} s"),
        Row(f"- {what}: CPU of a gated run", f"{costs['gated'].cpu:.1f} s"),
        Row(f"- {what}: CPU of accepting a run", f"{accepted.cpu:.1f} s"),
    ]


def _lengthen(baseline: Path) -> None:
    """As if each case had been recorded ten times: always right, or eight times of ten where it is shaky."""
    lines = []
    for line in baseline.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        lines.append({**data, "trials": RECORDED, "passes": RECORDED if data["passes"] else 8})
    baseline.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
